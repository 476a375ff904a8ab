//! Small threads of few ids, drawn for properties: legal ones, and such as break every rule.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::message::{
    ContentBlock, Json, Message, Role, ServerToolResult, ServerToolUse, SystemReminder, Thinking,
    ToolResult, ToolUse,
};

fn block() -> impl Strategy<Value = ContentBlock> {
    let made = |(kind, id): (u8, &'static str)| match kind {
        0 | 1 => ToolUse::new(id, "read", Json::default()).into(),
        2 | 3 => ToolResult::text(id, "done").into(),
        4 => ServerToolUse::new(id, "search", Json::default()).into(),
        5 => ServerToolResult::new(id, "found", Json::default()).into(),
        6 => Thinking::new("Hm.", None).into(),
        7 => SystemReminder::new("Be brief.").into(),
        8 => ContentBlock::text(" "),
        _ => ContentBlock::text("Well."),
    };
    (0_u8..12, select(vec!["a", "b"])).prop_map(made)
}

fn message() -> impl Strategy<Value = Message> {
    let roles = select(vec![Role::User, Role::Assistant, Role::Assistant, Role::System]);
    (roles, vec(block(), 0..4)).prop_map(|(role, content)| Message::new(role, content))
}

/// Calls of an assistant and the results that answer them, at times in two messages each.
fn round() -> impl Strategy<Value = Vec<Message>> {
    let shape = (select(vec![vec!["a"], vec!["b"], vec!["a", "b"], vec!["b", "a"]]), 0_u8..8);
    shape.prop_map(|(ids, shape)| {
        let call = |id: &&str| ContentBlock::from(ToolUse::new(*id, "read", Json::default()));
        let result = |id: &&str| ContentBlock::from(ToolResult::text(*id, "done"));
        let message = |role, blocks: Vec<ContentBlock>| Message::new(role, blocks);
        let said = |role, blocks: Vec<ContentBlock>, apart: bool| -> Vec<Message> {
            if apart {
                blocks.into_iter().map(|block| message(role, vec![block])).collect()
            } else {
                vec![message(role, blocks)]
            }
        };
        let mut calls = said(Role::Assistant, ids.iter().map(call).collect(), shape & 1 == 1);
        let results = ids.iter().rev().map(result).collect();
        calls.extend(said(Role::User, results, shape & 2 == 2));
        calls.extend((shape & 4 == 4).then(|| Message::assistant("It is done.")));
        calls
    })
}

/// A thread of few messages.
pub(super) fn thread() -> impl Strategy<Value = Vec<Message>> {
    let piece = prop_oneof![
        3 => message().prop_map(|message| vec![message]),
        2 => round(),
        1 => Just(vec![Message::user("And now?")]),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}
