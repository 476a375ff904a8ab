//! Threads as agents have them, for the tests that need them.
//!
//! Those of the project are in `testdata/threads`. The folder that `THREADFOLD_TRANSCRIPTS` names, if
//! it is set, adds to them; it is never needed.

use std::{env, fs, path::PathBuf};

use serde_json::{Value, value::RawValue};
use threadfold::{
    Request,
    wire::{DecodeOptions, Dialect},
};

pub(crate) const FORMATS: [(&str, Dialect); 5] = [
    ("anthropic-messages", Dialect::Anthropic),
    ("bedrock-converse", Dialect::BedrockConverse),
    ("gemini", Dialect::Gemini),
    ("openai-chat", Dialect::OpenAiChat),
    ("openai-responses", Dialect::OpenAiResponses),
];

/// A record around a request body.
#[derive(serde::Deserialize)]
struct Record {
    request: Box<RawValue>,
}

/// The folders with threads: the project's own, and the named one.
pub(crate) fn folders() -> Vec<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/threads");
    std::iter::once(own).chain(env::var_os("THREADFOLD_TRANSCRIPTS").map(PathBuf::from)).collect()
}

/// The file of each thread of a dialect.
fn files(dialect: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders() {
        let Ok(entries) = fs::read_dir(folder.join(dialect)) else { continue };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        files.append(&mut paths);
    }
    files
}

/// Every record of a dialect, with the name of its file: `request`, and `response` where there is one.
pub(crate) fn records(dialect: &str) -> Vec<(String, Value)> {
    let read = |path: PathBuf| {
        let record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        (path.file_stem().unwrap().to_string_lossy().into_owned(), record)
    };
    files(dialect).into_iter().map(read).collect()
}

/// Every request of a dialect with a codec, with the name of its file.
pub(crate) fn requests() -> Vec<(String, Dialect, Request)> {
    let mut requests = Vec::new();
    for (folder, format) in FORMATS {
        for path in files(folder) {
            let record: Record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let body = record.request.get().as_bytes();
            let request = format.decode_slice(body, &DecodeOptions::default()).unwrap();
            requests.push((path.file_name().unwrap().to_string_lossy().into(), format, request));
        }
    }
    requests
}
