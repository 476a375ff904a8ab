//! Making a thread legal for a provider before it is written.
//!
//! These rules change messages, not JSON. A dialect configures them with [`Kinds`], [`Ending`] and
//! functions for blocks.

use super::{
    contract::Change, extras::without_forms, growing::Merged, json::*, notes::*, texts::*,
};
use threadfold_core::message::*;

/// Which blocks a dialect writes as results and as reasoning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) is_result: fn(&ContentBlock) -> bool,
    pub(super) is_reasoning: fn(&ContentBlock) -> bool,
}

impl Kinds {
    /// For dialects that write only tool results as results and only reasoning as reasoning.
    pub(super) const USUAL: Self = Self { is_result, is_reasoning: ContentBlock::is_reasoning };
}

/// Whether a block is a result that the host gives.
pub(super) fn is_result(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolResult(_))
}

/// Whether a block is a call that the host answers.
pub(super) fn is_call(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolUse(_))
}

/// Applies a rule to the blocks of a message. The rule may change a block; a block for which it
/// returns `false` is removed.
pub(super) fn fit_blocks(message: &mut Message, rule: impl FnMut(&mut ContentBlock) -> bool) {
    message.make_mut().content.retain_mut(rule);
}

/// Removes the fields of another codec from a block, and reports them. Returns `true`: the block
/// stays.
pub(super) fn clear_fields(block: &mut ContentBlock, notes: &mut Notes) -> bool {
    extra_mut(block).into_iter().for_each(|extra| notes.clear(extra));
    true
}

/// Returns the tools that have an input schema or are this provider's own.
pub(super) fn fit_tools(tools: &[ToolSpec], notes: &mut Notes) -> Vec<ToolSpec> {
    let mut fitted = Vec::with_capacity(tools.len());
    for tool in tools {
        if !tool.input_schema.is_object() && tool.extra.codec() != Some(notes.codec()) {
            notes.drop_block("tool", "it has no schema of its input");
            continue;
        }
        let mut tool = tool.clone();
        notes.clear(&mut tool.extra);
        fitted.push(tool);
    }
    fitted
}

/// Turns a system message into a user message of reminders.
pub(super) fn make_user(message: &mut Message, notes: &mut Notes) {
    notes.note(Change::SystemMoved);
    fit_blocks(message, |block| {
        let Some((text, extra)) = wire_text(Role::System, block) else {
            return notes.drop_block(block.kind(), "only a system message holds it");
        };
        *block = ContentBlock::SystemReminder(TextBlock { text, extra: extra.clone() });
        clear_fields(block, notes)
    });
    let parts = message.make_mut();
    parts.role = Role::User;
    // The marks describe the form of the old content.
    parts.extra = without_forms(&parts.extra);
    notes.clear(&mut parts.extra);
}

/// Moves the results of each user turn before its other blocks.
pub(super) fn results_first(thread: &mut Thread, kinds: Kinds, notes: &mut Notes) {
    for turn in thread.chunk_by_mut(|(_, left), (_, right)| left.role == right.role) {
        if turn.first().is_some_and(|(_, message)| message.role == Role::User) {
            lift_results(turn, kinds, notes);
        }
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

fn lift_results(turn: &mut [(usize, Message)], kinds: Kinds, notes: &mut Notes) {
    // The first block of the turn that is not a result. Later results are moved before it.
    let first_other = turn.iter().enumerate().find_map(|(index, (_, message))| {
        Some((index, message.content.iter().position(|block| !(kinds.is_result)(block))?))
    });
    let Some((index, place)) = first_other else { return };
    let mut late = Vec::new();
    for (offset, (at, message)) in turn.iter_mut().skip(index).enumerate() {
        let from = if offset == 0 { place } else { 0 };
        notes.turn_to(*at);
        for result in message.make_mut().content.extract_if(from.., |it| (kinds.is_result)(it)) {
            notes.moved(result.kind(), "results come first in the turn that answers");
            late.push(result);
        }
    }
    if let Some((_, message)) = turn.get_mut(index).filter(|_| !late.is_empty()) {
        message.make_mut().content.splice(place..place, late);
    }
}

/// Merges adjacent messages of one role.
pub(super) fn merge_neighbours(thread: &mut Thread, notes: &mut Notes) {
    if thread.windows(2).all(|pair| !matches!(pair, [(_, a), (_, b)] if a.role == b.role)) {
        return;
    }
    let turns = thread.chunk_by(|(_, left), (_, right)| left.role == right.role);
    *thread = turns.filter_map(|turn| merge(turn, notes)).collect();
}

/// The field in which gateways list the details of reasoning.
const DETAILS: &str = "reasoning_details";

/// Merges messages into the first one. If a field has two different values, the first stays, but
/// lists of reasoning details are joined.
pub(super) fn merge(turn: &[(usize, Message)], notes: &mut Notes) -> Option<(usize, Message)> {
    let (first, rest) = turn.split_first()?;
    let (at, mut message) = first.clone();
    if rest.is_empty() {
        return Some((at, message));
    }
    let mut fields = Merged::default();
    message.extra.fields().for_each(|(key, value)| fields.set(key, value.clone()));
    for (at, other) in rest {
        notes.turn_to(*at).note(Change::Merged);
        let mut clashes = Vec::new();
        for (key, value) in other.extra.fields().filter(|(key, _)| !is_mark(key)) {
            // `None` for details that were joined before.
            let kept = fields.get(key);
            let is_list = key == DETAILS && kept.is_none_or(|kept| kept.as_str().starts_with('['));
            if !fields.has(key) {
                fields.set(key, value.clone());
            } else if let Some(more) = Raw::of(value).items().filter(|_| is_list) {
                fields.extend(key, more);
            } else if kept != Some(value) {
                clashes.push(Text::from(key));
            }
        }
        if !clashes.is_empty() {
            notes.drop_fields(clashes);
        }
    }
    let mut content = Vec::new();
    turn.iter().for_each(|(_, message)| content.extend_from_slice(&message.content));
    message = message.with_content(content);
    let fields = fields.object().into_iter();
    let fields = fields.map(|(key, value)| (Text::from(key.as_ref()), value.into_json()));
    message.make_mut().extra = Extra::new(notes.codec(), fields);
    Some((at, message))
}

/// The rules for the end of a body.
#[derive(Debug)]
pub(super) struct Ending {
    /// The index after the last message of the request.
    pub(super) at: usize,
    /// The last answer is written unchanged: the provider paused it, or its calls may stay open.
    pub(super) stays: bool,
    /// The model continues an answer that the request begins.
    pub(super) prefill: bool,
    /// Such a beginning may not hold reasoning, because thinking is off.
    pub(super) refuses_reasoning: bool,
}

/// Makes the end of the thread legal: it must be a user message, or an answer that the model
/// continues.
pub(super) fn fit_end(thread: &mut Thread, ending: &Ending, kinds: Kinds, notes: &mut Notes) {
    if ending.prefill && ending.refuses_reasoning && !ending.stays {
        drop_last_reasoning(thread, kinds, notes);
    }
    let last = thread.iter_mut().rev().find(|(_, message)| message.role != Role::System);
    let last = last.filter(|(_, last)| last.role == Role::Assistant && !ending.stays);
    let Some((at, last)) = last else { return };
    if ending.prefill {
        trim_end(*at, last, notes);
    } else {
        notes.turn_to(ending.at).note(Change::UserInserted);
        thread.push((ending.at, Message::user(CONTINUE)));
    }
}

fn drop_last_reasoning(thread: &mut Thread, kinds: Kinds, notes: &mut Notes) {
    let answers = thread.iter_mut().rev();
    for (at, message) in answers.take_while(|(_, message)| message.role == Role::Assistant) {
        const OFF: &str = "thinking is off and the answer is the last message";
        notes.turn_to(*at);
        fit_blocks(message, |it| !(kinds.is_reasoning)(it) || notes.drop_reasoning(OFF));
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

fn trim_end(at: usize, message: &mut Message, notes: &mut Notes) {
    let Some((text, extra)) = message.content.last().and_then(|b| wire_text(Role::Assistant, b))
    else {
        return;
    };
    let trimmed = text.trim_end();
    if trimmed.len() < text.len() {
        let block = TextBlock { text: trimmed.into(), extra: extra.clone() }.into();
        notes.turn_to(at).drop_block("white_space", "an answer to go on with may not end in it");
        if let Some(last) = message.make_mut().content.last_mut() {
            *last = block;
        }
    }
}

/// Inserts a short user message before a thread that may not begin with its first message.
pub(super) fn begin_with_user(
    thread: &mut Thread,
    end: usize,
    may_begin: impl Fn(&Message) -> bool,
    notes: &mut Notes,
) {
    let first = thread.iter().find(|(_, message)| message.role != Role::System);
    let (at, text) = match first {
        Some((_, first)) if first.role == Role::User || may_begin(first) => return,
        Some((at, _)) => (*at, BEGIN),
        None => (end, CONTINUE),
    };
    notes.turn_to(at).note(Change::UserInserted);
    thread.insert(0, (at, Message::user(text)));
}

/// Whether the thread ends with a tool loop or an answer without reasoning, which Claude refuses if
/// thinking is on. A loop with reasoning at any position returns `false`, because without
/// `thinking` that reasoning would be refused. A loop begins after a user turn with more than
/// results, such as a question beside them; only its own end may have one.
pub(super) fn loop_has_no_reasoning(thread: &Thread, kinds: Kinds) -> bool {
    let spoken: Vec<&Message> =
        thread.iter().map(|(_, message)| message).filter(|it| it.role != Role::System).collect();
    // The provider treats adjacent messages of one role as one turn.
    let mut turns = spoken.chunk_by(|left, right| left.role == right.role).rev().peekable();
    let has = |message: &&Message, is: fn(&ContentBlock) -> bool| message.content.iter().any(is);
    let is_answer = |message: &&Message| message.role == Role::Assistant;
    // The results at the end, which a question may follow.
    turns.next_if(|turn| {
        !turn.iter().any(is_answer) && turn.iter().any(|it| has(it, kinds.is_result))
    });
    let is_of_loop = |it: &&Message| is_answer(it) || it.content.iter().all(kinds.is_result);
    let mut answers = turns
        .take_while(|turn| turn.iter().all(is_of_loop))
        .flatten()
        .filter(|it| is_answer(it))
        .peekable();
    answers.peek().is_some() && !answers.any(|it| has(it, kinds.is_reasoning))
}

/// Takes images and documents out of a result that cannot hold them, and puts a text before them
/// that names their source.
pub(super) fn take_media(
    result: &mut ToolResult,
    source: &str,
    reason: &str,
    notes: &mut Notes,
) -> Vec<ContentBlock> {
    let media = result.content.extract_if(.., |block| matches!(block, blocks!(media)));
    let mut media: Vec<_> = media.collect();
    media.iter().for_each(|block| notes.moved(block.kind(), reason));
    if !media.is_empty() {
        media.insert(0, ContentBlock::text(format!("From the result of {source}:")));
    }
    media
}

macro_rules! field_of_kinds {
    ($name:ident, $visible:vis $name_mut:ident, $field:ident: $of:ty, $($with:pat_param)|+, else $($without:pat_param)|+) => {
        pub(super) fn $name(block: &ContentBlock) -> Option<&$of> {
            match block { $($with)|+ => Some($field), $($without)|+ => None }
        }

        #[doc(hidden)]
        $visible fn $name_mut(block: &mut ContentBlock) -> Option<&mut $of> {
            match block { $($with)|+ => Some($field), $($without)|+ => None }
        }
    };
}

field_of_kinds!(
    extra, pub extra_mut, extra: Extra,
    ContentBlock::Text(TextBlock { extra, .. })
    | ContentBlock::Image(Image { extra, .. })
    | ContentBlock::Document(Document { extra, .. })
    | ContentBlock::Thinking(Thinking { extra, .. })
    | ContentBlock::RedactedThinking(RedactedThinking { extra, .. })
    | ContentBlock::ToolUse(ToolUse { extra, .. })
    | ContentBlock::ToolResult(ToolResult { extra, .. })
    | ContentBlock::ServerToolUse(ServerToolUse { extra, .. })
    | ContentBlock::ServerToolResult(ServerToolResult { extra, .. })
    | ContentBlock::SystemReminder(TextBlock { extra, .. })
    | ContentBlock::ContextUpdate(ContextUpdate { extra, .. })
    | ContentBlock::Checkpoint(Checkpoint { extra, .. })
    | ContentBlock::Summary(Summary { extra, .. }),
    else ContentBlock::Opaque(_)
);

field_of_kinds!(
    call_id, pub(super) call_id_mut, id: Text,
    ContentBlock::ToolUse(ToolUse { id, .. })
    | ContentBlock::ServerToolUse(ServerToolUse { id, .. })
    | ContentBlock::ToolResult(ToolResult { tool_use_id: id, .. })
    | ContentBlock::ServerToolResult(ServerToolResult { tool_use_id: id, .. }),
    else blocks!(text) | blocks!(media) | blocks!(reasoning) | ContentBlock::Opaque(_)
);
