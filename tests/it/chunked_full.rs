//! Chunked summarisation in difficult cases: a full summary, chunks that no model folds in, a model
//! that fails midway. Completed work is kept, and the parts without a model's summary are named.

use std::sync::Arc;

use futures::executor::block_on;
use proptest::prelude::*;
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, Role, TokenCounter, Usage, legality,
    message::{ModelError, ModelErrorKind, StopReason, ToolUse},
    render::ChunkBudget,
    retention::RetentionPolicy,
    strategy::{
        Brief, ChunkOutcome, Chunked, CompactionRun, ModelCall, RunError, RunStep, Snapshot,
        StrategyError, View,
    },
    testing::asked,
};

use crate::{
    chunked::says,
    support::{
        examples::writers::{self, WRITERS},
        recorded,
        tries::tries,
    },
};

/// The tokens that the acceptance check always leaves: the user's newest text, and what cannot be
/// cut or was not read.
fn floor(thread: &Snapshot) -> u64 {
    let messages = thread.messages();
    let unread = legality::unread_from(messages);
    let cuts = legality::cut_points(messages);
    let cut = cuts.into_iter().rfind(|cut| *cut <= unread).unwrap_or_default();
    let typed = messages.iter().rposition(|message| message.is_typed());
    let typed = typed.filter(|typed| *typed < cut).and_then(|typed| messages.get(typed));
    thread.counter().messages(&messages[cut..])
        + typed.map_or(0, |message| thread.counter().message(message))
}

#[test]
fn no_real_thread_fails_with_any_window_and_writer() {
    let (mut tried, mut failed) = (0, Vec::new());
    for (name, _, request) in recorded::requests() {
        for window in [4_000, 8_000, 16_000, 64_000] {
            let thread = Snapshot::of_request(&request);
            let thread = thread.with_window(Some(ContextWindow::new(window)));
            let before = thread.counter().messages(thread.messages());
            let floor = floor(&thread);
            let target = (window / 2).min(floor + 300 + before.saturating_sub(floor) / 2);
            if before <= target || floor + 300 > target {
                continue;
            }
            let retention = (window == 16_000).then(RetentionPolicy::default);
            let brief = Brief { target: Some(target), retention, ..Brief::default() };
            for writer in &WRITERS {
                tried += 1;
                if let Err(why) = compacted(&thread, &brief, window, writer) {
                    failed.push(format!("{name} at {window} by {}: {why}", writer.name));
                }
            }
        }
    }
    println!("{tried} tried");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
}

/// Runs the strategy and checks every request.
fn compacted(
    thread: &Snapshot,
    brief: &Brief,
    window: u64,
    writer: &writers::Writer,
) -> Result<(), String> {
    let (model, mut too_large) = (Arc::new((writer.make)()), None);
    let answer = |call: &ModelCall| {
        let request = &call.request;
        let size = thread.counter().request(request) + request.max_output.unwrap();
        if size > window {
            too_large = Some(format!("a request of {size}"));
        }
        block_on(model.complete(request.clone()))
    };
    let view = View::new(thread.clone(), brief.clone());
    let (_, outcome) = asked(&Chunked::default(), &view, answer);
    if let Some(too_large) = too_large {
        return Err(too_large);
    }
    let proposal = outcome.map_err(|error| error.to_string())?;
    thread.settle(proposal, brief).map(drop).map_err(|rejection| rejection.to_string())
}

/// Ten rounds of talk, about 3 KB each, which is a chunk each.
fn conversation() -> Vec<Message> {
    let filler = "and on it went through the night, line after line. ".repeat(28);
    let round = |number: usize| {
        [
            Message::user(format!("Question {number}. {filler}")),
            Message::assistant(format!("I looked into src/part_{number}.rs. {filler}")),
        ]
    };
    (0..10).flat_map(round).collect()
}

fn options() -> Chunked {
    let chunks = ChunkBudget { target: 3_000, tolerance: 600 };
    Chunked { chunks, summary_bytes: 2_000, ..Chunked::default() }
}

fn run() -> CompactionRun {
    CompactionRun::new(&conversation(), None, options()).unwrap()
}

fn append(text: &str) -> Answer {
    let script = format!("file /summary.md\nselect eof\ninsert_after <<END\n{text}\nEND\n");
    let call = ToolUse::new("t1", "edl", serde_json::json!({ "script": script }));
    let message = Message::new(Role::Assistant, vec![ContentBlock::ToolUse(call)]);
    Answer::new(message, StopReason::ToolUse, Some(Usage::new(100, 10)))
}

fn fails(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "gone")
}

/// What a request is about.
struct Asked<'a> {
    chunk: usize,
    /// Whether it asks for a shorter summary.
    condenses: bool,
    /// Whether it is the first one of a conversation.
    opens: bool,
    summary: &'a str,
}

/// Answers until the run ends.
fn answer(run: &mut CompactionRun, with: impl Fn(&Asked<'_>) -> Result<Answer, ModelError>) {
    for _ in 0..2_000 {
        let RunStep::Call { chunk, request, .. } = run.step() else { return };
        let (condenses, opens) = (request.tools.is_empty(), request.messages.len() == 1);
        let asked = Asked { chunk, condenses, opens, summary: run.summary() };
        let answered = with(&asked);
        run.handle(answered).unwrap();
        assert!(run.summary().len() <= options().summary_bytes);
    }
    panic!("the run does not end");
}

/// A model that folds in every chunk with an edit of 400 bytes and marks it as the last.
fn diligent(asked: &Asked<'_>) -> Answer {
    if !asked.opens {
        return says("Done.");
    }
    let lines =
        (0..8).map(|line| format!("- fact {line} of part {}, which matters\n", asked.chunk));
    append(&format!("## Part {}\n{}", asked.chunk, lines.collect::<String>()))
}

fn outcomes(run: &CompactionRun) -> Vec<ChunkOutcome> {
    run.steps().iter().map(|step| step.outcome).collect()
}

fn count(run: &CompactionRun, outcome: ChunkOutcome) -> usize {
    outcomes(run).iter().filter(|found| **found == outcome).count()
}

fn done(run: &CompactionRun) -> &str {
    match run.step() {
        RunStep::Done { summary } => summary,
        step => panic!("{step:?}"),
    }
}

#[test]
fn a_full_summary_is_condensed_by_the_model_and_the_run_continues() {
    let mut run = run();
    answer(&mut run, |asked| {
        let shorter = || says(&format!("# Brief\n\n{}", "- all of it, shorter\n".repeat(20)));
        Ok(if asked.condenses { shorter() } else { diligent(asked) })
    });
    assert!(
        done(&run).contains("all of it, shorter") && done(&run).contains("of part 9"),
        "{}",
        done(&run)
    );
    assert_eq!(count(&run, ChunkOutcome::Folded), 10);
    assert!(count(&run, ChunkOutcome::Condensed) >= 1, "{:?}", outcomes(&run));
    assert_eq!((count(&run, ChunkOutcome::Clipped), run.notes().len()), (0, 0));
}

#[test]
fn a_model_that_never_condenses_costs_the_oldest_details_and_not_the_run() {
    let junk = ["Done.", "", &"word ".repeat(5_000)];
    for answered in junk {
        let mut run = run();
        answer(&mut run, |asked| {
            assert!(!asked.condenses || asked.summary.len() > 500);
            Ok(if asked.condenses { says(answered) } else { diligent(asked) })
        });
        for part in 5..10 {
            assert!(done(&run).contains(&format!("of part {part}")), "{part}: {}", done(&run));
        }
        assert!(done(&run).contains("lines left out)"));
        assert_eq!(count(&run, ChunkOutcome::Folded), 10);
        assert!(run.notes()[0].contains("shortened without a model"), "{:?}", run.notes());
    }
}

#[test]
fn a_failed_call_for_a_shorter_summary_does_not_end_the_run() {
    for kind in [
        ModelErrorKind::Authentication,
        ModelErrorKind::Other,
        ModelErrorKind::Overflow { limit: None, found: None, output: None },
    ] {
        let mut run = run();
        answer(&mut run, |asked| match asked.condenses {
            true => Err(fails(kind.clone())),
            false => Ok(diligent(asked)),
        });
        assert!(done(&run).contains("of part 9"), "{}", done(&run));
    }
}

#[test]
fn edits_that_do_not_fit_are_requested_again_after_condensing() {
    let mut run = run();
    answer(&mut run, |asked| {
        let long = format!("Chunk {}. {}", asked.chunk, "y".repeat(500));
        Ok(if asked.opens && !asked.condenses { append(&long) } else { says("Done.") })
    });
    assert!(done(&run).contains("Chunk 9."), "{}", done(&run));
    assert!(count(&run, ChunkOutcome::Full) > 0, "{:?}", outcomes(&run));
    assert_eq!(count(&run, ChunkOutcome::Skipped), 0);
}

#[test]
fn an_edit_that_is_too_long_by_itself_is_shortened() {
    let mut run = run();
    answer(&mut run, |asked| {
        let lines = (0..200).map(|line| format!("- fact {line} of part {}\n", asked.chunk));
        Ok(if asked.opens { append(&lines.collect::<String>()) } else { says("Done.") })
    });
    assert!(done(&run).contains("- fact 199 of part 9\n"), "{}", done(&run));
    assert_eq!(count(&run, ChunkOutcome::Capped), 10);
    assert!(run.notes()[0].contains("shortened without a model"), "{:?}", run.notes());
}

#[test]
fn the_target_is_met_even_if_the_model_folds_nothing_in() {
    let thread = Snapshot::new(conversation());
    for (target, ends) in [(Some(2_000), true), (None, false)] {
        let brief = Brief { target, ..Brief::default() };
        let view = View::new(thread.clone(), brief.clone());
        match asked(&options(), &view, |_| Ok(says("ok"))).1 {
            Ok(proposal) => {
                assert!(ends && proposal.notes[0].contains("the whole thread"));
                assert!(thread.accept(&proposal.plan, &brief).is_ok());
            }
            Err(error) => assert!(!ends && matches!(error, StrategyError::Run(_)), "{error}"),
        }
    }
}

#[test]
fn a_chunk_that_is_refused_is_named_and_has_an_extract() {
    let mut run = run();
    answer(&mut run, |asked| {
        let refuses = asked.chunk == 2 && !asked.condenses;
        let no = Answer::new(Message::assistant("No."), StopReason::Refusal, None);
        Ok(if refuses { no } else { diligent(asked) })
    });
    let note = "summarised without a model: chunk 3 of 10 \
                (the model stopped with refusal at chunk 3)";
    assert!(run.notes().contains(&note.into()), "{:?}", run.notes());
    assert!(done(&run).contains("## Not summarised by a model: chunk 3\n"), "{}", done(&run));
    assert!(done(&run).contains("of part 9"), "{}", done(&run));
    assert_eq!(count(&run, ChunkOutcome::Skipped), 1);
}

#[test]
fn a_model_that_only_chats_costs_its_chunks_and_not_the_run() {
    let mut run = run();
    answer(&mut run, |asked| {
        let chats = (3..6).contains(&asked.chunk) && !asked.condenses;
        Ok(if chats { says(&"I would summarise it so. ".repeat(90)) } else { diligent(asked) })
    });
    let note = "summarised without a model: chunks 4 to 6 of 10 \
                (chunk 4 was not folded into the summary)";
    assert!(run.notes().contains(&note.into()), "{:?}", run.notes());
    assert!(done(&run).contains("chunks 4 to 6") && done(&run).contains("Question 3."));
}

#[test]
fn if_the_model_fails_after_eight_of_ten_chunks_the_rest_is_extracted() {
    for kind in [
        ModelErrorKind::Retryable { after: None },
        ModelErrorKind::Other,
        ModelErrorKind::Authentication,
        ModelErrorKind::NoModel,
    ] {
        let mut run = run();
        answer(&mut run, |asked| match asked.chunk < 8 {
            true => Ok(diligent(asked)),
            false => Err(fails(kind.clone())),
        });
        let tries =
            if matches!(kind, ModelErrorKind::Retryable { .. }) { ", tried 5 times" } else { "" };
        let note = format!(
            "summarised without a model: chunks 9 to 10 of 10 (chunk 9 failed{tries}: {kind}: gone)"
        );
        assert!(run.notes().contains(&note.into()), "{kind:?}: {:?}", run.notes());
        assert!(
            done(&run).contains("of part 7") && done(&run).contains("Question 8."),
            "{}",
            done(&run)
        );
        assert_eq!(count(&run, ChunkOutcome::Folded), 8);
    }
}

#[test]
fn a_run_without_any_edit_fails_soon_and_can_be_resumed() {
    let mut run = run();
    answer(&mut run, |_| Ok(says("ok")));
    assert_eq!(run.step(), RunStep::Failed { error: &RunError::BlankSummary { chunk: 1 } });
    assert_eq!(run.usage(), Usage::new(600, 6), "three chunks were tried, twice each");
    run.retry();
    answer(&mut run, |asked| Ok(diligent(asked)));
    assert!(!done(&run).contains("Not summarised"), "{}", done(&run));
    assert!(run.notes().iter().all(|note| !note.contains("chunk")), "{:?}", run.notes());
}

#[test]
fn the_strategy_states_which_parts_no_model_summarised() {
    let thread = Snapshot::new(conversation());
    let chunked = options();
    let view = View::new(thread.clone(), Brief::default());
    let answer = |call: &ModelCall| {
        let (condenses, opens) = (call.request.tools.is_empty(), call.request.messages.len() == 1);
        let asked = Asked { chunk: call.done, condenses, opens, summary: "" };
        match asked.chunk >= 8 {
            true => Err(fails(ModelErrorKind::NoModel)),
            false => Ok(diligent(&asked)),
        }
    };
    let proposal = asked(&chunked, &view, answer).1.unwrap();
    assert!(proposal.notes.iter().any(|note| note.contains("chunks 9 to 10")));
    assert!(thread.accept(&proposal.plan, &Brief::default()).is_ok());
}

#[test]
fn a_stored_run_with_counters_of_any_size_continues() {
    let mut stored = serde_json::to_value(run()).unwrap();
    assert!(enlarge(&mut stored) > 10);
    let mut run: CompactionRun = serde_json::from_value(stored).unwrap();
    run.handle(Err(fails(ModelErrorKind::Retryable { after: None }))).unwrap_or(());
    run.retry();
    let mut rounds = 0;
    while let RunStep::Call { request, .. } = run.step() {
        let opens = request.messages.len() == 1;
        let overflow = fails(ModelErrorKind::Overflow { limit: None, found: None, output: None });
        match (rounds, opens) {
            (3, _) => run.handle(Err(overflow)).unwrap(),
            (_, true) => run.handle(Ok(append("More."))).unwrap(),
            (_, false) => run.handle(Ok(says("Done."))).unwrap(),
        }
        rounds += 1;
    }
    assert!(done(&run).contains("More."));
}

/// Sets every counter and cap except the ranges of the chunks to the maximum; returns their number.
fn enlarge(stored: &mut serde_json::Value) -> usize {
    const NAMES: [&str; 12] = [
        "rounds",
        "retries",
        "input",
        "output",
        "writes",
        "saved",
        "version",
        "max_rounds",
        "max_retries",
        "summary_bytes",
        "answer_tokens",
        "max_chunks",
    ];
    let mut count = 0;
    for (name, value) in stored.as_object_mut().into_iter().flatten() {
        if value.is_u64() && NAMES.contains(&name.as_str()) {
            *value = u64::MAX.into();
            count += 1;
        }
        count += enlarge(value);
    }
    count
}

/// Returns a wrong answer; `way` selects what is wrong with it.
fn misbehave(way: u8, asked: &Asked<'_>) -> Result<Answer, ModelError> {
    let stops = |reason| Ok(Answer::new(Message::assistant("No."), reason, None));
    match way {
        0 => Ok(says("ok")),
        1 => Ok(says(&"I go on with it. ".repeat(500))),
        2 => stops(StopReason::Refusal),
        3 => stops(StopReason::MaxTokens),
        4 => Err(fails(ModelErrorKind::Other)),
        5 => Err(fails(ModelErrorKind::Overflow { limit: None, found: None, output: None })),
        6 => Ok(append(&"x".repeat(3_000))),
        7 => Err(fails(ModelErrorKind::Refused)),
        _ => Ok(diligent(asked)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_run_with_at_least_one_edit_ends_with_a_summary(
        ways in prop::collection::vec(0_u8..14, 1..40),
    ) {
        let mut run = run();
        let next = std::cell::Cell::new(0);
        answer(&mut run, |asked| {
            let at = next.replace(next.get() + 1);
            misbehave(ways[at % ways.len()], asked)
        });
        let folded = run.steps().iter().any(|step| {
            matches!(step.outcome, ChunkOutcome::Folded | ChunkOutcome::Capped)
        });
        let ended = matches!(run.step(), RunStep::Done { .. });
        prop_assert_eq!(ended, folded, "{:?}", outcomes(&run));
        let skipped = count(&run, ChunkOutcome::Skipped) > 0;
        prop_assert!(!skipped || !run.notes().is_empty());
        let stored = serde_json::to_string(&run).unwrap();
        prop_assert_eq!(serde_json::from_str::<CompactionRun>(&stored).unwrap(), run);
    }
}

/// Counts a token for each digit and for each third of the other bytes.
#[derive(Debug)]
struct Digits;

impl TokenCounter for Digits {
    fn text(&self, text: &str) -> u64 {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        (digits + (text.len() - digits).div_ceil(3)) as u64
    }
}

/// An answer of a model that ignores its maximum length: an edit, a text, or both.
fn excess(kind: u8, bytes: usize) -> Answer {
    let text = "-0123456789 0123456789\n".repeat(bytes / 23 + 1);
    let mut turn = append(&text);
    if kind == 0 {
        turn.message = Message::assistant(text);
        turn.stop_reason = StopReason::EndTurn;
    } else if kind == 1 {
        turn.message.make_mut().content.insert(0, ContentBlock::text("DONE"));
    }
    turn
}

proptest! {
    #![proptest_config(tries(60))]

    #[test]
    fn no_request_exceeds_the_window_for_answers_of_any_length(
        window in 2_500_u64..12_000,
        lengths in prop::collection::vec(1_usize..4_000, 1..30),
        answers in prop::collection::vec((0_u8..4, 0_usize..20_000), 1..12),
        limit in 200_usize..20_000,
    ) {
        let said = |bytes: &usize| Message::user("Something was said. ".repeat(bytes / 20 + 1));
        let messages: Vec<Message> = lengths.iter().map(said).collect();
        let thread = Snapshot::new(messages)
            .with_counter(Arc::new(Digits))
            .with_window(Some(ContextWindow::new(window)));
        let chunked = Chunked { summary_bytes: limit, ..Chunked::default() };
        let (mut answers, mut calls) = (answers.iter().cycle(), 0);
        let answer = |call: &ModelCall| {
            let request = &call.request;
            let found = thread.counter().request(request) + request.max_output.unwrap();
            assert!(found <= window, "{found} tokens for a window of {window}");
            let &(kind, bytes) = answers.next().unwrap();
            calls += 1;
            assert!(calls < 10_000, "the strategy does not end");
            Ok(excess(kind, bytes))
        };
        let view = View::new(thread.clone(), Brief::default());
        let _ = asked(&chunked, &view, answer);
    }
}
