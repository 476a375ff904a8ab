//! Legal threads: built of steps that are legal one behind the other in any order.
//!
//! A step is a message, or calls with all their results. Within a step calls are named `t0`, `t1`
//! and so on; joining the steps makes most of these names new, and leaves some, so that an id
//! comes again in later turns. Only the last step may leave its calls open.

use proptest::{
    collection::{SizeRange, vec},
    option,
    prelude::*,
};

use super::blocks;
use crate::message::{
    CheckpointIds, CompactionId, ContentBlock, Message, MessageParts, Origin, Role, StopReason,
    Summary, Text, ToolUse, Usage,
};

/// Threads that [`violations`](crate::legality::violations) finds clean, of as many steps as the
/// size says. A step is a message, or an answer that calls tools with all its results.
///
/// They hold what real ones do: parallel calls, answered in one message or in several; results
/// that are errors, empty, or of several blocks; call ids that come again in later turns; signed,
/// unsigned and encrypted reasoning; reminders, pictures, documents, blocks of unknown kinds,
/// provider-side tools; summaries of earlier compactions; system messages in between; neighbours
/// of one role, a leading answer, an open tool loop, calls that nobody has answered yet. Most have
/// a checkpoint in most of their user messages. Texts are mostly short and at times large, some
/// look like markers.
///
/// ```
/// use proptest::{prelude::*, test_runner::TestRunner};
/// use threadfold::{legality, testing::generate};
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

/// Messages that are legal behind any other step.
#[derive(Clone, Debug)]
struct Step {
    messages: Vec<Message>,
    /// The answers to the calls in the messages.
    results: Vec<Message>,
    /// Whether the calls keep their names, which come again then.
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
        4 => (vec(blocks::said(), 1..4), prop::bool::weighted(0.9)).prop_map(|(said, stamped)| {
            Step { stamped, ..Step::of(vec![Message::new(Role::User, said)]) }
        }),
        1 => blocks::text().prop_map(|text| Step::of(vec![Message::system(text)])),
        1 => summary(),
        1 => blocks::server_pair().prop_map(|pair| {
            // A paused turn: the provider answers its own call in the next message.
            Step::of(pair.map(|block| Message::new(Role::Assistant, vec![block])).into())
        }),
    ]
}

/// What an earlier compaction left.
fn summary() -> impl Strategy<Value = Step> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    (role, blocks::text(), option::of(0_u64..4)).prop_map(|(role, text, number)| {
        let summary = Summary { compaction: number.map(CompactionId), ..Summary::new(text) };
        Step::of(vec![Message::summary(role, summary)])
    })
}

/// An answer without calls that the host would have to answer.
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
        blocks::extra(),
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
        vec(blocks::said(), 0..2),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.9),
    );
    parts.prop_map(|(before, answer, calls, said, reused, stamped)| {
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
                // The user may type between results; such a thread is still answered in one turn.
                results.push(Message::new(Role::User, said.clone()));
                results.push(Message::new(Role::User, Vec::new()));
            }
            let mut result = result;
            result.tool_use_id = id;
            add(&mut results, result.into(), first);
        }
        said.into_iter().for_each(|block| add(&mut results, block, false));
        results.retain(|message| !message.content.is_empty());
        Step { messages, results, reused, stamped }
    })
}

/// Puts a block into the last message.
fn add(messages: &mut [Message], block: ContentBlock, first: bool) {
    if let Some(message) = messages.last_mut() {
        let content = &mut message.make_mut().content;
        let at = if first { 0 } else { content.len() };
        content.insert(at, block);
    }
}

/// Puts steps behind each other, makes call ids new and stamps user messages.
fn join(steps: Vec<Step>, mut ids: Option<CheckpointIds>) -> Vec<Message> {
    let mut drawn = std::collections::HashSet::new();
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
                let id = ids.draw(|id| drawn.contains(&id));
                drawn.insert(id);
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
