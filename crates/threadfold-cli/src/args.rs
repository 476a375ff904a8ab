//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use threadfold::{CheckpointId, Replacement};

use crate::{input::Dialect, models::ModelOptions};

/// Keeps the threads of LLM agents inside their context window
///
/// Exit codes: 0 done; 1 not done, with one line that says why; 2 a command line that cannot be read;
/// 3 nothing to do, and what is written is what was read.
#[derive(Debug, Parser)]
#[command(name = "threadfold", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compact(CompactOptions),
    Audit(AuditArguments),
    Context(ContextOptions),
    Strategies(StrategiesOptions),
    Chunked(ChunkedOptions),
    Edl(EdlOptions),
    Report(ReportOptions),
    Import(ImportOptions),
    Proxy(ProxyArguments),
    Mcp(McpArguments),
    /// Print completions for a shell, to be put where that shell looks for them
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page, to be read with `man -l -`
    Man,
}

/// Make the thread of a request body smaller
///
/// The new body goes to standard output, the report to standard error. It stays legal for its
/// provider: a tool call stays with its result, and what the user typed last stays.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold compact thread.json > smaller.json\n  \
    threadfold compact --target 20000 --strategy summarize --model claude-haiku-4-5 thread.json\n  \
    threadfold compact --keep-size --to openai-chat thread.json   (only changes the dialect)")]
pub(crate) struct CompactOptions {
    /// A request body, a bare array of messages, or a record that holds the body as `request`;
    /// `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The size to reach, in tokens; half of the window, or of the thread, if it is not given
    #[arg(long, value_name = "TOKENS")]
    pub(crate) target: Option<u64>,
    /// The window of the model that the body is for, in tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// How to compact; `threadfold strategies FILE` compares them
    #[arg(long, value_name = "NAME", default_value = "ladder")]
    pub(crate) strategy: String,
    /// Do not compact: only repair, replace ranges or change the dialect
    #[arg(long)]
    pub(crate) keep_size: bool,
    /// The dialect of the file, where it cannot be found out
    #[arg(long, value_name = "DIALECT", value_parser = crate::input::named)]
    pub(crate) from: Option<Dialect>,
    /// The dialect of the output: anthropic, bedrock-converse, gemini, openai-chat or
    /// openai-responses
    #[arg(long, value_name = "DIALECT", value_parser = crate::input::named)]
    pub(crate) to: Option<Dialect>,
    /// Replace the range between two checkpoints by this text; either side may be empty
    #[arg(long, value_name = "FROM..TO=TEXT", value_parser = replacement)]
    pub(crate) replace: Vec<Replacement>,
    /// Put a checkpoint after each message of the user, with ids from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) stamp: Option<u64>,
    /// Write the body to this file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Show what a compaction kept, lost and invented
///
/// Facts are looked for word for word: paths, commands, errors, numbers, demands. No model is asked.
#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    /// The thread before, as `compact` takes it; or, alone, a log with its compactions
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The thread after
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) after: Option<PathBuf>,
    /// Write everything as one JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page: one HTML file that fetches nothing
    #[arg(long, value_name = "FILE", conflicts_with = "json", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// Show what the context is made of: by kind, tool and message, in tokens and money
#[derive(Args, Debug)]
pub(crate) struct ContextOptions {
    /// A thread, as `compact` takes it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The window of the model, in tokens, where no table knows it
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// What a million tokens of a prompt cost, in dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) price: Option<f64>,
    /// How many of the largest messages to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) messages: usize,
    /// Write everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compare every strategy on one thread: what each leaves, costs and loses
#[derive(Args, Debug)]
pub(crate) struct StrategiesOptions {
    /// A thread, as `compact` takes it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The size to reach, in tokens; half of the thread if it is not given
    #[arg(long, value_name = "TOKENS")]
    pub(crate) target: Option<u64>,
    /// Write the table as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Summarise long threads chunk by chunk; it can be stopped and goes on where it was
#[derive(Args, Debug)]
pub(crate) struct ChunkedOptions {
    /// Threads, as `compact` takes them; several are one long thread
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Keep the run in this file after every answer; with the same file it goes on
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// The size of a chunk, in tokens
    #[arg(long = "chunk", value_name = "TOKENS", default_value_t = 25_000)]
    pub(crate) chunk_tokens: usize,
    /// Write only the summary and what it cost, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Run an edit script over files
///
/// Prints the files and what failed as one JSON object. Nothing on disk changes without `--write`.
#[derive(Args, Debug)]
pub(crate) struct EdlOptions {
    /// The script; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) script: String,
    /// The files that the script may change, in the working folder
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<String>,
    /// Print the report that a model would get
    #[arg(long)]
    pub(crate) text: bool,
    /// Write all files that the script changed or made, or none if any failed
    #[arg(long)]
    pub(crate) write: bool,
}

/// Write a page about the compactions in a log: when, why, what went, what is kept, what it cost
#[derive(Args, Debug)]
pub(crate) struct ReportOptions {
    /// A log, as `JsonlStore` and `threadfold import` write it
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) log: PathBuf,
    /// The window of the model, in tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// The page: one HTML file that fetches nothing
    #[arg(long, short, value_name = "FILE", default_value = "threadfold-report.html")]
    pub(crate) output: PathBuf,
}

/// Take the stored log of Claude Code, Codex or pi over, so that its thread goes on elsewhere
///
/// Writes a log of threadfold, or with `--to` a request body. What is not part of the thread, and what
/// had to be changed, goes to standard error. The times of messages are not taken over.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// The log: a file of lines of JSON
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) log: PathBuf,
    /// Whose log it is, where it cannot be found out
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<StoredBy>,
    /// Write a request body of this dialect
    #[arg(long, value_name = "DIALECT", value_parser = crate::input::named)]
    pub(crate) to: Option<Dialect>,
    /// A file with the system prompt, which no log of an agent holds whole
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) system: Option<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// The agents whose logs can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoredBy {
    /// Claude Code: ~/.claude/projects/*/*.jsonl
    ClaudeCode,
    /// Codex: ~/.codex/sessions/*/*/*/rollout-*.jsonl
    Codex,
    /// pi: ~/.pi/agent/sessions/*/*.jsonl
    Pi,
}

/// Stand between any agent and its model: the agent's thread grows, the provider's does not
///
/// Point the agent here, for example with ANTHROPIC_BASE_URL=http://127.0.0.1:8787 or
/// OPENAI_BASE_URL=http://127.0.0.1:8787/v1. It speaks Anthropic Messages, OpenAI Chat Completions
/// and OpenAI Responses; whatever else comes goes through untouched. Keys are passed on and kept
/// nowhere. Whatever fails inside, the agent's own request is sent.
///
/// http://127.0.0.1:8787/threadfold shows the threads.
#[derive(Args, Debug)]
pub(crate) struct ProxyArguments {
    /// Where to listen; only this machine can reach the default
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    pub(crate) listen: std::net::SocketAddr,
    /// Where requests in the dialect of Anthropic go
    #[arg(long, value_name = "URL", default_value = "https://api.anthropic.com")]
    pub(crate) anthropic: String,
    /// Where all other requests go
    #[arg(long, value_name = "URL", default_value = "https://api.openai.com")]
    pub(crate) openai: String,
    /// The folder of threads and views
    #[arg(long, value_name = "FOLDER", default_value = ".threadfold", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// The window of the model, in tokens; without it the published one of the model that is asked
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// The share of the window at which a thread is compacted
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) threshold: f64,
    /// How to compact; without a model the ladder ends with a digest
    #[arg(long, value_name = "NAME", default_value = "ladder")]
    pub(crate) strategy: String,
    /// Only report what would be compacted
    #[arg(long)]
    pub(crate) shadow: bool,
    /// The longest body of a request, in bytes; longer ones are refused
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    pub(crate) max_body: usize,
    /// How long a compaction may take, in seconds, before the request goes on without it
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) patience: u64,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Let an agent read what was compacted away: an MCP server on standard input and output
///
/// Its tools only read: `threads` lists the stored threads, `recall` reads removed messages word for
/// word, `search` looks for words in them, and `audit` says what a compaction lost. Put it into the
/// agent's list of MCP servers, with this command and the folder of the proxy.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold mcp                     (the threads of `threadfold proxy`, in .threadfold)\n  \
    threadfold mcp ~/project/.threadfold logs/ thread.jsonl")]
pub(crate) struct McpArguments {
    /// Where threads are stored: the folder of a proxy, a SQLite database of threads, a folder of
    /// logs, or one log
    #[arg(value_name = "PATH", default_value = ".threadfold", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Reads `FROM..TO=TEXT`; either side may be empty.
fn replacement(value: &str) -> Result<Replacement, String> {
    let refuse = || "it has the form FROM..TO=TEXT".to_owned();
    let (range, summary) = value.split_once('=').ok_or_else(refuse)?;
    let (from, to) = range.split_once("..").ok_or_else(refuse)?;
    let id = |text: &str| -> Result<Option<CheckpointId>, String> {
        let id = (!text.is_empty()).then(|| text.parse());
        id.transpose().map_err(|error| format!("{error}"))
    };
    let mut replacement = Replacement::new(summary);
    (replacement.from, replacement.to) = (id(from)?, id(to)?);
    Ok(replacement)
}
