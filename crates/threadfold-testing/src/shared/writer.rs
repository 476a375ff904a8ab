//! A model on loopback that writes summaries by picking sentences, for tests of programs.

use std::{
    io,
    net::TcpListener,
    sync::{Mutex, PoisonError},
};

use serde_json::json;
use threadfold::{
    message::Timestamp,
    wire::{DecodeOptions, Dialect},
};

use super::simulation::extracted;
use crate::rulebook::{Asked, BookOptions, Reply, ReplyBody, Rulebook, Said, serve};

/// Answers every request of this API with what [`ExtractiveModel`](threadfold::testing::ExtractiveModel)
/// answers.
///
/// # Errors
///
/// That of the listener.
pub fn serve_writer(listener: &TcpListener, dialect: Dialect, window: u64) -> io::Result<()> {
    let options = BookOptions { window, ..BookOptions::default() };
    let book = Mutex::new(Rulebook::new(dialect, options));
    serve(listener, move |method, call| match method {
        "POST" => {
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            book.answer(call, Timestamp(0), &mut |asked: &Asked<'_>| said(asked))
        }
        _ => Reply { status: 200, headers: Vec::new(), body: ReplyBody::Json(json!({"data": []})) },
    })
}

fn said(asked: &Asked<'_>) -> Said {
    let body = asked.body.to_string();
    let request = asked.dialect.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
    extracted(&request)
}
