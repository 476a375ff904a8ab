//! Real requests, for the tests that need them.
//!
//! They are in the folder that `THREADFOLD_TRANSCRIPTS` names, otherwise in a folder
//! `shared/transcripts` beside the project. Without either there are none, and a line says so.

use std::{env, fs, path::PathBuf};

use serde_json::value::RawValue;
use threadfold::{
    Request, WireFormat,
    wire::{DecodeOptions, Dialect},
};

pub(crate) const FORMATS: [(&str, &dyn WireFormat); 5] = [
    ("anthropic-messages", &Dialect::Anthropic),
    ("bedrock-converse", &Dialect::BedrockConverse),
    ("gemini", &Dialect::Gemini),
    ("openai-chat", &Dialect::OpenAiChat),
    ("openai-responses", &Dialect::OpenAiResponses),
];

/// A record around a request body.
#[derive(serde::Deserialize)]
struct Record {
    request: Box<RawValue>,
}

/// Every real request of a dialect with a codec, with the name of its file.
pub(crate) fn requests() -> Vec<(String, &'static dyn WireFormat, Request)> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/transcripts");
    let root = env::var_os("THREADFOLD_TRANSCRIPTS").map_or_else(beside, PathBuf::from);
    let mut requests = Vec::new();
    for (folder, format) in FORMATS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let record: Record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let body = record.request.get().as_bytes();
            let request = format.decode_slice(body, &DecodeOptions::default()).unwrap();
            requests.push((path.file_name().unwrap().to_string_lossy().into(), format, request));
        }
    }
    if requests.is_empty() {
        println!("skipped: no transcripts in {}", root.display());
    }
    requests
}
