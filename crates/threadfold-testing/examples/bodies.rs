//! Request bodies in every dialect, one a line, for checkers that are not ours.
//!
//! ```text
//! cargo run -p threadfold-testing --example bodies -- random FOLDER SEED COUNT
//! cargo run -p threadfold-testing --example bodies -- across FOLDER FILE...
//! ```
//!
//! `random` makes COUNT legal histories, from SEED on, and writes each of them before and after a
//! compaction. They hold what the newest forms of all providers have: see `bodies/history.rs`. `across`
//! writes the thread of each body in a file in all dialects.
//!
//! FOLDER gets a file for each dialect, and one for each version of Anthropic's API.

#[path = "bodies/compacted.rs"]
mod compacted;
#[path = "bodies/history.rs"]
mod history;

use std::{
    error::Error,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use history::History;
use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use threadfold::{
    Request, legality,
    wire::{AnthropicVersion, DecodeOptions, Dialect, EncodeOptions, find_body},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bodies random FOLDER SEED COUNT | bodies across FOLDER FILE...";
    let command = arguments.next().ok_or(usage)?;
    let mut writer = Writer::new(&PathBuf::from(arguments.next().ok_or(usage)?))?;
    match command.as_str() {
        "random" => {
            let seed: u64 = arguments.next().ok_or(usage)?.parse()?;
            let count: u64 = arguments.next().ok_or(usage)?.parse()?;
            for seed in seed..seed + count {
                random(seed, &mut writer).map_err(|error| format!("history {seed}: {error}"))?;
            }
        }
        "across" => {
            for file in arguments {
                across(Path::new(&file), &mut writer)
                    .map_err(|error| format!("{file}: {error}"))?;
            }
        }
        _ => return Err(usage.into()),
    }
    writer.finish()
}

/// Writes a random history before and after a compaction.
fn random(seed: u64, writer: &mut Writer) -> Result<(), Box<dyn Error>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let history = History::draw(&mut random)?;
    writer
        .write(&history.request, |models| models.get(below(&mut random, models.len())).copied())?;
    let after = compacted::compacted(&history, &mut random)?;
    let request = Request { messages: after.into(), ..history.request };
    writer.write(&request, |models| models.get(below(&mut random, models.len())).copied())
}

/// Writes the thread of a body in every dialect, for the model that the body names.
fn across(file: &Path, writer: &mut Writer) -> Result<(), Box<dyn Error>> {
    let bytes = fs::read(file)?;
    let found = find_body(&bytes, None)?;
    let options = DecodeOptions { reminders: true, summaries: true, ..DecodeOptions::default() };
    let request = found.dialect.decode_slice(found.body.as_bytes(), &options)?;
    writer.write(&request, |_| None)
}

/// A file of bodies.
struct Target {
    name: &'static str,
    dialect: Dialect,
    version: AnthropicVersion,
    /// Models with different rules.
    models: &'static [&'static str],
    file: BufWriter<File>,
}

type Row = (&'static str, Dialect, AnthropicVersion, &'static [&'static str]);

const TARGETS: [Row; 6] = [
    (
        "anthropic",
        Dialect::Anthropic,
        AnthropicVersion::V2023_06_01,
        &["claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-4-5"],
    ),
    (
        "anthropic-2026-10-21",
        Dialect::Anthropic,
        AnthropicVersion::V2026_10_21,
        &["claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-4-5"],
    ),
    (
        "openai-chat",
        Dialect::OpenAiChat,
        AnthropicVersion::V2023_06_01,
        &["gpt-5.5", "mistral-large-latest"],
    ),
    (
        "openai-responses",
        Dialect::OpenAiResponses,
        AnthropicVersion::V2023_06_01,
        &["gpt-6.2-sol", "gpt-5.5"],
    ),
    ("gemini", Dialect::Gemini, AnthropicVersion::V2023_06_01, &["gemini-3-pro", "gemini-2.5-pro"]),
    (
        "bedrock-converse",
        Dialect::BedrockConverse,
        AnthropicVersion::V2023_06_01,
        &[
            "anthropic.claude-opus-4-6-v1:0",
            "amazon.nova-pro-v1:0",
            "meta.llama3-1-70b-instruct-v1:0",
            "qwen.qwen3-32b-v1:0",
            "us.writer.palmyra-x5-v1:0",
            "openai.gpt-oss-120b-1:0",
        ],
    ),
];

/// Writes requests in every dialect.
struct Writer {
    targets: Vec<Target>,
    requests: u64,
}

impl Writer {
    fn new(folder: &Path) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(folder)?;
        let mut targets = Vec::new();
        for (name, dialect, version, models) in TARGETS {
            let file = BufWriter::new(File::create(folder.join(format!("{name}.jsonl")))?);
            targets.push(Target { name, dialect, version, models, file });
        }
        Ok(Self { targets, requests: 0 })
    }

    /// Writes a request in every dialect, for the model that `choose` takes of those of the dialect, or
    /// else for the one that the request names.
    fn write(
        &mut self,
        request: &Request,
        mut choose: impl FnMut(&[&'static str]) -> Option<&'static str>,
    ) -> Result<(), Box<dyn Error>> {
        self.requests += 1;
        for target in &mut self.targets {
            let model = choose(target.models);
            let named = model.map(EncodeOptions::for_model).unwrap_or_default();
            let options = EncodeOptions {
                anthropic_version: target.version,
                // A stored thread may end with an answer if no model is named that refuses this.
                accepts_prefill: named.accepts_prefill || model.is_none(),
                ..named
            };
            let encoded = target.dialect.encode(request, &options);
            let read = target
                .dialect
                .decode_slice(encoded.body.as_str().as_bytes(), &DecodeOptions::default())?;
            if let Some(violation) = legality::violations(&read.messages).first() {
                return Err(format!("{}: {violation}: {}", target.name, encoded.body).into());
            }
            match model.filter(|_| target.dialect == Dialect::BedrockConverse) {
                // The model is in the address of the request, and in the parameters of the SDK.
                Some(model) => {
                    let rest = encoded.body.as_str().trim_start_matches('{');
                    writeln!(target.file, "{{\"modelId\":\"{model}\",{rest}")?;
                }
                None => writeln!(target.file, "{}", encoded.body)?,
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        self.targets.iter_mut().try_for_each(|target| target.file.flush())?;
        eprintln!("{} requests, each in {} forms", self.requests, self.targets.len());
        Ok(())
    }
}

/// A number below `end`, or zero.
fn below(random: &mut Xoshiro256PlusPlus, end: usize) -> usize {
    let number = random.next_u64() >> 16;
    usize::try_from(number % (end.max(1) as u64)).unwrap_or_default()
}
