//! A server on the loopback interface that returns prepared answers and records the requests.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    resolver::{AuthData, Endpoint, ServiceTargetResolver},
};
use serde_json::Value;
use threadfold_genai::GenaiModel;

/// An answer: its status, its headers, and its body in the pieces in which it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: &'static str,
    pieces: Vec<Vec<u8>>,
}

impl Reply {
    /// A stream of events, sent in pieces of `size` bytes.
    pub(crate) fn events(body: &str, size: usize) -> Self {
        let pieces = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
        Self { status: 200, headers: "content-type: text/event-stream\r\n", pieces }
    }

    pub(crate) fn error(status: u16, headers: &'static str, body: &str) -> Self {
        Self { status, headers, pieces: vec![body.as_bytes().to_vec()] }
    }
}

/// The server. It returns one answer per connection, and repeats the last one.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    bodies: Arc<Mutex<Vec<String>>>,
    /// Whether a client closed its connection before its answer was written.
    pub(crate) client_left: Arc<Mutex<bool>>,
}

impl Server {
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (bodies, client_left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(false)));
        let (kept, left) = (Arc::clone(&bodies), Arc::clone(&client_left));
        thread::spawn(move || {
            let last = replies.last().cloned().unwrap();
            for reply in replies.into_iter().chain(std::iter::repeat(last)) {
                let Ok((stream, _)) = listener.accept() else { return };
                let body = read(&stream);
                kept.lock().unwrap().push(body);
                if write(&stream, &reply).is_err() {
                    *left.lock().unwrap() = true;
                }
            }
        });
        Self { port, bodies, client_left }
    }

    /// The received bodies, as text.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(self.bodies().last().unwrap()).unwrap()
    }

    /// A model of this adapter, at this server.
    pub(crate) fn model(&self, adapter: AdapterKind, name: &'static str) -> GenaiModel {
        let url = format!("http://127.0.0.1:{}/v1/", self.port);
        let resolver = ServiceTargetResolver::from_resolver_fn(move |_: ServiceTarget| {
            Ok(ServiceTarget {
                endpoint: Endpoint::from_owned(url),
                auth: AuthData::from_single("test-key"),
                model: ModelIden::new(adapter, name),
            })
        });
        let client = Client::builder().with_service_target_resolver(resolver).build().unwrap();
        GenaiModel::new(client, ModelIden::new(adapter, name))
    }
}

fn read(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        let count = stream.read(&mut buffer).unwrap_or(0);
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split_once("content-length: ").map(|(_, rest)| rest);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return body.to_owned();
            }
        }
        if count == 0 {
            return String::new();
        }
    }
}

fn write(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    stream.set_nodelay(true)?;
    write!(
        stream,
        "HTTP/1.1 {} Any\r\n{}connection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        reply.status, reply.headers
    )?;
    for piece in &reply.pieces {
        write!(stream, "{:x}\r\n", piece.len())?;
        stream.write_all(piece)?;
        stream.write_all(b"\r\n")?;
        stream.flush()?;
    }
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}
