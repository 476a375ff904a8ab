//! The rules of this dialect for blocks, for the order of contents in a turn, and for signatures.
//!
//! Gemini 3 and later refuse a thread if the first call of a step in the current turn has no
//! signature. For calls that other models made, the provider documents a placeholder.

use std::collections::HashMap;

use super::marks::*;
use crate::kit::*;

/// The rules for the blocks of a thread.
#[derive(Debug)]
pub(super) struct Gemini;

impl Rules for Gemini {
    fn source(&self, source: &MediaSource, _: Medium, reader: Option<&str>) -> FittedSource {
        match source {
            MediaSource::Base64 { .. } => Ok(None),
            MediaSource::Url { url }
                if ["https://", "http://"].iter().any(|it| pictures::has_scheme(url, it)) =>
            {
                Ok(None)
            }
            MediaSource::Url { .. } => Err("this provider reads no such address"),
            MediaSource::File { .. } if reader == Some(CODEC) => Ok(None),
            MediaSource::File { .. } => Err("its file is in another provider's store"),
            MediaSource::Text { .. } => Err("a text is no medium"),
            MediaSource::Opaque { .. } => Err("only another provider understands its source"),
        }
    }

    fn pictures(&self, _: usize) -> Pictures {
        Pictures {
            types: &["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"],
            longest: 100 * 1024 * 1024,
            most: 3_000,
            ..Pictures::OPENAI
        }
    }

    fn writes_as_text(&self, _: Role, source: &MediaSource) -> bool {
        matches!(source, MediaSource::Text { .. })
    }

    fn keeps_system(&self, _: &Message, _: Option<Role>) -> bool {
        false
    }

    fn takes_media(&self, role: Role, _: bool) -> bool {
        role != Role::System
    }

    fn takes_blank(&self) -> bool {
        true
    }

    fn knows_server_call(&self, block: &ContentBlock) -> bool {
        extra(block).is_some_and(|extra| server_data(extra).is_some())
    }

    /// A title is written only if it was read in this dialect, because not every server accepts
    /// titles.
    fn takes_title(&self, document: &Document) -> bool {
        has_mark(&document.extra, mark::TITLE)
    }

    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str> {
        let ContentBlock::Thinking(thinking) = block else {
            return Some("it is encrypted for another provider");
        };
        if is_foreign(message, &thinking.extra) {
            return Some("it comes from another provider");
        }
        let is_empty = thinking.text.is_empty() && thinking.signature.is_none();
        is_empty.then_some("it says nothing")
    }
}

/// Whether another provider, or an unknown one, made a block.
fn is_foreign(message: &Message, extra: &Extra) -> bool {
    !is_own(extra) && !is_made_by(message, CODEC)
}

const NOT_EVERY_MODEL: &str = "not every model takes it in a result";

/// Moves images and documents out of results, unless they were read there.
pub(super) fn spread_media(thread: &mut Thread, notes: &mut Notes) {
    let mut names: HashMap<Text, Text> = HashMap::new();
    for (at, message) in thread {
        notes.turn_to(*at);
        names.extend(message.tool_uses().map(|call| (call.id.clone(), call.name.clone())));
        let content = &mut message.make_mut().content;
        for mut block in std::mem::take(content) {
            let mut media = Vec::new();
            if let ContentBlock::ToolResult(result) = &mut block
                && !has_mark(&result.extra, mark::PARTS)
            {
                let name = names.get(&result.tool_use_id).unwrap_or(&result.tool_use_id).clone();
                media = take_media(result, &name, NOT_EVERY_MODEL, notes);
            }
            content.push(block);
            content.extend(media);
        }
    }
}

/// Arranges the contents of each turn. Contents that were read separately stay. Other answers are
/// merged. Results go before all other parts, in a content of their own.
pub(super) fn arrange(thread: &Thread, notes: &mut Notes) -> Thread {
    let mut arranged = Thread::with_capacity(thread.len());
    let mut calls = Calls::default();
    for turn in thread.chunk_by(|(_, one), (_, other)| one.role == other.role) {
        if turn.iter().all(|(_, message)| message.role == Role::Assistant) {
            turn.iter().for_each(|(_, message)| calls.add(message));
            let merged = turn.chunk_by(|_, (_, next)| !has_mark(&next.extra, mark::BESIDE));
            arranged.extend(merged.filter_map(|run| merge(run, notes)));
        } else {
            let mut made = Answer::default();
            turn.iter().for_each(|(at, message)| made.add(*at, message, notes));
            let groups = made.results.iter().chain(&made.others);
            let mut contents = groups.filter_map(|group| merge(group, notes)).collect();
            calls.sort_results(&mut contents, notes);
            arranged.extend(contents);
        }
    }
    arranged
}

/// The contents of a user turn in groups; each group becomes one content. A group is merged when
/// the turn is complete, because each merge copies all of its blocks.
#[derive(Default)]
struct Answer {
    /// The groups of results, which are written first.
    results: Vec<Thread>,
    /// The groups with other blocks.
    others: Vec<Thread>,
}

impl Answer {
    fn add(&mut self, at: usize, message: &Message, notes: &mut Notes) {
        notes.turn_to(at);
        if has_mark(&message.extra, mark::PLACED) {
            let is_first = self.others.is_empty() && message.content.iter().all(is_result);
            let groups = if is_first { &mut self.results } else { &mut self.others };
            return groups.push(vec![(at, message.clone())]);
        }
        let follows = !self.others.is_empty();
        let late = message.content.iter().skip_while(|block| !follows && is_result(block));
        for block in late.filter(|block| is_result(block)) {
            notes.moved(block.kind(), "results come first in the turn that answers");
        }
        let (results, rest): (Vec<_>, Vec<_>) =
            message.content.iter().cloned().partition(is_result);
        if results.is_empty() {
            return join(&mut self.others, (at, message.clone()));
        }
        join(&mut self.results, (at, message.with_content(results)));
        if !rest.is_empty() {
            join(&mut self.others, (at, Message::new(Role::User, rest)));
        }
    }
}

/// Adds a content to the last group, or to a new one if either content was read separately.
fn join(groups: &mut Vec<Thread>, content: (usize, Message)) {
    let is_apart = has_mark(&content.1.extra, mark::BESIDE);
    if let Some(group) = groups.last_mut()
        && !is_apart
        && !group.first().is_some_and(|(_, first)| has_mark(&first.extra, mark::PLACED))
    {
        return group.push(content);
    }
    groups.push(vec![content]);
}

/// The latest call of each id: its name, its number in the thread, and whether it is written
/// without an id.
#[derive(Default)]
struct Calls {
    latest: HashMap<Text, (Text, usize, bool)>,
    count: usize,
}

impl Calls {
    fn add(&mut self, message: &Message) {
        for call in message.tool_uses() {
            let unnamed = is_unnamed(&call.id, &call.extra);
            self.latest.insert(call.id.clone(), (call.name.clone(), self.count, unnamed));
            self.count += 1;
        }
    }

    /// The name and the number of a result's call, if call and result are written without ids: the
    /// provider then pairs results and calls of one function by their order.
    fn by_order(&self, block: &ContentBlock) -> Option<(Text, usize)> {
        let ContentBlock::ToolResult(result) = block else { return None };
        let (name, number, unnamed) = self.latest.get(&result.tool_use_id)?;
        let goes = *unnamed && !has_mark(&result.extra, mark::ID);
        goes.then(|| (name.clone(), *number))
    }

    /// Sorts results without ids in the order of their calls, if the results of one function are in
    /// another order.
    fn sort_results(&self, turn: &mut Thread, notes: &mut Notes) {
        let blocks = turn.iter().flat_map(|(_, message)| &message.content);
        let mut by_name: Vec<(Text, usize)> =
            blocks.filter_map(|block| self.by_order(block)).collect();
        by_name.sort_by(|one, other| one.0.cmp(&other.0));
        if by_name.is_sorted() {
            return;
        }
        const IN_ORDER: &str = "results without ids stand in the order of their calls";
        let mut results: Vec<(usize, ContentBlock)> = Vec::new();
        for (at, message) in turn.iter() {
            for block in &message.content {
                let Some((_, number)) = self.by_order(block) else { continue };
                notes.turn_to(*at).moved(block.kind(), IN_ORDER);
                results.push((number, block.clone()));
            }
        }
        results.sort_by_key(|(number, _)| *number);
        let mut sorted = results.into_iter().map(|(_, result)| result);
        for (_, message) in turn {
            let places = message.make_mut().content.iter_mut();
            for place in places.filter(|block| self.by_order(block).is_some()) {
                if let Some(next) = sorted.next() {
                    *place = next;
                }
            }
        }
    }
}

/// Whether a call is written without an id.
pub(super) fn is_unnamed(id: &str, extra: &Extra) -> bool {
    id.is_empty() || has_mark(extra, mark::NO_ID) || has_mark(extra, mark::ID)
}

/// Whether a user message holds more than results and so begins a turn.
fn is_question(message: &Message) -> bool {
    message.role == Role::User && !message.content.iter().all(is_result)
}

/// The documented placeholder for the signature of a call that no Gemini model made.
const STAND_IN: &str = "skip_thought_signature_validator";

/// Whether a model refuses calls without signatures.
pub(super) fn are_demanded(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let version = name.split_once("gemini").and_then(|(_, rest)| model_version(rest));
    version.is_some_and(|version| version >= (3, 0))
}

/// Signs the first call of each step if it has no signature. Calls of other providers are signed in
/// the whole thread, so that a later request begins with the same text as an earlier one and the
/// prompt cache applies. Calls of this provider are signed only in the current turn, if `demanded`.
pub(super) fn sign(thread: &mut Thread, demanded: bool, notes: &mut Notes) {
    let current = thread.iter().rposition(|(_, message)| is_question(message)).unwrap_or(0);
    let mut from = 0;
    for step in thread.chunk_by_mut(|(_, one), (_, other)| one.role == other.role) {
        let is_current = from >= current;
        from += step.len();
        let calling = step.iter_mut().find(|(_, message)| message.tool_uses().next().is_some());
        let Some((at, message)) = calling else { continue };
        let Some(call) = message.tool_uses().next() else { continue };
        let is_due = is_foreign(message, &call.extra) || (demanded && is_current);
        if !is_due || has_mark(&call.extra, "thoughtSignature") {
            continue;
        }
        notes.turn_to(*at).note(Change::CallSigned { id: call.id.clone() });
        let mut calls = message.make_mut().content.iter_mut().filter(|block| is_call(block));
        if let Some(extra) = calls.next().and_then(extra_mut) {
            *extra = extra.with(CODEC, "thoughtSignature", Json::text(STAND_IN));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_the_third_generation_demand_signatures() {
        for (name, demanded) in [
            ("gemini-2.5-pro", false),
            ("models/gemini-3-flash-preview", true),
            ("gemini-3.1-pro-preview", true),
            ("publishers/google/models/gemini-4-x", true),
            ("gemini-flash-latest", false),
            ("claude-opus-5", false),
        ] {
            assert_eq!(are_demanded(name), demanded, "{name}");
        }
    }
}
