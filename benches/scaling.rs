//! How the time of every operation grows with the thread.
//!
//! `cargo bench --bench scaling` measures each operation at five sizes from 1,000 to 100,000
//! messages and prints two exponents: that of the least squares through the median times, and the
//! median of the slopes between all pairs of shortest times, which one disturbed size does not
//! move. 1 is linear. Compare them with the exponents of copying the text, which exceed 1 at sizes
//! that leave a cache, and of copying it from its own allocations, which waits for memory as every
//! walk does. The exponent of the allocated bytes is the same on every machine.
//!
//! `-- --short` uses smaller threads. The program fails if an operation is quadratic: if both
//! exponents of time exceed 1.5 plus the excess of copying over 1, or if that of the bytes exceeds
//! 1.5. Noise does not reach that: the time at the largest size would have to be four times too
//! long (ten times in the long form), in every repetition.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a bench may panic, and measures what it knows"
)]

use std::{process::ExitCode, sync::Arc};

use futures::executor::block_on;
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Replacement, Request, Session, Thread,
    Usage, async_trait, compact,
    compact::{CompactOptions, Size, TrimToolResults, trim},
    legality,
    log::{CompactionFailure, CompactionRecord, Event, EventLog},
    message::{CompactionId, CompactionReason, StopReason, Timestamp},
    model::ModelError,
    render::{ChunkBudget, RenderOptions, chunk, render, render_into},
    retention::{RetentionPolicy, audit},
    tokens::ByteEstimate,
    wire::{DecodeOptions, Dialect, EncodeOptions, SseParser},
};
use threadfold_edl::{Script, Workspace};
use yardstick::{
    Row, gather, is_test, memcpy, merged, milliseconds, row, thread, values,
    wire::{CODECS, body, stream},
};

/// An exponent above this is not linear growth on any machine.
const QUADRATIC: f64 = 1.5;

/// The maximum excess of an exponent over that of copying.
const ROOM: f64 = 0.1;

fn main() -> ExitCode {
    let short = std::env::args().any(|argument| argument == "--short");
    let (sizes, rounds, repetitions): (&[usize], _, _) = match (is_test(), short) {
        (true, _) => (&[20, 60], 1, 1),
        (false, true) => (&[200, 800, 3_200], 3, 1),
        (false, false) => (&[1_000, 3_200, 10_000, 32_000, 100_000], 5, 3),
    };
    // All sizes in each round, so that a change of the machine's speed affects all of them.
    let all: Vec<Vec<Vec<Row>>> = (0..rounds)
        .map(|_| sizes.iter().map(|count| measure(*count, repetitions)).collect())
        .collect();
    let tables: Vec<Vec<Row>> = (0..sizes.len())
        .map(|size| merged(all.iter().map(|tables: &Vec<Vec<Row>>| tables[size].clone()).collect()))
        .collect();
    let grown: Vec<Growth> = (0..tables[0].len())
        .map(|index| Growth::of(sizes, &tables.iter().map(|rows| rows[index]).collect::<Vec<_>>()))
        .collect();
    let quadratic = print(sizes, &grown);
    if is_test() || quadratic == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How one operation grows.
struct Growth {
    rows: Vec<Row>,
    squares: f64,
    robust: f64,
    bytes: f64,
}

impl Growth {
    fn of(sizes: &[usize], rows: &[Row]) -> Self {
        let of = |figure: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> {
            let logarithm = |value: f64| value.max(1e-12).ln();
            sizes
                .iter()
                .zip(rows)
                .map(|(n, row)| (logarithm(*n as f64), logarithm(figure(row))))
                .collect()
        };
        Self {
            squares: least_squares(&of(&|row| row.spread.middle.as_secs_f64())),
            robust: middle_slope(&of(&|row| row.spread.least.as_secs_f64())),
            // An operation that hardly allocates has no growth to measure.
            bytes: least_squares(&of(&|row| row.cost.bytes.max(10_000) as f64)),
            rows: rows.to_vec(),
        }
    }

    /// Whether neither noise nor a cache explains the growth. Where copying leaves a cache, an
    /// operation may grow as much more.
    fn is_quadratic(&self, copy: &Self) -> bool {
        let over = |exponent: f64, copied: f64| exponent > QUADRATIC + (copied - 1.0).max(0.0);
        let time = over(self.squares, copy.squares) && over(self.robust, copy.robust);
        !self.is_yardstick() && (time || self.bytes > QUADRATIC)
    }

    /// Whether the row measures something other than this crate.
    fn is_yardstick(&self) -> bool {
        self.rows.iter().any(|row| row.yardstick.is_some())
    }

    /// How much faster it grows than copying and the allowance, by the better of two fits.
    fn over(&self, copy: &Self) -> f64 {
        let over = |exponent: f64, copied: f64| exponent - (copied.max(1.0) + ROOM);
        over(self.squares, copy.squares).min(over(self.robust, copy.robust))
    }

    fn verdict(&self, copy: &Self, gather: &Self) -> String {
        match (self.over(copy), self.over(gather)) {
            _ if self.is_yardstick() => "a yardstick".to_owned(),
            _ if self.is_quadratic(copy) => "NOT LINEAR".to_owned(),
            (over, _) if over <= 0.0 => "as copying".to_owned(),
            (over, gathered) if gathered <= 0.0 => format!("over by {over:.2}, as gathering"),
            (over, gathered) => format!("over by {over:.2}, over gathering by {gathered:.2}"),
        }
    }
}

fn least_squares(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / count, y / count);
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    above / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

/// The median of the slopes between every two points.
fn middle_slope(points: &[(f64, f64)]) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(index, right)| {
        points[..index].iter().map(move |left| (right.1 - left.1) / (right.0 - left.0))
    });
    let mut slopes: Vec<f64> = pairs.collect();
    slopes.sort_by(f64::total_cmp);
    let half = slopes.len() / 2;
    if slopes.len() % 2 == 1 { slopes[half] } else { (slopes[half - 1] + slopes[half]) / 2.0 }
}

/// Prints a line for each operation and returns how many are quadratic.
fn print(sizes: &[usize], grown: &[Growth]) -> usize {
    let columns: String = sizes.iter().map(|size| format!(" {size:>9}")).collect();
    println!("middle milliseconds at so many messages of about 1.1 KB");
    println!(
        "{:<32}{columns} {:>9} {:>9} {:>9}  verdict",
        "operation", "exponent", "robust", "of bytes"
    );
    let (copy, gather) = (&grown[0], &grown[1]);
    for growth in grown {
        let middles = growth.rows.iter().map(|row| milliseconds(row.spread.middle));
        let middles: String = middles.map(|middle| format!(" {middle:>9}")).collect();
        println!(
            "{:<32}{middles} {:>9.2} {:>9.2} {:>9.2}  {}",
            growth.rows[0].name,
            growth.squares,
            growth.robust,
            growth.bytes,
            growth.verdict(copy, gather)
        );
    }
    println!("\n{}", caches(sizes, copy));
    let quadratic = grown.iter().filter(|growth| growth.is_quadratic(copy)).count();
    println!("{quadratic} of {} operations grow with an exponent over {QUADRATIC}", grown.len());
    quadratic
}

/// Prints the sizes at which copying itself is no longer linear.
fn caches(sizes: &[usize], copy: &Growth) -> String {
    let steps = sizes.windows(2).zip(copy.rows.windows(2)).map(|(sizes, rows)| {
        let step = |index: usize| (sizes[index], rows[index].spread);
        let exponent = yardstick::exponent(step(0), step(1));
        let note = if exponent > 1.0 + 2.0 * ROOM { " (it leaves a cache)" } else { "" };
        format!("{exponent:.2} from {} to {}{note}", sizes[0], sizes[1])
    });
    format!("exponents of copying: {}", steps.collect::<Vec<_>>().join(", "))
}

fn measure(count: usize, repetitions: usize) -> Vec<Row> {
    let messages = thread::thread(count);
    let mut rows = transforms(&messages, repetitions);
    rows.extend(logs(&messages, repetitions));
    rows.extend(bodies(&messages, repetitions));
    rows.push(edits(count, repetitions));
    rows.push(row("a session, a turn a message", repetitions, session, |mut session| {
        for _ in 0..count {
            block_on(session.send("And now?").into_future()).expect("a reply");
        }
        session
    }));
    rows
}

fn transforms(messages: &[Message], repetitions: usize) -> Vec<Row> {
    let (nothing, own) = (|| (), || messages.to_vec());
    let all = [Replacement::new("What happened, in a sentence.")];
    let options = RenderOptions::default();
    let mut rendered = render(messages, &options);
    let chunked = rendered.clone();
    let long = messages.len().saturating_sub(100);
    vec![
        memcpy(messages, repetitions),
        gather(messages, |_| true, repetitions),
        row("clone the handles", repetitions, nothing, |()| messages.to_vec()).yardstick("clone"),
        row("compact", repetitions, nothing, |()| compact(messages, &all)),
        row("violations", repetitions, nothing, |()| legality::violations(messages)),
        row("cut points", repetitions, nothing, |()| legality::cut_points(messages)),
        row("repair", repetitions, own, legality::repair),
        row("size", repetitions, nothing, |()| Size::of(messages, &ByteEstimate::TRIGGER)),
        row("index a thread", repetitions, own, |own| own.into_iter().collect::<Thread>()),
        row("render", repetitions, nothing, |()| render_into(messages, &options, &mut rendered)),
        row("chunk", repetitions, nothing, |()| chunk(&chunked, ChunkBudget::default()).len()),
        row("trim", repetitions, own, |mut own| {
            (trim(&own, &TrimToolResults::default()).apply(&mut own), own)
        }),
        row("audit", 1, nothing, |()| {
            audit(messages, &messages[long..], &RetentionPolicy::default())
        }),
    ]
}

fn logs(messages: &[Message], repetitions: usize) -> Vec<Row> {
    let nothing = || ();
    let append = |messages: &mut dyn Iterator<Item = Message>| {
        let mut log = EventLog::new("main".parse().expect("an id"));
        for message in messages {
            log.append(Timestamp(0), Event::MessageAppended(message)).expect("it fits");
        }
        log
    };
    let mut log = append(&mut messages.iter().cloned());
    let thread: Thread = messages.iter().cloned().collect();
    let all = [Replacement::new("What happened, in a sentence.")];
    let plan = thread.plan(&all, &CompactOptions::default()).expect("it is legal");
    let record = CompactionRecord::new(CompactionId(0), CompactionReason::default(), "mine", plan);
    log.append(Timestamp(0), Event::Compacted(Box::new(record))).expect("it fits");
    let mut stored = Vec::new();
    log.write(&mut stored).expect("a vector takes everything");
    let mut written = Vec::with_capacity(stored.len());
    vec![
        values(&stored, repetitions),
        // Appends a message that was just created, as a host does.
        row("append to a log", repetitions, nothing, |()| {
            append(&mut (0..messages.len()).map(|_| Message::user("And now?")))
        }),
        row("write the log", repetitions, nothing, |()| {
            written.clear();
            log.write(&mut written).expect("a vector takes everything");
        }),
        row("read and replay the log", repetitions, nothing, |()| {
            EventLog::read(stored.as_slice()).map(|read| read.log.replay())
        }),
        row(
            "undo a compaction",
            repetitions,
            || written_to(&log),
            |mut log| (log.undo(Timestamp(0), CompactionId(0)).expect("it stands"), log),
        ),
    ]
}

/// Returns a copy of a log with spare capacity, as a log that is appended to has.
fn written_to(log: &EventLog) -> EventLog {
    let mut log = log.clone();
    let failure = CompactionFailure::new(
        log.next_compaction(),
        CompactionReason::default(),
        "mine",
        "no model",
    );
    log.append(Timestamp(0), Event::CompactionFailed(Box::new(failure))).expect("it fits");
    log
}

fn bodies(messages: &[Message], repetitions: usize) -> Vec<Row> {
    const DECODE: [&str; 5] = [
        "decode Anthropic",
        "decode Converse",
        "decode Gemini",
        "decode OpenAI Chat",
        "decode OpenAI Responses",
    ];
    const ENCODE: [&str; 5] = [
        "encode Anthropic",
        "encode Converse",
        "encode Gemini",
        "encode OpenAI Chat",
        "encode OpenAI Responses",
    ];
    let mut rows = Vec::new();
    for (index, codec) in CODECS.into_iter().enumerate() {
        let body = body(codec, messages);
        let read = || codec.decode_slice(body.as_str().as_bytes(), &DecodeOptions::default());
        let request = read().expect("what was written is read");
        rows.push(row(DECODE[index], repetitions, || (), |()| read()));
        rows.push(row(
            ENCODE[index],
            repetitions,
            || (),
            |()| codec.encode(&request, &EncodeOptions::default()),
        ));
    }
    let stream = stream(Dialect::Anthropic, messages.len());
    rows.push(row(
        "a streamed answer",
        repetitions,
        || (),
        |()| {
            let (mut parser, mut builder) =
                (SseParser::default(), Dialect::Anthropic.answer_builder());
            for packet in stream.as_bytes().chunks(1_400) {
                parser.push(packet);
                while let Some(event) = parser.next_event().expect("short events") {
                    builder.handle(&event.0, &event.1).expect("an event of an answer");
                }
            }
            builder.finish().expect("a whole answer")
        },
    ));
    rows
}

/// A file of 500 bytes per message, in which one command edits one line in two hundred.
fn edits(count: usize, repetitions: usize) -> Row {
    let lines = 0..count * 10;
    let line = |number: usize| {
        let word = if number.is_multiple_of(200) { "MARK" } else { "line" };
        format!("{word} {number:08} of a file that is being edited\n")
    };
    let text: String = lines.map(line).collect();
    let script = "file /file select_multiple /MARK/ replace \"edited\"";
    let workspace = || {
        let mut workspace = Workspace::new();
        workspace.insert("/file", text.as_str()).expect("a path");
        workspace
    };
    row("an edit script", repetitions, workspace, |mut workspace| {
        let report = Script::parse(script).expect("a script").run(&mut workspace);
        assert!(report.is_ok(), "{report}");
        workspace
    })
}

/// A session whose model answers at once, with a window that never fills.
fn session() -> Session {
    let usage = Some(Usage::new(1_000, 10));
    let turn = Answer::new(Message::assistant("It is done."), StopReason::EndTurn, usage);
    let agent =
        ModelAgent::new(Arc::new(AtOnce(turn))).with_window(ContextWindow::new(1_000_000_000_000));
    Session::builder(agent).build().expect("a session")
}

#[derive(Debug)]
struct AtOnce(Answer);

#[async_trait]
impl Model for AtOnce {
    async fn complete(&self, _: Request) -> Result<Answer, ModelError> {
        Ok(self.0.clone())
    }
}
