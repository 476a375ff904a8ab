//! Arbitrary threads: legal ones, built of steps in any order, and mostly illegal ones.
//!
//! A step is a message, or calls with all their results. Within a step the call ids are `t0`, `t1`
//! and so on. Joining the steps makes most of these ids unique, and leaves some that repeat in
//! later turns. Only the last step may leave its calls open.

use proptest::{
    collection::{SizeRange, vec},
    option,
    prelude::*,
    sample::select,
};
use threadfold::message::{
    CheckpointId, CheckpointIds, CompactionId, ContentBlock, Message, MessageParts, Origin, Role,
    ServerToolResult, ServerToolUse, StopReason, Summary, Text, TextBlock, ToolResult, ToolUse,
    Usage,
};

use super::blocks;

/// Threads without [`violations`](threadfold::legality::violations). `size` is the number of steps: a
/// step is a message, or an answer that calls tools together with all its results.
///
/// They have the features of real threads: parallel calls, with results in one message or in
/// several; results that are errors, empty, or of several blocks; call ids that repeat in later
/// turns; signed, unsigned and encrypted reasoning; reminders, images, documents, blocks of unknown
/// kinds, server-side tools; summaries of earlier compactions; system messages in between;
/// neighbours of one role, an assistant message at the start, an open tool loop, open calls. Most
/// have a checkpoint in most user messages. Texts are mostly short, sometimes large, and some look
/// like markers.
///
/// ```
/// use proptest::{prelude::*, test_runner::TestRunner};
/// use threadfold::legality;
/// use threadfold_testing::generate;
///
/// TestRunner::default().run(&generate::legal_thread(0..8), |thread| {
///     prop_assert_eq!(legality::violations(&thread), []);
///     Ok(())
/// })?;
/// # Ok::<(), proptest::test_runner::TestError<Vec<threadfold::Message>>>(())
/// ```
pub fn legal_thread(size: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Message>> {
    let open = option::weighted(0.15, round());
    (vec(step(), size), open, any::<u64>(), prop::bool::weighted(0.85)).prop_map(
        |(mut steps, open, seed, stamped)| {
            steps.extend(open.map(|open| Step { results: Vec::new(), ..open }));
            join(steps, stamped.then(|| CheckpointIds::new(seed)))
        },
    )
}

/// Messages that are legal after any other step.
#[derive(Clone, Debug)]
struct Step {
    messages: Vec<Message>,
    /// The results of the calls in the messages.
    results: Vec<Message>,
    /// Whether the calls keep their ids, which may also occur in other steps.
    reused: bool,
    /// Whether the user messages get checkpoints.
    stamped: bool,
}

impl Step {
    fn of(messages: Vec<Message>) -> Self {
        Self { messages, results: Vec::new(), reused: false, stamped: true }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => round(),
        3 => answer(false).prop_map(|answer| Step::of(vec![answer])),
        4 => (vec(blocks::user_block(), 1..4), prop::bool::weighted(0.9)).prop_map(
            |(content, stamped)| {
                Step { stamped, ..Step::of(vec![Message::new(Role::User, content)]) }
            },
        ),
        1 => blocks::text().prop_map(|text| Step::of(vec![Message::system(text)])),
        1 => summary(),
        1 => blocks::server_pair().prop_map(|pair| {
            // A paused turn: the provider's result is in the next message.
            Step::of(pair.map(|block| Message::new(Role::Assistant, vec![block])).into())
        }),
    ]
}

/// A summary of an earlier compaction.
fn summary() -> impl Strategy<Value = Step> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    (role, blocks::text(), option::of(0_u64..4)).prop_map(|(role, text, number)| {
        let summary = Summary { compaction: number.map(CompactionId), ..Summary::new(text) };
        Step::of(vec![Message::summary(role, summary)])
    })
}

/// An assistant message without calls for the host. It may be without text if `calls` follow.
fn answer(calls: bool) -> impl Strategy<Value = Message> {
    let reasons = vec(blocks::reasoning(), 0..3);
    let texts = vec(blocks::text_block(), usize::from(!calls)..3);
    let parts = (
        prop_oneof![1 => Just(Vec::new()), 1 => reasons],
        texts,
        option::weighted(0.1, blocks::server_pair()),
        option::of(0_u64..200_000),
        option::of(prop::bool::ANY),
        prop::bool::weighted(0.1),
        blocks::message_extra(),
    );
    parts.prop_map(|(mut content, texts, pair, tokens, origin, rewritten, extra)| {
        content.extend(pair.into_iter().flatten());
        content.extend(texts);
        let reasons = content.iter().any(ContentBlock::is_reasoning);
        let mut parts = MessageParts::new(Role::Assistant, content);
        parts.usage = tokens.map(|tokens| Usage::new(tokens, 90));
        parts.stop_reason = tokens.map(|_| StopReason::EndTurn);
        parts.origin = origin.map(of_provider);
        parts.extra = extra;
        let mut message = Message::from(parts);
        message.prefix_rewritten = rewritten && reasons;
        message
    })
}

fn of_provider(anthropic: bool) -> Origin {
    if anthropic {
        Origin::new("anthropic-messages", Some("claude-opus-4-8".into()))
    } else {
        Origin::new("openai-chat", None)
    }
}

/// Calls, in one assistant message or in several in a row, and their results, in one user message
/// or in several.
fn round() -> impl Strategy<Value = Step> {
    let call = (blocks::input(), blocks::result(), prop::bool::weighted(0.2), any::<[bool; 2]>());
    let before = vec(answer(false), 0..2);
    let parts = (
        before,
        answer(true),
        vec(call, 1..4),
        vec(blocks::user_block(), 0..2),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.9),
    );
    parts.prop_map(|(before, answer, calls, typed, reused, stamped)| {
        let mut messages = before;
        messages.push(answer);
        let mut results = vec![Message::new(Role::User, Vec::new())];
        for (number, (input, result, apart, [split, first])) in calls.into_iter().enumerate() {
            let id = Text::from(format!("t{number}"));
            if apart {
                messages.push(Message::new(Role::Assistant, Vec::new()));
            }
            let call =
                ToolUse { input, ..ToolUse::new(id.clone(), "read_file", blocks::json("{}")) };
            add(&mut messages, call.into(), false);
            if split && apart {
                // The user may type between results; they still belong to one turn.
                results.push(Message::new(Role::User, typed.clone()));
                results.push(Message::new(Role::User, Vec::new()));
            }
            add(&mut results, ToolResult { tool_use_id: id, ..result }.into(), first);
        }
        typed.into_iter().for_each(|block| add(&mut results, block, false));
        results.retain(|message| !message.content.is_empty());
        Step { messages, results, reused, stamped }
    })
}

/// Adds a block to the last message, at its start or end.
fn add(messages: &mut [Message], block: ContentBlock, first: bool) {
    if let Some(message) = messages.last_mut() {
        let content = &mut message.make_mut().content;
        let at = if first { 0 } else { content.len() };
        content.insert(at, block);
    }
}

/// Concatenates the steps, makes call ids unique and appends checkpoints to user messages.
fn join(steps: Vec<Step>, mut ids: Option<CheckpointIds>) -> Vec<Message> {
    let mut used = std::collections::HashSet::new();
    let mut thread = Vec::new();
    for (number, Step { messages, results, reused, stamped }) in steps.into_iter().enumerate() {
        for mut message in messages.into_iter().chain(results) {
            if message.content.is_empty() {
                continue;
            }
            if !reused {
                rename(&mut message, number);
            }
            if let Some(ids) = ids.as_mut().filter(|_| stamped && message.role == Role::User) {
                let id = ids.draw(|id| used.contains(&id));
                used.insert(id);
                message.make_mut().content.push(ContentBlock::checkpoint(id));
            }
            thread.push(message);
        }
    }
    thread
}

fn rename(message: &mut Message, step: usize) {
    for block in &mut message.make_mut().content {
        if let ContentBlock::ToolUse(call) = block {
            call.id = format!("call_{step}_{}", call.id).into();
        } else if let ContentBlock::ToolResult(result) = block {
            result.tool_use_id = format!("call_{step}_{}", result.tool_use_id).into();
        }
    }
}

/// Threads of any blocks with any role in any order: results without calls, duplicate ids and
/// checkpoints, blank texts, empty messages, results within results.
///
/// ```
/// use proptest::{prelude::*, test_runner::TestRunner};
/// use threadfold::legality;
/// use threadfold_testing::generate;
///
/// TestRunner::default().run(&generate::junk_thread(0..8), |thread| {
///     let (repaired, _) = legality::repair(thread);
///     prop_assert_eq!(legality::violations(&repaired), []);
///     Ok(())
/// })?;
/// # Ok::<(), proptest::test_runner::TestError<Vec<threadfold::Message>>>(())
/// ```
pub fn junk_thread(size: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Message>> {
    vec(message(), size)
}

fn message() -> impl Strategy<Value = Message> {
    let role =
        prop_oneof![4 => Just(Role::User), 4 => Just(Role::Assistant), 1 => Just(Role::System)];
    let stop = prop_oneof![Just(None), Just(Some(StopReason::Aborted))];
    let parts = (role, vec(block(), 0..5), stop, blocks::extra(), any::<bool>());
    parts.prop_map(|(role, content, stop_reason, extra, prefix_rewritten)| {
        let mut parts = MessageParts::new(role, content);
        (parts.stop_reason, parts.extra) = (stop_reason, extra);
        let mut message = Message::from(parts);
        message.prefix_rewritten = prefix_rewritten;
        message
    })
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let nested = vec(prop_oneof![flat(), paired()], 0..3);
    prop_oneof![
        4 => flat(),
        5 => paired(),
        2 => (id(), nested, any::<bool>()).prop_map(|(id, content, is_error)| {
            ToolResult { is_error, ..ToolResult::new(id, content) }.into()
        }),
    ]
}

fn flat() -> impl Strategy<Value = ContentBlock> + Clone {
    prop_oneof![
        3 => blocks::user_block(),
        2 => blank().prop_map(|text| TextBlock::new(text).into()),
        1 => blank().prop_map(|text| Summary::new(text).into()),
        1 => blank().prop_map(ContentBlock::reminder),
        2 => blocks::reasoning(),
        2 => checkpoint().prop_map(ContentBlock::checkpoint),
    ]
}

/// Calls and results with few different ids, so that some form pairs.
fn paired() -> impl Strategy<Value = ContentBlock> + Clone {
    prop_oneof![
        3 => (id(), blocks::input()).prop_map(move |(id, input)| {
            ToolUse { input, ..ToolUse::new(id, "run", blocks::json("{}")) }.into()
        }),
        3 => (id(), blocks::result()).prop_map(|(id, result)| {
            ToolResult { tool_use_id: id, ..result }.into()
        }),
        1 => id().prop_map(move |id| ServerToolUse::new(id, "search", blocks::json("null")).into()),
        1 => id().prop_map(move |id| ServerToolResult::new(id, "search_result", blocks::json("null")).into()),
    ]
}

fn id() -> impl Strategy<Value = Text> + Clone {
    select(vec!["t0", "t1", "t2", "t0-2", "", " ", "漢"]).prop_map(Text::from)
}

fn blank() -> impl Strategy<Value = Text> + Clone {
    select(vec!["", " ", "\n\t", "\u{a0}", "\u{3000}", "x"]).prop_map(Text::from)
}

fn checkpoint() -> impl Strategy<Value = CheckpointId> + Clone {
    let ids = ["aaaaaa", "bbbbbb", "cccccc"].into_iter().filter_map(|id| id.parse().ok());
    select(ids.collect::<Vec<CheckpointId>>())
}
