//! A worker of the engine, or the offline model and its tools.
//!
//! `durable model --listen 127.0.0.1:9090`
//! `durable worker --listen 127.0.0.1:9080 --model http://127.0.0.1:9090`

use std::{error::Error, net::SocketAddr, time::Duration};

use durable::{object::Threads, remote::Remote, service::Service};
use lexopt::{Arg, Parser, ValueExt};
use restate_sdk::prelude::{Endpoint, HttpServer};
use tokio::net::TcpListener;

const USAGE: &str = "durable model [--listen ADDRESS]
durable worker [--listen ADDRESS] [--model URL]";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut command, mut listen, mut model) = (String::new(), None, None);
    let mut arguments = Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("listen") => listen = Some(arguments.value()?.parse()?),
            Arg::Long("model") => model = Some(arguments.value()?.string()?),
            Arg::Value(word) if command.is_empty() => command = word.string()?,
            Arg::Short(_) | Arg::Long(_) | Arg::Value(_) => return Err(USAGE.into()),
        }
    }
    let address = |port: u16| listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], port)));
    match command.as_str() {
        "model" => {
            let listener = TcpListener::bind(address(9090)).await?;
            Ok(Service::new(Duration::ZERO).serve(listener).await?)
        }
        "worker" => {
            let listener = TcpListener::bind(address(9080)).await?;
            let remote = Remote::new(model.unwrap_or_else(|| "http://127.0.0.1:9090".to_owned()));
            let endpoint = Endpoint::builder().bind(Threads::new(remote)).build();
            HttpServer::new(endpoint).serve(listener).await;
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
