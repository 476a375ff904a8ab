//! The threads to compact: generated ones with planted facts, or real ones from a folder.

#![allow(clippy::wildcard_enum_match_arm, reason = "it plants in three kinds of blocks")]

use std::{borrow::Cow, fs, path::Path};

use serde_json::json;
use threadfold::{
    ContentBlock, Message, legality,
    message::{Redactor, ToolInput},
    wire::{DecodeOptions, find_body},
};
use threadfold_testing::generate;

/// A thread with fewer messages cannot be compacted five times.
const MIN_MESSAGES: usize = 20;

/// A thread with its name.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) messages: Vec<Message>,
}

/// Returns threads in the shape of those of coding agents, with planted facts: a rule in every
/// question, a path or a command in every call, an error in every failed result.
pub(crate) fn generated() -> Vec<Recorded> {
    (1..=3).map(|seed| planted(seed, 300)).collect()
}

/// Returns one such thread of this many messages.
pub(crate) fn planted(seed: u64, messages: usize) -> Recorded {
    let plain = generate::legal_thread_from(seed, messages);
    let mut plant = Plant { seed, planted: 0 };
    let messages = plain.iter().map(|message| plant.planted_in(message.redacted(&Plain)));
    Recorded { name: format!("generated {seed}"), messages: messages.collect() }
}

/// Returns the threads in the subfolders of a folder, request bodies or records of them, if they
/// are long enough.
pub(crate) fn real(folder: &Path) -> Result<Vec<Recorded>, String> {
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut threads = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        let Ok(files) = fs::read_dir(entry.map_err(named)?.path()) else { continue };
        for file in files {
            let path = file.map_err(named)?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                threads.extend(read(&path)?);
            }
        }
    }
    threads.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(threads)
}

fn read(path: &Path) -> Result<Option<Recorded>, String> {
    let named = |error: String| format!("{}: {error}", path.display());
    let bytes = fs::read(path).map_err(|error| named(error.to_string()))?;
    let request = find_body(&bytes, None).and_then(|found| {
        found.dialect.decode_slice(found.body.as_bytes(), &DecodeOptions::default())
    });
    let request = request.map_err(|error| named(error.to_string()))?;
    let (messages, _) = legality::repair(request.messages.to_vec());
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((messages.len() >= MIN_MESSAGES).then_some(Recorded { name, messages }))
}

/// Removes from generated texts everything that an audit would take for a fact.
#[derive(Debug)]
struct Plain;

impl Redactor for Plain {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.replace("src/main.rs", "it").replace("error:", "so").into()
    }
}

/// Plants facts in messages.
struct Plant {
    seed: u64,
    planted: usize,
}

const RULES: [&str; 6] = [
    "Never change the files of module {n} without asking me.",
    "Always keep the public names of part {n} as they are.",
    "You must not add a dependency for step {n}.",
    "Prefer small commits when you work on area {n}.",
    "Do not reformat code that belongs to team {n}.",
    "Please make sure that check {n} still passes.",
];

const ERRORS: [&str; 4] = [
    "error[E0{n}]: cannot find value in this scope",
    "ValueError: record {n} is not sorted",
    "fatal: branch topic-{n} does not exist",
    "npm err! code ENOENT in package part-{n}",
];

const COMMANDS: [&str; 4] = [
    "cargo test --test suite_{n}",
    "git diff topic-{n} --stat",
    "npm run build:part-{n}",
    "python3 tools/check.py --area {n}",
];

impl Plant {
    fn planted_in(&mut self, mut message: Message) -> Message {
        let typed = message.is_typed();
        for block in &mut message.make_mut().content {
            match block {
                ContentBlock::Text(block) if typed => {
                    block.text = format!("{} {}", self.one_of(&RULES), block.text).into();
                }
                ContentBlock::ToolUse(call) => {
                    let path = format!("src/area_{}/part_{}.rs", self.seed, self.planted / 2);
                    let input = match self.planted % 3 {
                        0 => json!({ "command": self.one_of(&COMMANDS) }),
                        _ => json!({ "path": path }),
                    };
                    call.input = ToolInput::from(input);
                    self.planted += 1;
                }
                ContentBlock::ToolResult(result) if result.is_error => {
                    result.content = vec![ContentBlock::text(self.one_of(&ERRORS))];
                }
                _ => {}
            }
        }
        message
    }

    /// Returns one of these sentences, each time a different one.
    fn one_of(&mut self, sentences: &[&str]) -> String {
        self.planted += 1;
        let sentence = sentences.get(self.planted % sentences.len()).copied().unwrap_or_default();
        sentence.replace("{n}", &(100 + self.planted).to_string())
    }
}
