//! Different strategies in turn on the same thread: nothing is lost between them, and nothing is
//! stated twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use futures::executor::block_on;
use proptest::{collection, option, prelude::*};
use threadfold::{
    CompactionStrategy, ContentBlock, Message, Model, Request, Role,
    drive::{self, Models},
    message::{
        Answer, Batch, BatchId, Json, ModelError, StopReason, Summary, ToolInput, ToolResult,
        ToolUse,
    },
    strategy::{Brief, Chunked, Digest, Ladder, Rolling, Snapshot, Summarize, View},
    testing::{answers, asked},
};
use threadfold_testing::TestClock;

use crate::support::tries::tries;

/// A model whose summary consists of every mark that it is shown.
#[derive(Debug)]
struct Remembers;

#[async_trait]
impl Model for Remembers {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let edits = request.tools.iter().any(|tool| tool.name == "edl");
        let shown: String = request.messages.iter().map(written).collect();
        if !edits {
            let answer = list(marks(&shown));
            let answer = if answer.is_empty() { "Nothing.".to_owned() } else { answer };
            return Ok(Answer::new(Message::assistant(answer), StopReason::EndTurn, None));
        }
        let (brief, chunk) = shown.split_once("The new chunk:").unwrap();
        let known = marks(brief.split_once("The brief so far").unwrap().1);
        let new: BTreeSet<usize> = marks(chunk).difference(&known).copied().collect();
        if new.is_empty() || request.messages.len() > 1 {
            return Ok(Answer::new(Message::assistant("Done."), StopReason::EndTurn, None));
        }
        let script =
            format!("file /summary.md\nselect eof\ninsert_after <<END\n{}\nEND\n", list(new));
        let mut call = ToolUse::new("c1", "edl", Json::default());
        call.input = ToolInput::from_text(serde_json::json!({ "script": script }).to_string());
        let call = Message::new(Role::Assistant, vec![call.into()]);
        Ok(Answer::new(call, StopReason::ToolUse, None))
    }
}

fn written(message: &Message) -> String {
    message.content.iter().map(|block| text(block, false) + "\n").collect()
}

/// The text of a block, with or without the batches that its view omits.
fn text(block: &ContentBlock, hidden: bool) -> String {
    match block {
        ContentBlock::Text(block) => block.text.to_string(),
        ContentBlock::Summary(summary) if hidden && !summary.batches.is_empty() => {
            summary.batches.iter().map(|batch| format!("{}\n", batch.text)).collect()
        }
        ContentBlock::Summary(summary) => summary.text.to_string(),
        ContentBlock::ToolResult(result) => {
            result.content.iter().map(|block| text(block, hidden)).collect()
        }
        _ => String::new(),
    }
}

fn marks(text: &str) -> BTreeSet<usize> {
    let numbers = text.split("mark-").skip(1);
    let digits = numbers.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

fn list(marks: BTreeSet<usize>) -> String {
    marks.iter().map(|mark| format!("mark-{mark} ")).collect()
}

fn compact(
    strategy: &dyn CompactionStrategy,
    thread: &[Message],
    brief: &Brief,
) -> Option<Vec<Message>> {
    let snapshot = Snapshot::new(thread.to_vec());
    let clock = TestClock::default();
    let models = Models { clock: Some(&clock), ..Models::one(&Remembers) };
    let proposal =
        block_on(drive::propose(strategy, &snapshot, brief, models, &mut |_, _| {})).ok()?;
    Some(snapshot.accept(&proposal.plan, brief).unwrap())
}

fn summaries(thread: &[Message]) -> Vec<&Summary> {
    thread.iter().flat_map(|message| &message.content).filter_map(summary).collect()
}

fn summary(block: &ContentBlock) -> Option<&Summary> {
    if let ContentBlock::Summary(summary) = block { Some(summary) } else { None }
}

fn view(batches: Vec<Batch>) -> Message {
    let mut summary = Summary::new(Rolling::default().view(&batches));
    summary.batches = batches.into();
    Message::summary(Role::User, summary)
}

/// A thread that begins with a view of six batches, of which it shows four.
fn viewed() -> Vec<Message> {
    let batch = |index: u32| {
        let id = BatchId { index, ..BatchId::default() };
        Batch::new(id, format!("What was done about mark-{index}."))
    };
    let batches: Vec<Batch> = (0..6).map(batch).collect();
    let view = view(batches);
    assert!(!written(&view).contains("mark-2."));
    let talk = (10..40).map(|number| {
        let said = format!("About mark-{number}. {}", "It was long. ".repeat(9));
        if number % 2 == 0 { Message::user(said) } else { Message::assistant(said) }
    });
    std::iter::once(view).chain(talk).collect()
}

#[test]
fn batches_omitted_from_a_view_are_shown_to_the_next_summariser() {
    let next: [Box<dyn CompactionStrategy>; 4] = [
        Box::new(Summarize::default()),
        Box::new(Summarize { as_text: true, ..Summarize::default() }),
        Box::new(Chunked::default()),
        Box::new(Digest::default()),
    ];
    for strategy in next {
        let after = compact(strategy.as_ref(), &viewed(), &Brief::default()).unwrap();
        let [summary] = summaries(&after)[..] else { panic!("{after:#?}") };
        let reported = marks(&summary.text);
        assert!((0..6).all(|mark| reported.contains(&mark)), "{}: {reported:?}", strategy.name());
    }
}

#[test]
fn a_view_of_all_batches_is_sent_unchanged() {
    let mut thread = viewed();
    let batches = summaries(&thread)[0].batches[..4].to_vec();
    thread[0] = view(batches);
    let view = View::new(Snapshot::new(thread.clone()), Brief::default());
    let (calls, _) = asked(&Summarize::default(), &view, answers(["So."]));
    assert_eq!(calls[0].request.messages[0], thread[0]);
}

/// The messages between two compactions (words of the user, the calls that follow, the lines of
/// their results), then the strategy and its target.
type Round = (Vec<(usize, usize, usize)>, usize, Option<u64>);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let turn = (0_usize..60, 0_usize..3, 1_usize..30);
    let round = (collection::vec(turn, 3..12), 0_usize..6, option::of(2_000_u64..6_000));
    collection::vec(round, 1..12)
}

fn strategies() -> [Arc<dyn CompactionStrategy>; 6] {
    [
        Arc::new(Summarize { messages: 4, ..Summarize::default() }),
        Arc::new(Summarize { as_text: true, ..Summarize::default() }),
        Arc::new(Rolling { chunk_messages: 5, keep_recent: 2, ..Rolling::default() }),
        Arc::new(Rolling::default()),
        Arc::new(Chunked::default()),
        Arc::new(Ladder::default()),
    ]
}

/// Adds a turn with a mark in every text.
fn add(thread: &mut Vec<Message>, next: &mut usize, (words, calls, lines): (usize, usize, usize)) {
    let mut mark = || {
        *next += 1;
        format!("mark-{} ", *next - 1)
    };
    thread.push(Message::user(mark() + &"and so on ".repeat(words)));
    for _ in 0..calls {
        let said = mark();
        let id = said.trim();
        let call = ToolUse::new(id, "read", Json::parse(r#"{"path":"src/a.rs"}"#).unwrap());
        thread.push(Message::new(Role::Assistant, vec![call.into()]));
        let result = ToolResult::text(id, format!("{said}\n").repeat(lines));
        thread.push(Message::new(Role::User, vec![result.into()]));
    }
    thread.push(Message::assistant(mark()));
}

proptest! {
    #![proptest_config(tries(40))]

    #[test]
    fn alternating_strategies_lose_nothing_and_leave_one_summary(rounds in rounds()) {
        let (mut thread, mut next) = (Vec::new(), 0);
        for (turns, strategy, target) in rounds {
            turns.into_iter().for_each(|turn| add(&mut thread, &mut next, turn));
            // A summary may take a third of the target, and a mark takes up to four tokens of it.
            let target = target.map(|target| target.max(next as u64 * 12));
            let brief = Brief { target, ..Brief::default() };
            let strategy = &strategies()[strategy];
            let Some(after) = compact(strategy.as_ref(), &thread, &brief) else { continue };
            prop_assert!(summaries(&after).len() <= 1, "{}: {after:#?}", strategy.name());
            // No model wrote a digest, so it remembers as much as there is room for.
            if summaries(&after).iter().any(|summary| summary.text.starts_with("Digest of ")) {
                continue;
            }
            let mut found: BTreeMap<usize, usize> = BTreeMap::new();
            for block in after.iter().flat_map(|message| &message.content) {
                marks(&text(block, true)).into_iter().for_each(|mark| {
                    *found.entry(mark).or_default() += 1;
                });
            }
            let lost: Vec<usize> = (0..next).filter(|mark| !found.contains_key(mark)).collect();
            prop_assert_eq!(lost, Vec::<usize>::new(), "{} lost them", strategy.name());
            // A mark may be in its own message if that stays word for word, in the summary, and in
            // a batch that had the earlier ones as context.
            let most = found.values().max().copied().unwrap_or_default();
            prop_assert!(most <= 3, "{} tells {:?}", strategy.name(), found);
            thread = after;
        }
    }
}
