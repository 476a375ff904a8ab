//! Reading the facts of threads of 1 and 10 MB, and auditing a window of 100 KB against them.
//!
//! `cargo bench --bench audit` prints, for each operation, the least, middle and most milliseconds
//! of some repetitions, the megabytes a second of its middle one, and the ratio to copying the same
//! bytes once (in the same run). One row is what a set of regular expressions for the same classes
//! takes for the same texts, without noting anything down. Last come texts of one kind each, which
//! say what costs.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use regex::RegexSet;
use threadfold::{
    ContentBlock, Message, Role,
    message::{Json, ToolResult, ToolUse},
    retention::{AuditOptions, Facts, RetentionPolicy, audit, enrich},
    tokens::ByteEstimate,
};
use yardstick::{Spread, memcpy, milliseconds, time};

mod yardstick;

fn main() {
    // `cargo test` runs benches too; it wants to see that they run, not how fast.
    let quick = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if quick { &[50_000] } else { &[1_000_000, 10_000_000] };
    for bytes in sizes {
        measure("mixed", &thread(*bytes));
    }
    let bytes = if quick { 20_000 } else { 1_000_000 };
    for (name, text, role) in [
        ("prose of the model", PROSE, Role::Assistant),
        ("prose of the user", PROSE, Role::User),
        ("code of the model", CODE, Role::Assistant),
    ] {
        let texts = (0..bytes / 1_000)
            .map(|index| Message::new(role, vec![ContentBlock::text(fill(text, index, 1_000))]));
        measure(name, &texts.collect::<Vec<_>>());
    }
    for (name, text) in [("code in results", CODE), ("output in results", OUTPUT)] {
        let results = (0..bytes / 1_000).map(|index| result(index, fill(text, index, 1_000)));
        measure(name, &results.collect::<Vec<_>>());
    }
}

fn measure(name: &str, thread: &[Message]) {
    let bytes = size(thread);
    let repetitions = (20_000_000 / bytes.max(1)).clamp(5, 50);
    println!("{name}: {} messages, {bytes} bytes of text", thread.len());
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>8} {:>9}",
        "operation", "least ms", "middle ms", "most ms", "MB/s", "x memcpy"
    );
    let copy = memcpy(thread, repetitions);
    let print = |name: &str, bytes: usize, spread: Spread| {
        println!(
            "{name:<34} {:>10} {:>10} {:>10} {:>8.0} {:>9.1}",
            milliseconds(spread.least),
            milliseconds(spread.middle),
            milliseconds(spread.most),
            bytes as f64 / 1e6 / spread.middle.as_secs_f64(),
            spread.over(copy),
        );
    };
    print("copy the texts (memcpy)", bytes, copy);
    let read = || Facts::of(thread, AuditOptions::default());
    print("read the facts", bytes, time(repetitions, || (), |()| read()));
    print("one pass of regular expressions", bytes, regular_expressions(thread, repetitions));
    let facts = read();
    let window = window(thread);
    let (within, policy) = (size(window), RetentionPolicy::default());
    let summary = "They parse lines. See `src/parser/mod.rs`; all 12 tests passed.";
    let enriched = || enrich(summary, &facts, window, &policy, &ByteEstimate::TRIGGER);
    print("audit a window of 100 KB", within, time(repetitions, || (), |()| facts.audit(window)));
    print("audit nothing", bytes, time(repetitions, || (), |()| facts.audit(&[])));
    print("enrich a summary beside the window", within, time(repetitions, || (), |()| enriched()));
    let options = AuditOptions::default();
    let whole = time(repetitions.min(5), || (), |()| audit(thread, window, &options));
    print("audit without facts at hand", bytes, whole);
    println!();
}

fn size(thread: &[Message]) -> usize {
    let blocks = thread.iter().flat_map(|message| &message.content);
    blocks.flat_map(yardstick::texts).map(str::len).sum()
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

/// The classes of facts as simply as regular expressions can say them, asked of every line.
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

fn regular_expressions(thread: &[Message], repetitions: usize) -> Spread {
    let set = RegexSet::new(PATTERNS).expect("they are regular expressions");
    let blocks = thread.iter().flat_map(|message| &message.content);
    let texts: Vec<&str> = blocks.flat_map(yardstick::texts).collect();
    let matched = |line: &str| set.matches(line).iter().count();
    let count = |text: &&str| text.lines().map(matched).sum::<usize>();
    time(repetitions, || (), |()| texts.iter().map(count).sum::<usize>())
}

/// What is said between calls. `@` stands for a number.
const PROSE: &str = "The parser reads a line at a time and keeps what it could not place, so the \
tree is whole only at the end. I looked at the places where nodes are folded: the limit is checked \
before the children are counted, which explains why the deepest ones are lost.

Next I will change the order in `src/parser/fold_@.rs` and run the tests again. Please keep the \
lexer as it is. The numbers of the last run look good, about 12 ms for a file of 3 MB; it is well \
known that the first run is slower. (Nothing else depends on this.) Whether the cache should be \
dropped is another question, and \"later\" is a good answer to it.

";

const CODE: &str = "    let kept: Vec<_> = lines.map(|line| line.trim()).collect();
    for (index, line) in kept.iter().enumerate() {
        match parser.place(index, line) {
            Placed::Here(node) => tree.insert(node, index),
            Placed::Later => waiting.push((index, line.to_owned())),
        }
    }
    // The order of what is left is the order of the file, see issue @.
    report.extend(waiting.drain(..).map(|(index, line)| Missing { index, line }));
    if report.is_empty() { return Ok(tree) }
    assert_eq!(report.len(), expected, \"see `place` for why\");
    def place_@(self, index, line):
        if index > self.limit_of_lines and not line.startswith('#'):
            raise ValueError(f\"line {index} is out of place\")
        return [node for node in self.nodes if node.depth == len(line)]
";

const OUTPUT: &str = "src/parser/file_@.rs:12:    pub fn place(&mut self, index: usize) {
src/parser/fold.rs:48:        self.waiting.push(index)
drwxr-xr-x  4 user user  4096 Jan 12 10:@ target
-rw-r--r--  1 user user 18234 Jan 12 10:31 Cargo.lock
test parser::tests::a_line_that_fits_is_placed ... ok
test parser::tests::a_line_of_@_is_left_over ... FAILED
test result: FAILED. 41 passed; 1 failed; 0 ignored; finished in 0.52s
thread 'parser::tests::left_over' panicked at src/parser/mod.rs:101:9:
warning: unused variable: `depth`
   --> src/parser/mod.rs:77:13
    |         ^^^^^ help: if this is intentional, prefix it with an underscore
commit 3f9a2c1b7d handles the empty file, as the reader of lines does
The command completed. The working directory is the root of the project.
";

/// As real threads are: results are half of the text, of code and of what programs print; then
/// what the model writes into files, what it says, and now and then a user.
fn thread(bytes: usize) -> Vec<Message> {
    let (mut messages, mut length) = (Vec::new(), 0);
    while length < bytes {
        let index = messages.len();
        let message = match index % 20 {
            0 => Message::user(fill(PROSE, index, size_of(index).min(700))),
            _ if index % 2 == 1 => call(index),
            _ => {
                let texts = [CODE, OUTPUT].map(|text| fill(text, index, size_of(index) / 2));
                result(index, texts.concat())
            }
        };
        length += size(std::slice::from_ref(&message));
        messages.push(message);
    }
    messages
}

fn result(index: usize, text: String) -> Message {
    Message::new(Role::User, vec![ToolResult::text(format!("t{index}"), text).into()])
}

fn call(index: usize) -> Message {
    let input = serde_json::json!({
        "path": format!("src/parser/file_{}.rs", index % 400),
        "new_string": fill(CODE, index, size_of(index) / 3),
    });
    let content = vec![
        ContentBlock::text(fill(PROSE, index, size_of(index) / 3)),
        ToolUse::new(format!("t{}", index + 1), "edit", Json::from(input)).into(),
    ];
    Message::new(Role::Assistant, content)
}

/// Most messages are short and some are long; on average a little over 1 KB.
fn size_of(index: usize) -> usize {
    let spread = index.wrapping_mul(2_654_435_761) >> 7;
    match spread % 50 {
        0 => 12_000,
        1..=9 => 3_000,
        10..=29 => 700,
        _ => 250,
    }
}

/// So many bytes of a text, with numbers that change from message to message and come again.
fn fill(text: &str, index: usize, bytes: usize) -> String {
    let text = text.replace('@', &(100 + index % 400).to_string());
    let mut filled = text.repeat(bytes / text.len() + 1);
    filled.truncate(bytes);
    filled
}
