//! Reading single items.

use std::collections::{HashMap, HashSet};

use super::{
    compaction,
    kinds::{self, Label},
    marks::*,
    read_content::{answer, output, reasoning, said},
};
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

/// What the earlier items mean for the next one.
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
    /// The id of the model's last reasoning since the user's last message; empty if the reasoning
    /// has no id.
    reasoning: Option<Text>,
    /// Whether only items of the model followed that reasoning.
    is_adjacent: bool,
}

impl Context {
    /// Reads all items, each with the item after it, because reasoning records what follows it.
    pub(super) fn read_all(&mut self, items: &[Raw<'_>], path: Path<'_>) -> Result<Vec<Item>> {
        let read = |(index, raw): (usize, &Raw<'_>)| {
            if !raw.is_object() {
                return Err(Path::Item(&path, index).mismatch("an object", *raw));
            }
            Ok(self.read(*raw, items.get(index + 1).copied()))
        };
        items.iter().enumerate().map(read).collect()
    }

    fn read(&mut self, raw: Raw<'_>, next: Option<Raw<'_>>) -> Item {
        let Some(fields) = Fields::of(raw) else {
            return Item::Kept(opaque_item(raw, None));
        };
        let label = Label::of(&fields);
        if label.kind == kinds::COMPACTION
            && let Some(message) = compaction::by_gateway(&fields)
        {
            return Item::Said(message);
        }
        if label.is_of_model() {
            return Item::Answered(self.answered(raw, fields, &label, next));
        }
        self.is_adjacent = false;
        if label.is_message() {
            self.reasoning = None;
            let message = message(&label, fields).map(Item::Said);
            return message.unwrap_or_else(|| Item::Kept(opaque_item(raw, None)));
        }
        let id = label.call_id.as_ref().or(label.id.as_ref());
        let called = id.and_then(|id| self.called.get(id)).copied();
        let is_missing = self.is_chained || id.is_none_or(|id| self.kept_calls.contains(id));
        let stays_whole = !label.is_output() || (called.is_none() && is_missing);
        let result =
            if stays_whole { None } else { result(&label, fields, called.unwrap_or_default()) };
        result.map_or_else(|| Item::Kept(opaque_item(raw, None)), Item::Result)
    }

    fn answered(
        &mut self,
        raw: Raw<'_>,
        mut fields: Fields<'_>,
        label: &Label,
        next: Option<Raw<'_>>,
    ) -> Vec<ContentBlock> {
        let led = self.reasoning.clone();
        // A compaction is independent of the reasoning before it, which belongs to what it
        // replaces.
        let is_alone = [kinds::REFERENCE, kinds::COMPACTION].contains(&label.kind.as_str());
        let is_whole = self.is_adjacent && !is_alone;
        let led_whole = led.as_ref().filter(|_| is_whole);
        let mark_led = |fields: &mut Fields<'_>| {
            led.iter().for_each(|id| fields.mark("~led", id));
        };
        let one = |block: Option<ContentBlock>| block.into_iter().collect();
        let mut blocks: Vec<ContentBlock> = match label.kind.as_str() {
            kinds::REASONING => {
                let next = next.map(Label::read).filter(|next| next.is_of_model());
                one(reasoning(fields, next.map(|next| next.identity())))
            }
            _ if label.is_message() => {
                mark_led(&mut fields);
                answer(fields)
            }
            _ if label.is_of_provider => one(self.of_provider(raw, label, led_whole)),
            _ if label.is_call() => {
                mark_led(&mut fields);
                one(self.call(raw, fields, label))
            }
            kind if kinds::is_hosted(kind) => one(hosted(raw, label, led_whole)),
            _ => Vec::new(),
        };
        if blocks.is_empty() {
            self.kept_calls.extend(label.call_id.clone().filter(|_| label.is_call()));
            blocks.push(opaque_item(raw, led_whole));
        } else if label.kind == kinds::REASONING {
            self.reasoning = Some(label.id.clone().unwrap_or_default());
        }
        self.reasoning = label.referred_reasoning().or(self.reasoning.take());
        // The item that it refers to may be the call of a later result.
        self.is_chained |= label.kind == kinds::REFERENCE;
        self.is_adjacent = true;
        blocks
    }

    /// Reads a call that the provider answers in a separate item, or such an answer; `None` if it
    /// does not identify its call, or if the call may be stored.
    fn of_provider(
        &mut self,
        raw: Raw<'_>,
        label: &Label,
        led: Option<&Text>,
    ) -> Option<ContentBlock> {
        let kind = label.kind.as_str();
        let extra = whole_item(kind, led);
        if !label.is_of_providers_answer() {
            let id = label.provider_id()?;
            self.provider_calls.add(kind, id.clone());
            let call = ServerToolUse::new(id, kind, raw.json());
            return Some(ServerToolUse { extra, ..call }.into());
        }
        let id = self.provider_calls.answered(label, self.is_chained)?;
        let result = ServerToolResult::new(id, kind, raw.json());
        Some(ServerToolResult { extra, ..result }.into())
    }

    /// Reads a call for the host; `None` if it cannot be read, or is answered already.
    fn call(
        &mut self,
        raw: Raw<'_>,
        mut fields: Fields<'_>,
        label: &Label,
    ) -> Option<ContentBlock> {
        let id = label.call_id.clone().filter(|id| !self.settled.contains(id))?;
        let kind = label.kind.as_str();
        if kind != kinds::FUNCTION {
            fields.mark("~as", kind);
        }
        let call = match kind {
            kinds::FUNCTION => function(id.clone(), "arguments", fields)?,
            kinds::CUSTOM => function(id.clone(), "input", fields)?,
            kind => {
                let mut marks = Fields::default();
                marks.move_marks(&mut fields);
                ToolUse { extra: marks.keep(CODEC), ..ToolUse::new(id.clone(), kind, raw.json()) }
            }
        };
        self.called.insert(id, kinds::client_output(&label.kind).is_some());
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
    pub(super) fn add(&mut self, kind: &str, id: Text) {
        if kind == kinds::SEARCH {
            self.search = Some(id.clone());
        }
        self.ids.insert(id);
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

/// Reads a call that the provider answers in the same item. The whole item becomes its input.
fn hosted(raw: Raw<'_>, label: &Label, led: Option<&Text>) -> Option<ContentBlock> {
    let id = label.id.clone()?;
    let call = ServerToolUse::new(id, label.kind.clone(), raw.json());
    Some(ServerToolUse { extra: whole_item(&label.kind, led), ..call }.into())
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
        fields.mark("~role", "developer");
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
            fields.mark("~named", "id");
            fields.take("id").and_then(Raw::text)?
        }
        None => return None,
    };
    fields.take("type");
    fields.take("call_id");
    if kind != kinds::FUNCTION_OUTPUT || of_client {
        fields.mark("~as", kind);
    }
    let content = match fields.take("output") {
        Some(raw) => output(raw, &mut fields),
        None if kind == kinds::FUNCTION_OUTPUT || kind == kinds::CUSTOM_OUTPUT => return None,
        None => {
            fields.mark("~content", "absent");
            Vec::new()
        }
    };
    note_identity(&mut fields);
    Some(ToolResult { extra: fields.keep(CODEC), ..ToolResult::new(id, content) }.into())
}
