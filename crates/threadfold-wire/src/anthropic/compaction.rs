//! Compaction by Anthropic, on demand (`compaction`, beta `compact-2026-09-04`) and from a number
//! of tokens on (`context_management`, beta `compact-2026-01-12`), as documented in September 2026.

use super::forms::NAME;
use crate::kit::*;

pub(super) const NATIVE: Compaction = Compaction { request, asked, answer };

const COMPACTION: &str = "compaction";

// The provider refuses a request for a compaction with parameters that shape an answer or manage
// the context, so they are removed. The request needs the header `anthropic-beta:
// compact-2026-09-04`, and so does every later request with the resulting block.
fn request(mut request: Request, instructions: Option<&str>) -> Request {
    for name in ["context_management", "stop_sequences"] {
        set_field(&mut request.extra, NAME, name, None);
    }
    if let Some(config) = request.extra.get(NAME, "output_config").cloned() {
        let mut config = reopen(Some(&config));
        config.remove("format");
        config.remove("task_budget");
        let config = (config.len() > 0).then(|| config.into_json());
        set_field(&mut request.extra, NAME, "output_config", config);
    }
    if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
        request.tool_choice = None;
    }
    let mut asked = Object::typed("summarize");
    asked.set_some("instructions", instructions.map(Text::from));
    request.extra = request.extra.with(NAME, COMPACTION, asked.into_json());
    request
}

fn asked(request: &Request) -> Option<CompactionAsked> {
    if let Some(mut asked) = on_demand(&request.extra) {
        let instructions = asked.take_text("instructions");
        return Some(CompactionAsked { when: CompactionTime::Now, instructions });
    }
    let management = request.extra.get(NAME, "context_management")?;
    let mut asked = edit(management, Some("edits"), "compact_20260112")?;
    let tokens = asked.object("trigger").and_then(|trigger| trigger.number("value"));
    let when = CompactionTime::from_tokens(tokens);
    Some(CompactionAsked { when, instructions: asked.take_text("instructions") })
}

fn answer(model: &str, summary: &str, usage: Usage) -> Json {
    let block = Object::typed(COMPACTION).with("content", Text::from(summary));
    let block = block.with("signature", BY_GATEWAY);
    let pass = counts(usage).with("type", COMPACTION);
    let used = counts(Usage::default()).with("iterations", Tree::from_iter([pass]));
    let message =
        Object::typed("message").with("role", "assistant").with("model", Text::from(model));
    let message = message.with("content", Tree::from_iter([block]));
    let message = message.with("stop_reason", COMPACTION).with("stop_sequence", Tree::Null);
    Tree::from(message.with("usage", used)).into_json()
}

/// The parameter that asks for a compaction instead of an answer.
pub(super) fn on_demand(extra: &Extra) -> Option<Fields<'_>> {
    let asked = Fields::parse(extra.get(NAME, COMPACTION)?.as_str())?;
    asked.word("type").is_some_and(|word| word == "summarize").then_some(asked)
}

/// Reads a compaction that this crate wrote for a client; `None` for one of the provider.
pub(super) fn by_gateway(mut fields: Fields<'_>) -> Option<ContentBlock> {
    let is_ours = fields.word("signature").is_some_and(|signature| signature == BY_GATEWAY);
    let text = fields.take_text("content").filter(|text| is_ours && !text.is_blank())?;
    Some(Summary::new(text).into())
}

/// Gives a message that is only a compaction the role in which the provider returned it.
pub(super) fn as_returned(thread: &mut Thread, options: &EncodeOptions) {
    let mut next = None;
    for (_, message) in thread.iter_mut().rev() {
        let is_alone = message.role == Role::User && message.content.iter().all(is_own);
        if is_alone && !message.content.is_empty() {
            let role = role_before(next, options);
            message.make_mut().role = role;
        }
        next = Some(message.role);
    }
}

/// The role of a message that is only a compaction, before one of role `next`: that in which the
/// provider returned it. Only a model that does not bind reasoning may need another one: with a fixed
/// budget for thinking, the first answer of a tool loop must begin with thinking, and the provider
/// reads neighbours of one role as one message.
fn role_before(next: Option<Role>, options: &EncodeOptions) -> Role {
    match next {
        Some(Role::Assistant) if !options.binds_reasoning => Role::User,
        Some(_) | None => Role::Assistant,
    }
}

/// Moves the newest signed compaction to the beginning of the thread, into a message of its own, and
/// removes all others, because it replaces everything before it and the provider accepts only one. A
/// compaction without a signature stays, and the provider ignores the blocks before it.
pub(super) fn lead_with_newest(thread: &mut Thread, options: &EncodeOptions, notes: &mut Notes) {
    let messages = thread.iter().enumerate().rev();
    // A system message holds no blocks of the provider.
    let mut messages = messages.filter(|(_, (_, message))| message.role != Role::System);
    let newest = messages.find_map(|(index, (_, message))| {
        Some((index, message.content.iter().rposition(is_signed)?))
    });
    let Some((of, place)) = newest else { return };
    let mut block = None;
    for (index, (at, message)) in thread.iter_mut().enumerate() {
        notes.turn_to(*at);
        let mut places = (0..).map(|place| (index, place));
        fit_blocks(message, |candidate| {
            if places.next() == Some((of, place)) {
                block = Some((*at, candidate.clone()));
                return false;
            }
            !is_own(candidate) || notes.drop_block("opaque", "a newer compaction stands for it")
        });
    }
    let is_first = (of, place) == (0, 0);
    if let Some((at, block)) = block {
        if !is_first {
            notes.turn_to(at).moved("opaque", "a signed compaction is first in the thread");
        }
        match thread.first_mut() {
            Some((_, first)) if is_first => first.make_mut().content.insert(0, block),
            Some(_) | None => {
                let next = thread.iter().find(|(_, message)| !message.content.is_empty());
                let role = role_before(next.map(|(_, message)| message.role), options);
                thread.insert(0, (at, Message::new(role, vec![block])));
            }
        }
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

fn is_signed(block: &ContentBlock) -> bool {
    let ContentBlock::Opaque(opaque) = block else { return false };
    let fields = Fields::parse(opaque.value.as_str()).filter(|_| is_own(block));
    fields.is_some_and(|fields| fields.get("signature").is_some_and(Raw::is_text))
}

/// Whether a block is a compaction that this provider made.
fn is_own(block: &ContentBlock) -> bool {
    let ContentBlock::Opaque(opaque) = block else { return false };
    opaque.codec == NAME && opaque.is_compaction()
}
