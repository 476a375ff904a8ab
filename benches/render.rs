//! Rendering and chunking of threads of 1, 10 and 100 MB, about 1 KB a message.
//!
//! `cargo bench --bench render` prints, for each operation and size, the least, middle and most
//! milliseconds of some repetitions, the ratio to copying the rendered bytes once into a buffer that
//! is there already (in the same run; 4 means a quarter of its speed), and the exponent of growth
//! from the size before, to be read against that of the copy. Last come renderings of one kind of
//! text each, which say what costs.

#![allow(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::hint::black_box;

use threadfold::{
    ContentBlock, Message, Role,
    message::{Json, Thinking, ToolResult, ToolUse},
    render::{
        ChunkBudget, RenderOptions, Rendered, chunk, chunk_ranges, render, render_into, write_to,
    },
};
use yardstick::{Spread, exponent, milliseconds, time};

mod yardstick;

type Row = (&'static str, Spread);

fn main() {
    // `cargo test` runs benches too; it wants to see that they run, not how fast.
    let quick = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if quick { &[100] } else { &[1_000, 10_000, 100_000] };
    let mut before: Vec<(usize, Spread)> = Vec::new();
    for messages in sizes {
        let thread = thread(*messages);
        let rows = measure(&thread, &RenderOptions::default());
        before = print(*messages, rows, &before);
    }
    let messages = if quick { 100 } else { 10_000 };
    for (name, text) in TEXTS {
        println!("texts only: {name}");
        let texts: Vec<Message> = (0..messages).map(|index| texts_only(index, text)).collect();
        print(messages, measure(&texts, &RenderOptions::default()), &[]);
    }
}

fn print(messages: usize, rows: Vec<Row>, before: &[(usize, Spread)]) -> Vec<(usize, Spread)> {
    println!(
        "{:<34} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "operation", "messages", "least ms", "middle ms", "most ms", "x memcpy", "exponent"
    );
    let Some((_, copy)) = rows.first().copied() else { return Vec::new() };
    for (index, (name, spread)) in rows.iter().enumerate() {
        let growth = before.get(index).map(|small| exponent(*small, (messages, *spread)));
        println!(
            "{name:<34} {messages:>9} {:>10} {:>10} {:>10} {:>9.4} {:>9}",
            milliseconds(spread.least),
            milliseconds(spread.middle),
            milliseconds(spread.most),
            spread.over(copy),
            growth.map(|growth| format!("{growth:.2}")).unwrap_or_default(),
        );
    }
    println!();
    rows.into_iter().map(|(_, spread)| (messages, spread)).collect()
}

fn measure(thread: &[Message], options: &RenderOptions) -> Vec<Row> {
    let repetitions = (1_000_000 / thread.len().max(1)).clamp(7, 200);
    let rendered = render(thread, options);
    println!("{} messages, {} bytes rendered", thread.len(), rendered.len());
    let budget = ChunkBudget::default();
    let small = ChunkBudget::of_tokens(250, 50);
    let mut reused = render(thread, options);
    let pretty = RenderOptions { pretty_inputs: true, ..options.clone() };
    let mut indented = render(thread, &pretty);
    let mut written = String::with_capacity(rendered.len());
    vec![
        ("copy the rendering (memcpy)", memcpy(&rendered, repetitions)),
        ("gather the same texts, no marks", gather(thread, rendered.len(), repetitions)),
        (
            "render, reused buffer",
            time(repetitions, || (), |()| render_into(thread, options, &mut reused)),
        ),
        ("render, fresh buffer", time(repetitions, || (), |()| render(thread, options))),
        (
            "write to a reused string",
            time(
                repetitions,
                || (),
                |()| {
                    written.clear();
                    write_to(thread, options, &mut written)
                },
            ),
        ),
        (
            "render indented inputs, reused",
            time(repetitions, || (), |()| render_into(thread, &pretty, &mut indented)),
        ),
        ("chunk", time(repetitions, || (), |()| chunk(&rendered, budget).len())),
        ("chunk into ranges", time(repetitions, || (), |()| chunk_ranges(&rendered, budget))),
        (
            "chunk, a hundredth of the size",
            time(repetitions, || (), |()| chunk(&rendered, small).len()),
        ),
    ]
}

fn memcpy(rendered: &Rendered, repetitions: usize) -> Spread {
    let mut buffer = vec![0_u8; rendered.len()];
    time(
        repetitions,
        || (),
        |()| {
            buffer.copy_from_slice(black_box(rendered.as_bytes()));
            black_box(buffer.last().copied())
        },
    )
}

/// Copies the texts that are rendered from where they are, with nothing between them: what no
/// rendering can be faster than.
fn gather(thread: &[Message], bytes: usize, repetitions: usize) -> Spread {
    let mut buffer = String::with_capacity(bytes);
    time(
        repetitions,
        || (),
        |()| {
            buffer.clear();
            for block in thread.iter().flat_map(|message| &message.content) {
                if !block.is_reasoning() {
                    yardstick::texts(block).into_iter().for_each(|text| buffer.push_str(text));
                }
            }
        },
    )
}

const PROSE: &str = "The parser reads a line at a time and keeps what it could not place. ";

/// As in real threads: some three backticks and one hash in 1,000 bytes.
const CODE: &str = "    let kept: Vec<_> = lines.map(|line| line.trim()).collect();
    for (index, line) in kept.iter().enumerate() {
        match parser.place(index, line) {
            Placed::Here(node) => tree.insert(node, index),
            Placed::Later => waiting.push((index, line.to_owned())),
        }
    }
    # keep the order
    report.extend(waiting.drain(..).map(|(index, line)| Missing { index, line }));
    if report.is_empty() { return Ok(tree) }
    assert_eq!(report.len(), expected, \"see `place` for why\");
    tree.nodes().filter(|node| node.depth() > limit).for_each(|node| node.fold());
    log(&format!(\"{} nodes, {} lines, {} left over\", tree.len(), kept.len(), report.len()));
    Err(Error::Unplaced { report, tree: Box::new(tree), limit, taken: clock.elapsed() })
";

/// Far denser than any real thread: seven marks in 110 bytes.
const MARKDOWN: &str = "## Steps

1. Run `cargo test`.
2. Read **src/lib.rs**, über alles.

```rust
fn main() {}
```

";

const TEXTS: [(&str, &str); 3] = [("prose", PROSE), ("code", CODE), ("dense markdown", MARKDOWN)];

/// Calls and results with some talk between: results are two thirds of the text, reasoning (which is
/// left out) a sixth, inputs a tenth.
fn thread(messages: usize) -> Vec<Message> {
    (0..messages).map(|index| if index % 2 == 0 { asked(index) } else { answered(index) }).collect()
}

fn asked(index: usize) -> Message {
    let result = [CODE, PROSE].map(|text| fill(text, length(index) * 2 / 3)).concat();
    let block = match index % 20 {
        0 => ContentBlock::text(fill(PROSE, length(index))),
        _ => ToolResult::text(format!("t{index}"), result).into(),
    };
    Message::new(Role::User, vec![block])
}

fn answered(index: usize) -> Message {
    let input = serde_json::json!({
        "path": format!("src/parser/file_{index}.rs"),
        "old": fill(CODE, length(index) / 10),
        "lines": [index, index + 40],
    });
    let content = vec![
        Thinking::new(fill(PROSE, length(index) / 3), None).into(),
        ContentBlock::text(fill(PROSE, length(index) / 4)),
        ToolUse::new(format!("t{}", index + 1), "edit", Json::from(input)).into(),
    ];
    Message::new(Role::Assistant, content)
}

fn texts_only(index: usize, text: &str) -> Message {
    Message::new(Role::User, vec![ContentBlock::text(fill(text, length(index)))])
}

/// Most messages are short and some are long; on average a little over 1 KB.
fn length(index: usize) -> usize {
    let spread = index.wrapping_mul(2_654_435_761) >> 7;
    match spread % 50 {
        0 => 12_000,
        1..=9 => 3_000,
        10..=29 => 700,
        _ => 250,
    }
}

fn fill(text: &str, bytes: usize) -> String {
    let mut filled = text.repeat(bytes / text.len() + 1);
    let border = (0..=bytes).rev().find(|at| filled.is_char_boundary(*at)).unwrap_or_default();
    filled.truncate(border);
    filled
}
