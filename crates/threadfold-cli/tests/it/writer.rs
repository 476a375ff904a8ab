//! A model on loopback for commands that need one.

use std::{net::TcpListener, sync::OnceLock, thread};

use threadfold::wire::Dialect;
use threadfold_testing::shared::serve_writer;

/// The arguments that name a model which writes summaries by picking sentences.
pub(crate) fn model() -> [&'static str; 6] {
    static URL: OnceLock<String> = OnceLock::new();
    let url = URL.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || serve_writer(&listener, Dialect::Anthropic, 200_000));
        url
    });
    ["--model", "claude-haiku-4-5", "--base-url", url, "--model-window", "200000"]
}
