//! The threads: those of the repository, and those of the folder that `THREADFOLD_TRANSCRIPTS` names.

use std::{env, fs, path::PathBuf};

use serde_json::value::RawValue;
use threadfold::{
    Message,
    wire::{DecodeOptions, Dialect},
};

/// A record around a request body.
#[derive(serde::Deserialize)]
struct Record {
    request: Box<RawValue>,
}

/// The folder of each dialect.
const FOLDERS: [(&str, Dialect); 5] = [
    ("anthropic-messages", Dialect::Anthropic),
    ("bedrock-converse", Dialect::BedrockConverse),
    ("gemini", Dialect::Gemini),
    ("openai-chat", Dialect::OpenAiChat),
    ("openai-responses", Dialect::OpenAiResponses),
];

/// The messages of every thread, in the order of their files.
pub(crate) fn all() -> Vec<Vec<Message>> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/threads");
    let folders = [Some(own), env::var_os("THREADFOLD_TRANSCRIPTS").map(PathBuf::from)];
    let mut threads = Vec::new();
    for folder in folders.into_iter().flatten() {
        for (name, dialect) in FOLDERS {
            let Ok(entries) = fs::read_dir(folder.join(name)) else { continue };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                let record = fs::read(&path).expect("a file");
                let record: Record = serde_json::from_slice(&record).expect("a record");
                let body = record.request.get().as_bytes();
                let request = dialect.decode_slice(body, &DecodeOptions::default());
                threads.push(request.expect("a body").messages.to_vec());
            }
        }
    }
    threads
}
