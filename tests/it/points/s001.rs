//! A summary in a file, which a model edits chunk by chunk.

use threadfold::{
    Answer, ContentBlock, Message, Request, Role,
    message::{StopReason, ToolUse},
    render::{self, ChunkBudget, RenderOptions, Rendered, chunk},
    strategy::{Chunked, CompactionRun, RunStep},
};

fn rendered(texts: &[&str]) -> Rendered {
    let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
    render::render(&messages, &RenderOptions::default())
}

#[test]
fn s001_01_every_message_of_the_markdown_has_its_place() {
    let thread = rendered(&["one", "two"]);
    assert_eq!(thread.message_range(0).unwrap().start, 0);
    let second = thread.message_range(1).unwrap();
    assert!(thread.text()[second].contains("two"));
}

#[test]
fn s001_20_the_sizes_are_constants() {
    assert_eq!(render::BYTES_PER_TOKEN, 4);
    assert_eq!((render::TARGET_CHUNK_TOKENS, render::TOLERANCE_TOKENS), (25_000, 5_000));
    assert_eq!(ChunkBudget::default(), ChunkBudget { target: 100_000, tolerance: 20_000 });
}

#[test]
fn s001_21_the_start_of_each_message_is_known() {
    let thread = rendered(&["one", "two", "three"]);
    let starts: Vec<usize> = thread.message_ranges().map(|range| range.start).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.is_sorted() && starts[0] == 0);
}

#[test]
fn s001_24_an_empty_thread_has_no_chunk() {
    assert_eq!(chunk(&rendered(&[]), ChunkBudget::default()).len(), 0);
}

#[test]
fn s001_25_one_small_message_is_one_chunk() {
    assert_eq!(chunk(&rendered(&["one"]), ChunkBudget::default()).len(), 1);
}

#[test]
fn s001_26_several_small_messages_are_one_chunk() {
    assert_eq!(chunk(&rendered(&["one", "two", "three"]), ChunkBudget::default()).len(), 1);
}

#[test]
fn s001_32_the_chunks_joined_are_the_whole() {
    let long = "a word ".repeat(40);
    let thread = rendered(&["one", &long, "two", &long, &long]);
    let chunks = chunk(&thread, ChunkBudget { target: 100, tolerance: 20 });
    assert!(chunks.len() > 5);
    let joined: String = chunks.iter().map(|chunk| chunk.text).collect();
    assert_eq!(joined, thread.text());
}

/// A run over six rounds, each of about one chunk.
fn run() -> CompactionRun {
    let filler = "and on it went, line after line. ".repeat(44);
    let round = |number: usize| {
        [
            Message::user(format!("Question {number}. {filler}")),
            Message::assistant(format!("Answer {number}. {filler}")),
        ]
    };
    let thread: Vec<Message> = (0..6).flat_map(round).collect();
    let options =
        Chunked { chunks: ChunkBudget { target: 3_000, tolerance: 600 }, ..Chunked::default() };
    CompactionRun::new(&thread, Some(Message::user("What next?")), options).unwrap()
}

fn asked(run: &CompactionRun) -> Request {
    let RunStep::Call { request, .. } = run.step() else { panic!("{:?}", run.step()) };
    request.clone()
}

fn prompt(run: &CompactionRun) -> String {
    asked(run).messages[0].content[0].as_text().unwrap().to_string()
}

/// The model appends this line to the summary, and says that it is done with the chunk.
fn fold(run: &mut CompactionRun, line: &str) {
    let script = format!("file /summary.md\nselect eof\ninsert_after <<END\n{line}\nEND\n");
    let call = ToolUse::new("e1", "edl", serde_json::json!({ "script": script }));
    let content = vec![ContentBlock::text("DONE"), call.into()];
    let turn = Answer::new(Message::new(Role::Assistant, content), StopReason::ToolUse, None);
    run.handle(Ok(turn)).unwrap();
}

#[test]
fn s001_04_chunks_are_processed_one_after_the_other() {
    let mut run = run();
    let mut order = Vec::new();
    while let RunStep::Call { chunk, .. } = run.step() {
        order.push(chunk);
        fold(&mut run, "A part.");
    }
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn s001_05_the_summary_is_a_file_in_memory() {
    let mut run = run();
    assert!(prompt(&run).contains("/summary.md"));
    fold(&mut run, "Zero.");
    assert_eq!(run.summary(), "Zero.\n");
}

#[test]
fn s001_06_the_chunk_is_in_the_prompt() {
    let prompt = prompt(&run());
    assert!(prompt.contains("Question 0.") && prompt.contains("Answer 0."), "{prompt}");
    assert!(!prompt.contains("Question 1."), "{prompt}");
}

#[test]
fn s001_07_the_file_is_empty_at_first() {
    assert!(prompt(&run()).contains("/summary.md is empty: write it."));
}

#[test]
fn s001_09_the_next_chunk_sees_the_summary_of_the_one_before() {
    let mut run = run();
    fold(&mut run, "Zero was asked.");
    let prompt = prompt(&run);
    assert!(prompt.contains("Zero was asked.") && prompt.contains("Question 1."), "{prompt}");
}

#[test]
fn s001_13_the_model_folds_in_and_does_not_condense_anew() {
    let mut run = run();
    fold(&mut run, "Zero was asked.");
    let prompt = prompt(&run);
    let asks = "Fold it into /summary.md: keep lines that still hold word for word";
    assert!(prompt.contains(asks), "{prompt}");
}

#[test]
fn s001_14_the_prompt_says_which_chunk_it_is() {
    assert!(prompt(&run()).contains("This is chunk 1 of 6 of the transcript."));
}

#[test]
fn s001_15_the_last_chunk_is_flagged() {
    let mut run = run();
    for _ in 0..5 {
        assert!(!prompt(&run).contains("It is the last one"));
        fold(&mut run, "A part.");
    }
    assert!(prompt(&run).contains("It is the last one"));
}

#[test]
fn s001_19_the_model_has_the_tools_edl_and_get_file() {
    let request = asked(&run());
    let mut names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["edl", "get_file"]);
}

#[test]
fn s001_33_a_run_under_way_is_a_value_with_all_of_its_state() {
    let mut first = run();
    fold(&mut first, "Zero was asked.");
    let stored = serde_json::to_string(&first).unwrap();
    let again: CompactionRun = serde_json::from_str(&stored).unwrap();
    assert_eq!(asked(&again), asked(&first));
    assert_eq!(serde_json::to_string(&again).unwrap(), stored);
}

#[test]
fn s001_36_every_chunk_is_a_new_conversation() {
    let mut run = run();
    fold(&mut run, "Zero was asked.");
    assert_eq!(asked(&run).messages.len(), 1);
}

#[test]
fn s001_39_the_summary_accumulates() {
    let mut run = run();
    for number in 0..6 {
        fold(&mut run, &format!("Part {number}."));
    }
    let RunStep::Done { summary } = run.step() else { panic!("{:?}", run.step()) };
    assert_eq!(summary, "Part 0.\nPart 1.\nPart 2.\nPart 3.\nPart 4.\nPart 5.\n");
}

#[test]
fn s001_44_no_request_holds_the_whole_thread() {
    let mut run = run();
    while let RunStep::Call { .. } = run.step() {
        assert!(prompt(&run).len() < 9_000);
        fold(&mut run, "A part.");
    }
}
