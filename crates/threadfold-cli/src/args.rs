//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use threadfold::{CheckpointId, Replacement};

use threadfold::wire::Dialect;

use crate::{models::ModelOptions, when_quiet::WhenQuiet};

/// Keeps the threads of LLM agents inside their context window
///
/// Exit codes: 0 success; 1 failure, with one line that gives the reason; 2 invalid command line; 3
/// nothing to do, so the output equals the input.
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
    Hindsight(HindsightOptions),
    Chunked(ChunkedOptions),
    Edl(EdlOptions),
    Report(ReportOptions),
    Import(ImportOptions),
    Run(RunArguments),
    Proxy(ProxyArguments),
    Doctor(DoctorArguments),
    Status(StatusOptions),
    /// Show what `status` shows, again whenever it changes; Ctrl-C ends it
    Watch(StatusOptions),
    Mcp(McpArguments),
    /// Print completions for a shell; save them where the shell looks for completions
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page; read it with `man -l -`
    Man,
}

/// Make the thread of a request body smaller
///
/// Writes the new body to standard output and the report to standard error. The body stays valid
/// for its provider: a tool call stays with its result, and the user's last text stays.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold compact thread.json > smaller.json\n  \
    threadfold compact --target 20000 --strategy summarize --model claude-haiku-4-5 thread.json\n  \
    threadfold compact --keep-size --to openai-chat thread.json   (only changes the dialect)")]
pub(crate) struct CompactOptions {
    /// A request body, a bare array of messages, a record that holds the body as `request`, a log
    /// of a session, or the store of a proxy; `-` is standard input
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Target size in tokens; default: half of the window, or of the thread if no window is given
    #[arg(long, value_name = "TOKENS")]
    pub(crate) target: Option<u64>,
    /// Window of the model, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Strategy; `threadfold strategies FILE` compares all
    #[arg(long, value_name = "NAME", default_value = "ladder")]
    pub(crate) strategy: String,
    /// Do not compact: only repair, replace ranges or change the dialect
    #[arg(long)]
    pub(crate) keep_size: bool,
    /// Dialect of the file, if it is not recognised
    #[arg(long, value_name = "DIALECT")]
    pub(crate) from: Option<Dialect>,
    /// Dialect of the output: anthropic, bedrock-converse, gemini, openai-chat or openai-responses
    #[arg(long, value_name = "DIALECT")]
    pub(crate) to: Option<Dialect>,
    /// Replace the range between two checkpoints by this text; an empty FROM or TO means the start
    /// or the end
    #[arg(long, value_name = "FROM..TO=TEXT", value_parser = replacement)]
    pub(crate) replace: Vec<Replacement>,
    /// Insert a checkpoint after each user message, with ids from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) stamp: Option<u64>,
    /// Write the body to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the report as a JSON list of objects
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Show what a compaction kept, lost and invented
///
/// Searches facts word for word, without a model: paths, commands, errors, numbers, open tasks.
#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    /// The thread before, in any form that `compact` accepts; or, as the only file, a log with
    /// compactions or the store of a proxy
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The thread after the compaction
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) after: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Write the result as one JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a self-contained HTML page to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// Show the parts of the context by kind, tool and message, in tokens and money
#[derive(Args, Debug)]
pub(crate) struct ContextOptions {
    /// A thread, in any form that `compact` accepts
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Window of the model, in tokens, if the built-in table lacks the model
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Price of a million prompt tokens, in dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) price: Option<f64>,
    /// Number of largest messages to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) messages: usize,
    /// Write the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compare all strategies on one thread: size, cost and lost facts
#[derive(Args, Debug)]
pub(crate) struct StrategiesOptions {
    /// A thread, in any form that `compact` accepts
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Target size in tokens; default: half of the thread
    #[arg(long, value_name = "TOKENS")]
    pub(crate) target: Option<u64>,
    /// Write the table as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Show how much of what the agent needed next each strategy would have kept
///
/// Cuts each thread, compacts what is before the cut, and searches the result for the paths,
/// identifiers and numbers that the agent used after the cut and had from before it. Asks no judge.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold hindsight threads/*.json\n  \
    threadfold hindsight --strategy digest --cut 0.5 --cut 0.75 thread.json")]
pub(crate) struct HindsightOptions {
    /// Threads, in any form that `compact` accepts
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Share of the thread's text that is before the cut; several give several cuts
    #[arg(long, value_name = "SHARE", default_values_t = [0.75])]
    pub(crate) cut: Vec<f64>,
    /// Target, as a share of the tokens before the cut
    #[arg(long, value_name = "SHARE", default_values_t = [0.1, 0.2, 0.3, 0.5])]
    pub(crate) share: Vec<f64>,
    /// Strategy; default: all
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Vec<String>,
    /// Dialect of the files, if it is not recognised
    #[arg(long, value_name = "DIALECT")]
    pub(crate) from: Option<Dialect>,
    /// Write one JSON object for each thread, strategy and target
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with a chart, the table, and what is gone of each thread
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    pub(crate) page: Option<PathBuf>,
    /// Write one JSON object for each name before the cut: whether it was needed, and its features
    #[arg(long, hide = true)]
    pub(crate) facts: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Summarise long threads chunk by chunk; a stopped run can be continued
#[derive(Args, Debug)]
pub(crate) struct ChunkedOptions {
    /// Threads, in any form that `compact` accepts; several files are one long thread
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Save the run in this file after every answer; given the same file again, it continues
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// Size of a chunk, in tokens
    #[arg(long = "chunk", value_name = "TOKENS", default_value_t = 25_000)]
    pub(crate) chunk_tokens: usize,
    /// Write only summary, number of chunks, usage and notes, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Run an edit script over files
///
/// Prints the resulting files and the failures as one JSON object. Without `--write` no file on
/// disk changes.
#[derive(Args, Debug)]
pub(crate) struct EdlOptions {
    /// The script; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) script: String,
    /// The files that the script may change, within the working folder
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<String>,
    /// Print the report as a model gets it
    #[arg(long)]
    pub(crate) text: bool,
    /// Write all files that the script changed or created, or none if any edit failed
    #[arg(long)]
    pub(crate) write: bool,
}

/// Write a page about the compactions in a log: time, reason, removed and kept content, cost
#[derive(Args, Debug)]
pub(crate) struct ReportOptions {
    /// A log of `JsonlStore` or `threadfold import`, or the store of a proxy
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Window of the model, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// The page, a self-contained HTML file
    #[arg(long, short, value_name = "FILE", default_value = "threadfold-report.html")]
    pub(crate) output: PathBuf,
}

/// Import the stored log of an agent, to continue its thread elsewhere
///
/// Writes a log of threadfold, or with `--to` a request body. Lists on standard error the lines
/// that are not part of the thread, and all changes. The times of messages are not imported.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// The log, in JSON Lines or as one document
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) log: PathBuf,
    /// Agent that wrote the log, if it is not recognised
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<StoredBy>,
    /// Write a request body of this dialect instead of a log
    #[arg(long, value_name = "DIALECT")]
    pub(crate) to: Option<Dialect>,
    /// File with the system prompt, because agents do not log it completely
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) system: Option<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// The agents whose logs can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoredBy {
    /// Claude Code: ~/.claude/projects/*/*.jsonl
    ClaudeCode,
    /// Codex: ~/.codex/sessions/*/*/*/rollout-*.jsonl
    Codex,
    /// pi: ~/.pi/agent/sessions/*/*.jsonl
    Pi,
    /// Gemini CLI: ~/.gemini/tmp/*/chats/session-*
    GeminiCli,
    /// Qwen Code: ~/.qwen/projects/*/chats/*.jsonl
    QwenCode,
    /// OpenCode: the output of `opencode export`
    #[value(name = "opencode")]
    OpenCode,
    /// SWE-agent: *.traj
    SweAgent,
    /// mini-swe-agent: *.traj.json
    MiniSweAgent,
    /// OpenHands: a trajectory, an array of events
    #[value(name = "openhands")]
    OpenHands,
    /// Agent Development Kit: a session with its events, in JSON
    Adk,
    /// inspect: a log in JSON; `inspect log convert` makes one of an .eval file
    Inspect,
}

impl StoredBy {
    /// The name of the agent for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Pi => "pi",
            Self::GeminiCli => "Gemini CLI",
            Self::QwenCode => "Qwen Code",
            Self::OpenCode => "OpenCode",
            Self::SweAgent => "SWE-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::OpenHands => "OpenHands",
            Self::Adk => "the Agent Development Kit",
            Self::Inspect => "inspect",
        }
    }
}

/// Compact between any agent and its provider: the agent keeps its whole thread, the provider gets
/// a smaller one
///
/// Point the agent at this server, for example with ANTHROPIC_BASE_URL=http://127.0.0.1:8787 or
/// OPENAI_BASE_URL=http://127.0.0.1:8787/v1. Threads in Anthropic Messages, OpenAI Chat
/// Completions, OpenAI Responses and Gemini are compacted; all other requests pass unchanged. Keys
/// are passed on and never stored. After any internal failure the agent's own request is sent.
///
/// http://127.0.0.1:8787/threadfold shows the threads.
#[derive(Args, Debug)]
pub(crate) struct ProxyArguments {
    /// Address to listen on; only this machine can reach the default
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    pub(crate) listen: std::net::SocketAddr,
    /// Server for requests in the Anthropic dialect
    #[arg(long, value_name = "URL", default_value = "https://api.anthropic.com")]
    pub(crate) anthropic: String,
    /// Server for OpenAI's dialects, and for requests that belong to no vendor
    #[arg(long, value_name = "URL", default_value = "https://api.openai.com")]
    pub(crate) openai: String,
    /// Server for requests in the dialect of Gemini
    #[arg(long, value_name = "URL", default_value = "https://generativelanguage.googleapis.com")]
    pub(crate) gemini: String,
    #[command(flatten)]
    pub(crate) serving: ServingOptions,
}

/// Run an agent with its thread kept inside the window: one word in front of its command
///
/// Starts a proxy on a free port, points the agent at it, passes the terminal through, and takes
/// everything down when the agent ends. The exit code is the agent's; 128 and the number of the
/// signal if one killed it; 127 if there is no such program.
///
/// Recognised: aider, Claude Code, Codex, Gemini CLI, llm, OpenCode, pi and Qwen Code. For any other
/// program name the APIs that it uses. Requests go where they would go without threadfold: to the
/// address in the agent's own variable, or else to the vendor.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold run -- claude\n  \
    threadfold run -- codex exec \"fix the build\"\n  \
    threadfold run --window 32768 --openai=http://127.0.0.1:11434/v1 -- aider\n  \
    threadfold run --anthropic -- python my_agent.py")]
pub(crate) struct RunArguments {
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "AGENT", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Agent that the command starts, if its name does not say it
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<Agent>,
    /// The agent uses Anthropic's API; with an address, its requests go there
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(crate) anthropic: Option<Option<String>>,
    /// The agent uses OpenAI's API; with an address, its requests go there
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(crate) openai: Option<Option<String>>,
    /// The agent uses the API of Gemini; with an address, its requests go there
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(crate) gemini: Option<Option<String>>,
    /// Address of the proxy; port 0 is a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    #[command(flatten)]
    pub(crate) serving: ServingOptions,
}

/// The agents that `run` points at its proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// aider
    Aider,
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// llm
    Llm,
    /// OpenCode
    Opencode,
    /// pi
    Pi,
    /// Qwen Code
    Qwen,
}

/// How a proxy compacts, and what it stores.
#[derive(Args, Debug)]
pub(crate) struct ServingOptions {
    /// Folder for threads and views
    #[arg(long, value_name = "FOLDER", default_value = ".threadfold", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Window of the model, in tokens; default: the published window of the model in the request
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Share of the window at which a thread is compacted
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) threshold: f64,
    /// Strategy; without a model the ladder ends with a digest
    #[arg(long, value_name = "NAME", default_value = "ladder")]
    pub(crate) strategy: String,
    /// What to do while an agent is quiet, shortly before the provider's prompt cache dies
    #[arg(long, value_enum, default_value_t = WhenQuiet::Nothing)]
    pub(crate) when_quiet: WhenQuiet,
    /// Only report which threads would be compacted
    #[arg(long)]
    pub(crate) shadow: bool,
    /// Maximum size of a request body, in bytes; larger ones are refused
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    pub(crate) max_body: usize,
    /// Maximum number of threads in the folder; the one compacted longest ago is deleted first
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub(crate) max_threads: usize,
    /// Maximum size of the threads in the folder, in bytes; the one compacted longest ago is deleted
    /// first
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024 * 1024)]
    pub(crate) max_stored: u64,
    /// Maximum time of a compaction, in seconds; after it the request is sent uncompacted
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) patience: u64,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
}

/// Examine what a proxy with these options needs, and what it would do with a request
///
/// Examines the address, the folder, the keys in the environment, the servers, and, given a request
/// body, the window of its model. Nothing is changed, and no key is shown or sent. Ends with 1 if a
/// proxy could not run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold doctor\n  \
    threadfold doctor --openai http://127.0.0.1:11434/v1 --window 32768 thread.json")]
pub(crate) struct DoctorArguments {
    /// A request, in any form that `compact` accepts
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) thread: ThreadOption,
    /// Write one JSON array
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) proxy: ProxyArguments,
}

/// Show the proxies of a folder, and the threads that they compacted
#[derive(Args, Debug)]
pub(crate) struct StatusOptions {
    /// Folder of the proxies
    #[arg(long, value_name = "FOLDER", default_value = ".threadfold", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Number of threads to list, the one that was compacted last first
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) threads: usize,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let an agent read what compactions removed: an MCP server on standard input and output
///
/// All tools are read-only: `threads` lists the stored threads, `recall` reads removed messages
/// word for word, `search` finds words in them, and `audit` lists what a compaction lost. Add this
/// command, with the folder of the proxy, to the agent's list of MCP servers.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    threadfold mcp                     (the threads of `threadfold proxy`, in .threadfold)\n  \
    threadfold mcp ~/project/.threadfold logs/ thread.jsonl")]
pub(crate) struct McpArguments {
    /// Where threads are stored: the folder of a proxy, an SQLite database of threads, a folder of
    /// logs, or one log
    #[arg(value_name = "PATH", default_value = ".threadfold", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Which thread of a store to read.
#[derive(Args, Debug)]
pub(crate) struct ThreadOption {
    /// The thread to read if the file is a store with several: the folder of a proxy, a folder of
    /// logs, or a database
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
}

impl ThreadOption {
    pub(crate) fn id(&self) -> Option<&str> {
        self.thread.as_deref()
    }
}

/// Reads `FROM..TO=TEXT`; either side may be empty.
fn replacement(value: &str) -> Result<Replacement, String> {
    const FORM: &str = "it has the form FROM..TO=TEXT";
    let (range, summary) = value.split_once('=').ok_or(FORM)?;
    let (from, to) = range.split_once("..").ok_or(FORM)?;
    let mut replacement = Replacement::new(summary);
    (replacement.from, replacement.to) = (checkpoint(from)?, checkpoint(to)?);
    Ok(replacement)
}

fn checkpoint(text: &str) -> Result<Option<CheckpointId>, String> {
    let id = (!text.is_empty()).then(|| text.parse::<CheckpointId>());
    id.transpose().map_err(|error| error.to_string())
}
