//! Rendering and chunking of threads of 1, 10 and 100 MB, about 1 KB a message.
//!
//! `cargo bench --bench render` prints the table that `benches/README.md` explains, relative to a
//! copy of the rendered bytes (4 means a quarter of its speed) and to gathering the same texts from
//! their own allocations. The last rows are renderings of one kind of text each, which show the
//! cost of each kind.

#![allow(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use threadfold::{
    ContentBlock, Message, Role,
    render::{ChunkBudget, RenderOptions, chunk, chunk_ranges, render, render_into, write_to},
};
use yardstick::{
    Tables, gather, is_test, memcpy_of, rounds, row,
    thread::{self, CODE, PROSE, fill, length},
};

fn main() {
    let sizes: &[usize] = if is_test() { &[100] } else { &[1_000, 10_000, 100_000] };
    let mut tables = Tables::default();
    for count in sizes {
        measure(&mut tables, &thread::thread(*count));
    }
    let count = if is_test() { 100 } else { 10_000 };
    for (name, text) in [("prose", PROSE), ("code", CODE), ("dense markdown", MARKDOWN)] {
        println!("texts only: {name}");
        let said = |index| vec![ContentBlock::text(fill(text, index, length(index)))];
        let texts = (0..count).map(|index| Message::new(Role::User, said(index)));
        measure(&mut Tables::default(), &texts.collect::<Vec<_>>());
    }
}

fn measure(tables: &mut Tables, thread: &[Message]) {
    let options = RenderOptions::default();
    let repetitions = (1_000_000 / thread.len().max(1)).clamp(7, 200);
    let rendered = render(thread, &options);
    let budget = ChunkBudget::default();
    let small = ChunkBudget::of_tokens(250, 50);
    let mut reused = render(thread, &options);
    let mut written = String::with_capacity(rendered.len());
    let nothing = || ();
    let rows = rounds(repetitions, |repetitions| {
        vec![
            memcpy_of(rendered.as_bytes(), repetitions),
            gather(thread, |block| !block.is_reasoning(), repetitions),
            row("render, reused buffer", repetitions, nothing, |()| {
                render_into(thread, &options, &mut reused);
            }),
            row("render, fresh buffer", repetitions, nothing, |()| render(thread, &options)),
            row("write to a reused string", repetitions, nothing, |()| {
                written.clear();
                write_to(thread, &options, &mut written)
            }),
            row("chunk", repetitions, nothing, |()| chunk(&rendered, budget).len()),
            row("chunk into ranges", repetitions, nothing, |()| chunk_ranges(&rendered, budget)),
            row("chunk, a hundredth of the size", repetitions, nothing, |()| {
                chunk(&rendered, small).len()
            }),
        ]
    });
    tables.print("messages, rendered", thread.len(), rendered.len(), rows);
}

/// Far denser than any real thread: seven marks in 110 bytes.
const MARKDOWN: &str = "## Steps

1. Run `cargo test`.
2. Read **src/lib.rs**, über alles.

```rust
fn main() {}
```

";
