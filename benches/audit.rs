//! Reading the facts of threads of 1, 10 and 100 MB, and auditing a window of 100 KB against them.
//!
//! `cargo bench --bench audit` prints the table that `benches/README.md` explains, relative to a
//! copy of the thread's text and to a set of regular expressions for the same classes that records
//! nothing. The last rows are texts of one kind each, which show the cost of each kind.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::sync::Arc;

use regex::RegexSet;
use threadfold::{
    ContentBlock, Message, Role, StrategyRegistry,
    message::{Answer, StopReason, ToolResult},
    retention::{Facts, RetentionPolicy, Statements, audit, enrich},
    strategy::{Brief, CompactionStrategy, ModelCall, Proposal, Snapshot, View},
    testing::asked,
    tokens::{ByteEstimate, TokenCounter},
};
use yardstick::{
    Row, Tables, is_test, memcpy, row, texts,
    thread::{self, CODE, OUTPUT, PROSE, fill, size},
};

fn main() {
    let sizes: &[usize] = if is_test() { &[60] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        measure(&mut tables, &thread::thread(*count));
    }
    let count = if is_test() { 20 } else { 1_000 };
    for (name, text, role) in [
        ("prose of the model", PROSE, Role::Assistant),
        ("prose of the user", PROSE, Role::User),
        ("code of the model", CODE, Role::Assistant),
    ] {
        println!("{name}");
        let said = |index| vec![ContentBlock::text(fill(text, index, 1_000))];
        let texts = (0..count).map(|index| Message::new(role, said(index)));
        measure(&mut Tables::default(), &texts.chain(read()).collect::<Vec<_>>());
    }
    for (name, text) in [("code in results", CODE), ("output in results", OUTPUT)] {
        println!("{name}");
        let results = (0..count).map(|index| {
            let result = ToolResult::text(format!("t{index}"), fill(text, index, 1_000));
            Message::new(Role::User, vec![result.into()])
        });
        measure(&mut Tables::default(), &results.chain(read()).collect::<Vec<_>>());
    }
}

/// An answer to all that is before it, so that a compaction may remove that.
fn read() -> [Message; 2] {
    [Message::assistant("I read it."), Message::user("Go on.")]
}

fn measure(tables: &mut Tables, thread: &[Message]) {
    let bytes = size(thread);
    let repetitions = (20_000_000 / bytes.max(1)).clamp(3, 50);
    let nothing = || ();
    let options = RetentionPolicy::default();
    let facts = Facts::of(thread, &options);
    let window = window(thread);
    let policy = RetentionPolicy::default();
    let summary = "They parse lines. See `src/parser/mod.rs`; all 12 tests passed.";
    let rows = vec![
        memcpy(thread, repetitions),
        regular_expressions(thread, repetitions),
        row("read the facts", repetitions, nothing, |()| Facts::of(thread, &options)),
        row("audit a window of 100 KB", repetitions, nothing, |()| facts.audit(window)),
        row("audit nothing", repetitions, nothing, |()| facts.audit(&[])),
        row("enrich a summary beside the window", repetitions, nothing, |()| {
            enrich(summary, &facts, window, &policy, &ByteEstimate::TRIGGER)
        }),
        row("audit without facts at hand", repetitions.min(5), nothing, |()| {
            audit(thread, window, &options)
        }),
        row("read what the user typed", repetitions, nothing, |()| Statements::of(thread)),
        compaction("a whole compaction without a model", "digest", thread, true, repetitions),
        compaction(
            "all work beside a model, from nothing",
            "summarize",
            thread,
            false,
            repetitions,
        ),
        compaction("all work beside a model, facts kept", "summarize", thread, true, repetitions),
    ];
    tables.print("messages", thread.len(), bytes, rows);
}

/// All work of a compaction to an eighth of the size, except the calls of its model: the proposal,
/// the rules, the audit, the user's words and the addendum. For a thread that was never compacted
/// the facts and rules of all messages are read; a session keeps them from one compaction to the
/// next and reads only the messages since.
fn compaction(
    name: &'static str,
    strategy: &str,
    thread: &[Message],
    keeps_facts: bool,
    repetitions: usize,
) -> Row {
    let read = || {
        let facts = Facts::of(thread, &RetentionPolicy::default());
        Snapshot::new(thread.to_vec()).with_facts(Arc::new(facts))
    };
    let kept = keeps_facts.then(read);
    let target = Some(ByteEstimate::TRIGGER.messages(thread) / 8);
    let retention = Some(RetentionPolicy::default());
    let brief = Brief { target, retention, ..Brief::default() };
    let registry = StrategyRegistry::default();
    let strategy = registry.get(strategy).expect("it is registered");
    row(
        name,
        repetitions.min(10),
        || kept.clone(),
        |kept| {
            let view = View::new(kept.unwrap_or_else(read), brief.clone());
            let proposal = proposed(strategy.as_ref(), &view);
            view.thread.settle(proposal, &brief).expect("it is legal")
        },
    )
}

/// Returns the proposal of a strategy whose model answers with one summary. The summary contains
/// facts that the thread does not, so all of the thread is searched for them.
fn proposed(strategy: &dyn CompactionStrategy, view: &View) -> Proposal {
    const SUMMARY: &str = "They parse lines. See `src/parser/mod.rs`; all 12 tests passed. Ask Zora \
                           Quent about src/parser/unheard_of.rs, which took 417 ms.";
    let answer =
        |_: &ModelCall| Ok(Answer::new(Message::assistant(SUMMARY), StopReason::EndTurn, None));
    asked(strategy, view, answer).1.expect("it is a proposal")
}

/// The last 100 KB.
fn window(thread: &[Message]) -> &[Message] {
    let mut bytes = 0;
    let within = thread.iter().rev().take_while(|message| {
        bytes += size(std::slice::from_ref(message));
        bytes <= 100_000
    });
    &thread[thread.len() - within.count()..]
}

/// The classes of facts as simple regular expressions, searched in every line.
const PATTERNS: [&str; 9] = [
    r"(?-u)[a-z+]+://[!-~]+",
    r"(?-u)[\w.~-]*/[\w./-]+|\b\w+\.(?:rs|py|ts|js|toml|json|md)\b",
    r"(?-u)\bv?\d+\.\d+\.\d+\b",
    r"(?-u)\b[0-9a-f]{7,40}\b",
    r"(?-u)\b(?:[a-z]+_[a-z_]+|[a-z]+[A-Z]\w+|\w+::\w+)\b",
    r"(?-u)\b\d[\d.,]*\s?(?:ms|s|MB|KB|%|tests?|lines?|tokens?)",
    r"(?i-u)^\s*(?:error|fatal|failed)\b[ -~]*:|panicked at|command not found|permission denied",
    r"(?-u)\b(?:E\d{4}|TS\d{4}|ENOENT|EACCES)\b",
    r"(?i-u)\b(?:must|never|always|don't|do not|only|avoid)\b",
];

fn regular_expressions(thread: &[Message], repetitions: usize) -> Row {
    let set = RegexSet::new(PATTERNS).expect("they are regular expressions");
    let blocks = thread.iter().flat_map(|message| &message.content);
    let texts: Vec<&str> = blocks.flat_map(texts).collect();
    let matched = |line: &str| set.matches(line).iter().count();
    let count = |text: &&str| text.lines().map(matched).sum::<usize>();
    let pass = |()| texts.iter().map(count).sum::<usize>();
    row("one pass of regular expressions", repetitions, || (), pass).yardstick("regex")
}
