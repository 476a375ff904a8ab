//! Arbitrary threads, mostly illegal.

use proptest::{
    collection::{SizeRange, vec},
    prelude::*,
    sample::select,
};

use super::blocks;
use crate::message::{
    CheckpointId, ContentBlock, Message, MessageParts, Role, ServerToolResult, ServerToolUse,
    StopReason, Summary, Text, TextBlock, ToolResult, ToolUse,
};

/// Threads of any blocks with any role in any order: results without calls, duplicate ids and
/// checkpoints, blank texts, empty messages, results within results.
///
/// ```
/// use proptest::{prelude::*, test_runner::TestRunner};
/// use threadfold::{legality, testing::generate};
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
