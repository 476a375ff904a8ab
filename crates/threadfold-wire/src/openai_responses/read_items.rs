//! Reading single items.

use std::collections::{HashMap, HashSet};

use super::{compaction, kinds, kinds::*, marks::*, read_content::*};
use crate::kit::*;

/// An item that was read.
#[derive(Debug)]
pub(super) enum Item {
    /// A message of the user, or a system message.
    Said(MessageParts),
    /// Blocks of the model: one block, or the parts of a message.
    Answered(Vec<ContentBlock>),
    /// The result of a call.
    Result(ContentBlock),
    /// An opaque item of the host.
    Kept(ContentBlock),
}

/// The state after the earlier items, on which reading the next one depends.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// The input continues a stored response, so calls of its results may not be in the input.
    pub(super) is_chained: bool,
    /// The ids of calls that the provider answered in the same response. They are not for the host.
    pub(super) settled: HashSet<Text>,
    /// The calls so far by id, and whether the latest of this id has a special form of result.
    called: HashMap<Text, bool>,
    /// The ids of opaque calls. Their results become opaque too.
    kept_calls: HashSet<Text>,
    /// The calls so far that the provider answers in separate items.
    provider_calls: ProviderCalls,
    /// The model's last reasoning.
    trail: Trail,
    /// Whether only items of the model followed that reasoning.
    is_adjacent: bool,
}

impl Context {
    /// Reads all items, each with the items after it, because reasoning records what follows it.
    pub(super) fn read_all(&mut self, items: &[Raw<'_>], path: Path<'_>) -> Result<Vec<Item>> {
        let numbered = items.iter().enumerate();
        let read = numbered.map(|(index, raw)| {
            let fields = Fields::read(*raw, Path::Item(&path, index))?;
            Ok(self.read(*raw, fields, items.get(index + 1..).unwrap_or_default()))
        });
        read.collect()
    }

    fn read(&mut self, raw: Raw<'_>, fields: Fields<'_>, later: &[Raw<'_>]) -> Item {
        let label = Label::of(&fields);
        if label.kind == kinds::COMPACTION
            && let Some(message) = compaction::by_gateway(&fields)
        {
            return Item::Said(message);
        }
        if kinds::is_setting(&label.kind) {
            return Item::Said(MessageParts::new(Role::System, vec![opaque_item(raw, None)]));
        }
        if label.is_of_model() {
            return Item::Answered(self.answered(raw, fields, &label, later));
        }
        self.is_adjacent = false;
        self.trail.pass(&label, false);
        let id = label.call_id.as_ref().or(label.id.as_ref());
        let called = id.and_then(|id| self.called.get(id)).copied();
        let is_missing = self.is_chained || id.is_none_or(|id| self.kept_calls.contains(id));
        let item = if label.is_message() {
            message(&label, fields).map(Item::Said)
        } else if label.is_output() && (called.is_some() || !is_missing) {
            result(&label, fields, called == Some(true)).map(Item::Result)
        } else {
            None
        };
        item.unwrap_or_else(|| Item::Kept(opaque_item(raw, None)))
    }

    /// Reads an item of the model. One that cannot be read becomes opaque.
    fn answered(
        &mut self,
        raw: Raw<'_>,
        mut fields: Fields<'_>,
        label: &Label,
        later: &[Raw<'_>],
    ) -> Vec<ContentBlock> {
        let led = self.trail.0.clone();
        // A compaction is independent of the reasoning before it, which belongs to what it
        // replaces.
        let is_alone = [kinds::REFERENCE, kinds::COMPACTION].contains(&label.kind.as_str());
        let led_whole = led.as_ref().filter(|_| self.is_adjacent && !is_alone);
        if let Some(id) = &led
            && (label.is_message() || label.is_call())
        {
            fields.add_word(mark::LED, id);
        }
        let mut blocks = if label.is_message() {
            answer(fields)
        } else if label.kind == kinds::REASONING {
            // Settings may stand between. Each is passed for one reasoning only.
            let mut later = later.iter().map(|raw| Label::read(*raw));
            let next = later.find(|label| !kinds::is_setting(&label.kind));
            let next = next.filter(Label::is_of_model);
            Vec::from_iter(reasoning(fields, next.map(|next| next.identity())))
        } else if label.is_call() {
            Vec::from_iter(self.call(raw, fields, label))
        } else if label.is_of_provider || kinds::is_hosted(&label.kind) {
            Vec::from_iter(self.of_provider(raw, label, led_whole))
        } else {
            Vec::new()
        };
        self.trail.pass(label, label.kind == kinds::REASONING && !blocks.is_empty());
        if blocks.is_empty() {
            self.kept_calls.extend(label.call_id.clone().filter(|_| label.is_call()));
            blocks.push(opaque_item(raw, led_whole));
        }
        // The stored item that a reference names may be the call of a later result.
        self.is_chained |= label.kind == kinds::REFERENCE;
        self.is_adjacent = true;
        blocks
    }

    /// Reads a call that the provider answers itself, in the same item or in a separate one, or
    /// such a separate answer; `None` if it does not identify its call, or if the call may be
    /// stored.
    fn of_provider(
        &mut self,
        raw: Raw<'_>,
        label: &Label,
        led: Option<&Text>,
    ) -> Option<ContentBlock> {
        let kind = label.kind.as_str();
        let extra = whole_item(kind, led);
        if label.is_of_providers_answer() {
            let id = self.provider_calls.answered(label, self.is_chained)?;
            let result = ServerToolResult::new(id, kind, raw.json());
            return Some(ServerToolResult { extra, ..result }.into());
        }
        self.provider_calls.add(label);
        let call = ServerToolUse::new(label.provider_id()?.clone(), kind, raw.json());
        Some(ServerToolUse { extra, ..call }.into())
    }

    /// Reads a call for the host; `None` if it cannot be read, or is answered already.
    fn call(&mut self, raw: Raw<'_>, mut item: Fields<'_>, label: &Label) -> Option<ContentBlock> {
        let id = label.call_id.clone().filter(|id| !self.settled.contains(id))?;
        let kind = label.kind.as_str();
        if kind != kinds::FUNCTION {
            item.add_word(mark::AS, kind);
        }
        let call = match kind {
            kinds::FUNCTION => function(id.clone(), "arguments", item)?,
            kinds::CUSTOM => function(id.clone(), "input", item)?,
            kind => {
                let extra = whole_item(kind, self.trail.0.as_ref());
                ToolUse { extra, ..ToolUse::new(id.clone(), kind, raw.json()) }
            }
        };
        self.called.insert(id, !kinds::output_of(kind).is_none_or(kinds::is_plain));
        Some(call.into())
    }
}

/// The calls so far that the provider answers in separate items.
#[derive(Debug, Default)]
pub(super) struct ProviderCalls {
    ids: HashSet<Text>,
    /// The id of the latest search. Its answer need not name it.
    search: Option<Text>,
}

impl ProviderCalls {
    pub(super) fn add(&mut self, label: &Label) {
        let Some(id) = label.provider_id() else { return };
        if label.kind == kinds::SEARCH {
            self.search = Some(id.clone());
        }
        self.ids.insert(id.clone());
    }

    /// The id of the call that an item answers; `None` if it names none, or one that may be stored.
    pub(super) fn answered(&self, label: &Label, is_chained: bool) -> Option<Text> {
        match &label.call_id {
            Some(id) if is_chained && !self.ids.contains(id) => None,
            Some(id) => Some(id.clone()),
            None => self.search.clone().filter(|_| label.kind == kinds::SEARCH_OUTPUT),
        }
    }

    /// Whether an item names a call that is missing.
    pub(super) fn lacks(&self, label: &Label) -> bool {
        label.call_id.as_ref().is_some_and(|id| !self.ids.contains(id))
    }
}

/// Reads a call whose input is a text.
fn function(id: Text, input: &str, mut fields: Fields<'_>) -> Option<ToolUse> {
    fields.take("type");
    fields.take("call_id");
    let name = fields.take_text("name")?;
    let input = ToolInput::Text(fields.take_text(input)?);
    note_identity(&mut fields);
    Some(ToolUse { id, name, input, extra: fields.keep(CODEC) })
}

/// Reads a user or system message; `None` if it cannot be read.
fn message(label: &Label, mut fields: Fields<'_>) -> Option<MessageParts> {
    let role = match label.role.as_deref()? {
        "user" => Role::User,
        "system" | "developer" => Role::System,
        _ => return None,
    };
    fields.take("role");
    note_identity(&mut fields);
    if label.role.as_deref() == Some("developer") {
        fields.add_word(mark::ROLE, "developer");
    }
    let blocks = said(fields.take("content")?, &mut fields)?;
    Some(MessageParts { extra: fields.keep(CODEC), ..MessageParts::new(role, blocks) })
}

/// Reads the result of a call, which may have a special form; `None` if it names no call, or has
/// not the form of its type.
fn result(label: &Label, mut fields: Fields<'_>, of_client: bool) -> Option<ContentBlock> {
    let kind = label.kind.as_str();
    let id = match &label.call_id {
        Some(id) => id.clone(),
        None if kind == kinds::LOCAL_SHELL_OUTPUT => {
            fields.add_word(mark::NAMED, "id");
            fields.take("id").and_then(Raw::text)?
        }
        None => return None,
    };
    fields.take("type");
    fields.take("call_id");
    if kind != kinds::FUNCTION_OUTPUT || of_client {
        fields.add_word(mark::AS, kind);
    }
    let content = match fields.take("output") {
        Some(raw) => output(raw, &mut fields),
        None if kinds::is_plain(kind) => return None,
        None => {
            fields.add_word(mark::CONTENT, "absent");
            Vec::new()
        }
    };
    note_identity(&mut fields);
    Some(ToolResult { extra: fields.keep(CODEC), ..ToolResult::new(id, content) }.into())
}
