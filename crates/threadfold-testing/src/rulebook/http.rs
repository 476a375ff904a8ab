//! An HTTP face for rulebooks, for tests that need a real connection: agents, SDKs, a proxy.
//!
//! It speaks as much HTTP/1.1 as clients of the vendors use, with one thread for each connection, and
//! belongs on loopback only.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use super::call::{HttpCall, Reply};

/// Headers, or a body, longer than this end the connection.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Answers the requests of a listener, each with what the function returns for its method and itself,
/// until the listener fails. It blocks; a test calls it in a thread of its own.
///
/// ```
/// use std::{io::{Read, Write}, net::{TcpListener, TcpStream}, thread};
/// use threadfold_testing::rulebook::{HttpCall, Reply, ReplyBody, serve};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// thread::spawn(move || {
///     serve(&listener, |method: &str, call: &HttpCall<'_>| Reply {
///         status: 200,
///         headers: Vec::new(),
///         body: ReplyBody::Json(format!("{method} {}", call.path).into()),
///     })
/// });
/// let mut client = TcpStream::connect(address)?;
/// client.write_all(b"GET /seen HTTP/1.1\r\nconnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer)?;
/// assert!(answer.ends_with("\"GET /seen\""), "{answer}");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// That of the listener. A connection that fails only ends itself.
pub fn serve(
    listener: &TcpListener,
    respond: impl Fn(&str, &HttpCall<'_>) -> Reply + Send + Sync + 'static,
) -> io::Result<()> {
    let respond = Arc::new(respond);
    for socket in listener.incoming() {
        let (socket, respond) = (socket?, Arc::clone(&respond));
        thread::spawn(move || {
            // The other side may go away at any time.
            let _ = converse(socket, &*respond);
        });
    }
    Ok(())
}

/// A request that was read.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

fn converse(
    mut socket: TcpStream,
    respond: &impl Fn(&str, &HttpCall<'_>) -> Reply,
) -> io::Result<()> {
    // Without it every answer waits for the acknowledgement of the one before.
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    while let Some(request) = read(&mut reader, &mut socket)? {
        let headers = request.headers.iter();
        let headers: Vec<(&str, &str)> =
            headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let call = HttpCall { path: &request.path, headers: &headers, body: &request.body };
        write(&mut socket, &respond(&request.method, &call))?;
        if request.header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close")) {
            break;
        }
    }
    Ok(())
}

/// Reads a request; `None` at the end of the connection.
fn read(reader: &mut impl BufRead, socket: &mut TcpStream) -> io::Result<Option<Request>> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    if request.header("expect").is_some() {
        socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some() {
        loop {
            let size = line(reader)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            append(reader, size, &mut request.body)?;
            line(reader)?;
            if size == 0 {
                return Ok(Some(request));
            }
        }
    }
    let length = request.header("content-length").unwrap_or("0").parse();
    append(reader, length.map_err(io::Error::other)?, &mut request.body)?;
    Ok(Some(request))
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(MAX_BYTES as u64).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn append(reader: &mut impl Read, bytes: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len().saturating_add(bytes) > MAX_BYTES {
        return Err(io::Error::other("the body is too long"));
    }
    let read = reader.take(bytes as u64).read_to_end(body)?;
    if read == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn write(socket: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let body = reply.bytes();
    let mut head = format!("HTTP/1.1 {} -\r\ncontent-length: {}\r\n", reply.status, body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut whole = head.into_bytes();
    whole.extend(body);
    socket.write_all(&whole)
}
