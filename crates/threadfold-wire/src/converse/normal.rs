//! The rules of this provider for blocks, messages and cache points.

use super::{forms::*, media, media::WRAPS, target::Model};
use crate::kit::*;

pub(super) const KINDS: Kinds = Kinds {
    is_result: |block| key(block) == Some("toolResult"),
    is_reasoning: |block| key(block) == Some("reasoningContent"),
};

/// The text of a result that lost all its content: the provider refuses an empty text.
const NOTHING: &str = "(no output)";

/// The text that is added to a message with documents but without text.
const BESIDE_DOCUMENTS: &str = "See the documents.";

/// The key under which a block is written; `None` for an opaque block with an unknown key.
pub(super) fn key(block: &ContentBlock) -> Option<&'static str> {
    match block {
        blocks!(text) => {
            let extra = extra(block)?;
            WRAPS.into_iter().find(|key| extra.get(NAME, key).is_some()).or(Some("text"))
        }
        ContentBlock::Image(_) => Some("image"),
        ContentBlock::Document(_) => Some("document"),
        blocks!(reasoning) => Some("reasoningContent"),
        ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_) => Some("toolUse"),
        ContentBlock::ToolResult(_) | ContentBlock::ServerToolResult(_) => Some("toolResult"),
        ContentBlock::Opaque(opaque) => key_of(&Fields::parse(opaque.value.as_str())?),
    }
}

/// The rules for the cache points of a model. None may follow documents, videos or reasoning.
pub(super) fn cache_rules(model: &Model) -> CacheRules {
    CacheRules {
        key: mark::CACHE_POINT,
        kind: "default",
        within: Some(CACHE_POINT),
        takes: |block| !matches!(key(block), Some("document" | "video" | "reasoningContent")),
        of_user: true,
        marks: model.family.caches,
    }
}

/// The cache point, if a block is one.
pub(super) fn point(block: &ContentBlock) -> Option<Json> {
    let ContentBlock::Opaque(opaque) = block else { return None };
    let fields = Fields::parse(opaque.value.as_str())?;
    (key_of(&fields) == Some(CACHE_POINT)).then(|| opaque.value.clone())
}

/// Turns the cache points of a message into marks on the blocks before them. Points at forbidden
/// positions are left out.
pub(super) fn mark_points(message: &mut Message, rules: &CacheRules, notes: &mut Notes) {
    if message.content.iter().all(|block| point(block).is_none()) {
        return;
    }
    let mut content: Vec<ContentBlock> = Vec::with_capacity(message.content.len());
    let mut dropped = 0;
    for block in &message.content {
        let Some(point) = point(block) else {
            content.push(block.clone());
            continue;
        };
        match content.last_mut() {
            Some(last)
                if (rules.takes)(last) && cache::mark(last, NAME, mark::CACHE_POINT).is_none() =>
            {
                cache::set(last, NAME, mark::CACHE_POINT, Some(point));
            }
            Some(_) | None => dropped += 1,
        }
    }
    note_dropped(dropped, notes);
    *message = message.with_content(content);
}

/// Turns the cache points among the tools into marks on the tools before them. Returns how many
/// were left out because of forbidden positions.
pub(super) fn mark_tools(tools: &mut Vec<ToolSpec>) -> usize {
    let mut marked: Vec<ToolSpec> = Vec::with_capacity(tools.len());
    let mut dropped = 0;
    for tool in tools.drain(..) {
        let point = tool.extra.get(NAME, CACHE_POINT).filter(|_| !tool.input_schema.is_object());
        if point.is_none() {
            marked.push(tool);
            continue;
        }
        let point = own_object(NAME, &tool.extra).into_json();
        let last =
            marked.last_mut().filter(|last| last.extra.get(NAME, mark::CACHE_POINT).is_none());
        match last {
            Some(last) => set_field(&mut last.extra, NAME, mark::CACHE_POINT, Some(point)),
            None => dropped += 1,
        }
    }
    *tools = marked;
    dropped
}

/// Reports how many cache marks were left out.
pub(super) fn note_dropped(count: usize, notes: &mut Notes) {
    if count > 0 {
        notes.note(Change::CacheMarksDropped { count });
    }
}

impl Rules for Model {
    fn source(&self, source: &MediaSource, medium: Medium, reader: Option<&str>) -> FittedSource {
        if let MediaSource::Text { text, .. } = source
            && text.is_blank()
            && medium == Medium::Document
        {
            return Err("blank text");
        }
        media::SOURCES.fit(source, medium, reader)
    }

    fn pictures(&self, _: usize) -> Pictures {
        Pictures { most: 20, ..Pictures::CLAUDE }
    }

    fn reasoning_fault(&self, message: &Message, block: &ContentBlock) -> Option<&'static str> {
        self.target.reasoning_fault(message, block, self.family.is_claude)
    }

    fn keeps_system(&self, message: &Message, before: Option<Role>) -> bool {
        self.target.keeps_system(message, before)
    }

    /// An assistant's image may stay if a model of this provider made it.
    fn takes_media(&self, role: Role, is_own: bool) -> bool {
        role == Role::User || (role == Role::Assistant && is_own)
    }

    /// Every call and result that no other provider made. This dialect has one form for all of them:
    /// a `toolUse` of the only type `server_tool_use`, and a `toolResult` whose type is any text
    /// (`ToolUseType` and `ToolResultBlock` of botocore 1.44.8). So no kind of call needs a place in a
    /// list, as in dialects with a form for each tool.
    fn knows_server_call(&self, _: &ContentBlock) -> bool {
        true
    }

    fn text(&self, role: Role, block: &mut ContentBlock, notes: &mut Notes) {
        unwrap_changed(role, block, notes);
    }

    fn takes_context(&self) -> bool {
        true
    }

    /// Adds a text to a result that lost all its content, and removes the status if the model
    /// accepts none.
    fn result(&self, result: &mut ToolResult, notes: &mut Notes) {
        let came_empty = result.extra.get(NAME, mark::CONTENT).is_some();
        if result.content.is_empty() && !came_empty {
            notes.note(Change::TextInserted);
            result.content.push(ContentBlock::text(NOTHING));
        }
        let has_status = result.is_error || result.extra.get(NAME, mark::STATUS).is_some();
        if has_status && !self.family.accepts_status {
            notes.drop_fields(["status"]);
            result.is_error = false;
            set_field(&mut result.extra, NAME, mark::STATUS, None);
        }
    }
}

/// Removes the citations or the guard around a text that was changed since it was read.
fn unwrap_changed(role: Role, block: &mut ContentBlock, notes: &mut Notes) {
    let Some((text, extra)) = wire_text(role, block) else { return };
    let changed = WRAPS.into_iter().find(|key| {
        let raw = extra.get(NAME, key);
        raw.is_some_and(|raw| media::wrapped_text(key, Raw::of(raw)).as_ref() != Some(&text))
    });
    if let (Some(key), Some(extra)) = (changed, extra_mut(block)) {
        notes.drop_fields([key]);
        set_field(extra, NAME, key, None);
    }
}

/// Moves blocks that may not be beside results into the last result.
pub(super) fn only_results(thread: &mut Thread, model: &Model, notes: &mut Notes) {
    let never = model.family.never_beside_results;
    for turn in thread.chunk_by_mut(|(_, left), (_, right)| left.role == right.role) {
        let is_user = turn.first().is_some_and(|(_, message)| message.role == Role::User);
        let has_results = turn.iter().any(|(_, message)| message.tool_results().next().is_some());
        if !is_user || !has_results {
            continue;
        }
        let (mut moved, mut point) = (Vec::new(), None);
        for (at, message) in turn.iter_mut() {
            notes.turn_to(*at);
            fit_blocks(message, |block| {
                let stays = key(block).is_none_or(|key| !never.contains(&key));
                if !stays {
                    notes
                        .moved(block.kind(), "this model takes nothing of the kind beside results");
                    // A result holds no cache points, so the point follows the result.
                    point = cache::mark(block, NAME, mark::CACHE_POINT).or(point.take());
                    let mut block = block.clone();
                    cache::set(&mut block, NAME, mark::CACHE_POINT, None);
                    moved.push(block);
                }
                stays
            });
        }
        let last = turn.iter_mut().rev().find(|(_, it)| it.tool_results().next().is_some());
        let content = last.filter(|_| !moved.is_empty()).map(|(_, it)| &mut it.make_mut().content);
        let result = content.and_then(|it| it.iter_mut().rev().find(|block| is_result(block)));
        if let Some(ContentBlock::ToolResult(result)) = result {
            result.content.extend(moved);
            if point.is_some() {
                set_field(&mut result.extra, NAME, mark::CACHE_POINT, point);
            }
        }
    }
    thread.retain(|(_, message)| !message.content.is_empty());
}

/// Adds a text to messages with documents but without text, because the provider demands one.
pub(super) fn text_beside_documents(thread: &mut Thread, notes: &mut Notes) {
    for (at, message) in thread {
        let mut keys = message.content.iter().map(key);
        if { keys.clone() }.any(|key| key == Some("document"))
            && keys.all(|key| key != Some("text"))
        {
            notes.turn_to(*at).note(Change::TextInserted);
            message.make_mut().content.push(ContentBlock::text(BESIDE_DOCUMENTS));
        }
    }
}

pub(super) const IDS: NameRules = NameRules {
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    nameless: "call",
    ..names::TOOLS
};
pub(super) const DOCUMENTS: NameRules = NameRules {
    most: 200,
    is_legal: |char| {
        char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '(' | ')' | '[' | ']')
    },
    nameless: "document",
    spaced: true,
    ..names::TOOLS
};

/// Renames documents whose names the provider refuses. Equal names get the same new name, and a new
/// name never equals another document's name.
pub(super) fn rewrite_titles(thread: &mut Thread, notes: &mut Notes) {
    let mut found: Vec<names::Found<'_>> = Vec::new();
    for (at, message) in thread.iter() {
        found.extend(message.content.iter().flat_map(titles).map(|title| (Some(*at), title)));
    }
    let renamed = Renamed::new(&found, &DOCUMENTS, notes, names::name_rewritten);
    if renamed.is_empty() {
        return;
    }
    for block in thread.iter_mut().flat_map(|(_, message)| &mut message.make_mut().content) {
        retitle(block, &renamed);
    }
}

/// Gives a document, and those in a result, the new name.
fn retitle(block: &mut ContentBlock, renamed: &Renamed) {
    let written = title(block).map(|title| renamed.written(title));
    if let ContentBlock::ToolResult(result) = block {
        result.content.iter_mut().for_each(|block| retitle(block, renamed));
    } else if let (ContentBlock::Document(document), Some(written)) = (block, written) {
        document.title = Some(written);
    }
}

/// Returns the title of a document, or the titles of the documents in a result.
fn titles(block: &ContentBlock) -> impl Iterator<Item = &Text> + Clone {
    let nested = if let ContentBlock::ToolResult(result) = block { &*result.content } else { &[] };
    title(block).into_iter().chain(nested.iter().filter_map(title))
}

/// The title of a document, unless it was read in a body: the provider sometimes accepts titles
/// that break its rule.
fn title(block: &ContentBlock) -> Option<&Text> {
    let ContentBlock::Document(document) = block else { return None };
    let as_read = document.extra.get(NAME, mark::NAME);
    document.title.as_ref().filter(|title| as_read != Some(&Json::text(title)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{names::rewrite_ids, notes};
    use threadfold_core::message::{Message, Role, ToolUse};

    #[test]
    fn a_new_id_is_nobody_elses() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let calls = |ids: [&str; 6]| Message::new(Role::Assistant, ids.map(call).into());
        let long = "x".repeat(70);
        let ids = ["a|b", "a_b", "a/b", "", "a.b:c", &long];
        let (mut thread, mut notes) = notes::prepare(&[calls(ids)], "c");
        rewrite_ids(&mut thread, &IDS, |_| true, &mut notes);
        let short = "x".repeat(56);
        assert_eq!(thread[0].1, calls(["a_b_2", "a_b", "a_b_3", "call", "a.b:c", &short]));
    }

    #[test]
    fn names_of_documents_keep_what_may_stand() {
        let rows = [
            ("Report (v2) [final]-1", "Report (v2) [final]-1"),
            ("report_v2.pdf", "report-v2-pdf"),
            (" a \t b ", "a b"),
            ("\u{e9}", "-"),
            ("", "document"),
        ];
        for (name, mended) in rows {
            assert_eq!(DOCUMENTS.mend(name), mended);
            assert!(DOCUMENTS.accept(mended));
        }
        assert!(!DOCUMENTS.accept("a  b") && !DOCUMENTS.accept(&"a".repeat(201)));
    }
}
