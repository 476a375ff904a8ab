//! Reading items, one by one.

use std::collections::{HashMap, HashSet};

use super::{
    kinds::{self, Label},
    marks::{Field, books, keep, mark, opaque_item},
    read_answer,
    read_content::{Content, output, said},
};
use crate::{
    fields::{Fields, text},
    raw::Raw,
};
use threadfold_core::message::{
    ContentBlock, MessageParts, Role, ServerToolResult, ServerToolUse, Text, ToolInput, ToolResult,
    ToolUse,
};

/// What an item is.
#[derive(Debug)]
pub(super) enum Item {
    /// A message of the host's standing instructions, or of the user.
    Said(MessageParts),
    /// Something of the model: one block, or the parts of a message.
    Answered(Vec<ContentBlock>),
    /// The answer to a call.
    Result(ContentBlock),
    /// Something of the host that is kept whole.
    Kept(ContentBlock),
}

/// What the items before say about the next one.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Calls may be answered that are not in the input: it goes on from a stored response.
    pub(super) is_chained: bool,
    /// Calls that the provider answered in the same response; they are no calls for the host.
    pub(super) settled: HashSet<Text>,
    /// The calls so far, and whether the latest of this id has a form of its own.
    called: HashMap<Text, bool>,
    /// Calls that are kept whole; so are their answers.
    kept_calls: HashSet<Text>,
    /// The latest call that the provider answers itself, of each type, and of each id.
    provider_calls: ProviderCalls,
    /// The reasoning that the model wrote last since the user spoke: its id, or nothing.
    reasoning: Option<Text>,
    /// Whether nothing but items of the model came since.
    is_adjacent: bool,
}

impl Context {
    /// Reads an item; the one after it says what a reasoning led to.
    pub(super) fn read(&mut self, raw: Raw<'_>, next: Option<Raw<'_>>) -> Item {
        let Some(fields) = Fields::of(raw) else {
            return Item::Kept(opaque_item(raw, None));
        };
        let label = Label::of(&fields);
        if label.is_of_model() {
            return Item::Answered(self.answered(raw, fields, &label, next));
        }
        self.is_adjacent = false;
        if label.is_message() {
            self.reasoning = None;
            let message = message(&label, fields).map(Item::Said);
            return message.unwrap_or_else(|| Item::Kept(opaque_item(raw, None)));
        }
        let id = label.call_id.as_deref().or(label.id.as_deref());
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
        fields: Fields<'_>,
        label: &Label<'_>,
        next: Option<Raw<'_>>,
    ) -> Vec<ContentBlock> {
        let led = self.reasoning.clone();
        let mark_led = || led.iter().map(|id| mark("~led", id)).collect();
        let whole = self.is_adjacent && label.kind != "item_reference";
        let mut blocks = match label.kind.as_ref() {
            "reasoning" => {
                let next = next.map(Label::read).filter(|next| next.is_of_model());
                read_answer::reasoning(fields, next.map(|next| next.identity()))
                    .into_iter()
                    .collect()
            }
            _ if label.is_message() => read_answer::message(fields, mark_led()),
            _ if label.is_of_provider => {
                self.of_provider(raw, label, led.as_ref().filter(|_| whole)).into_iter().collect()
            }
            _ if label.is_call() => self.call(raw, fields, label, mark_led()).into_iter().collect(),
            kind if kinds::is_hosted(kind) => {
                hosted(raw, label, led.as_ref().filter(|_| whole)).into_iter().collect()
            }
            _ => Vec::new(),
        };
        if blocks.is_empty() {
            self.kept_calls.extend(label.call_id.clone().filter(|_| label.is_call()));
            blocks.push(opaque_item(raw, led.as_ref().filter(|_| whole)));
        } else if label.kind == "reasoning" {
            self.reasoning = Some(label.id.as_deref().unwrap_or_default().into());
        }
        if let Some(id) = label.referred_reasoning() {
            self.reasoning = Some(id.into());
        }
        // What it stands for may be the call of a later answer.
        self.is_chained |= label.kind == "item_reference";
        self.is_adjacent = true;
        blocks
    }

    /// Reads a call that the provider answers in an item of its own, or such an answer; `None` if
    /// nothing says which call it is, or if the call may be stored.
    fn of_provider(
        &mut self,
        raw: Raw<'_>,
        label: &Label<'_>,
        led: Option<&Text>,
    ) -> Option<ContentBlock> {
        let kind = label.kind.as_ref();
        let mut own = vec![mark("~as", kind)];
        own.extend(led.map(|led| mark("~led", led)));
        let extra = keep(&Fields::default(), own);
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

    /// Reads a call that the host answers; `None` if it cannot be read, or is answered already.
    fn call(
        &mut self,
        raw: Raw<'_>,
        fields: Fields<'_>,
        label: &Label<'_>,
        own: Vec<Field>,
    ) -> Option<ContentBlock> {
        let id = label.call_id.clone().filter(|id| !self.settled.contains(id))?;
        let call = match label.kind.as_ref() {
            kinds::FUNCTION => function(id.clone(), "arguments", fields, own)?,
            kinds::CUSTOM => {
                let own = [own, vec![mark("~as", kinds::CUSTOM)]].concat();
                function(id.clone(), "input", fields, own)?
            }
            kind => {
                let own = [own, vec![mark("~as", kind)]].concat();
                let extra = keep(&Fields::default(), own);
                ToolUse { extra, ..ToolUse::new(id.clone(), kind, raw.json()) }
            }
        };
        self.called.insert(id, kinds::client_output(&label.kind).is_some());
        Some(call.into())
    }
}

/// The calls so far that the provider answers in items of their own.
#[derive(Debug, Default)]
pub(super) struct ProviderCalls {
    ids: HashSet<Text>,
    /// The latest search. The answer to one need not name it.
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
    pub(super) fn answered(&self, label: &Label<'_>, is_chained: bool) -> Option<Text> {
        match &label.call_id {
            Some(id) if is_chained && !self.ids.contains(id) => None,
            Some(id) => Some(id.clone()),
            None => self.search.clone().filter(|_| label.kind == kinds::SEARCH_OUTPUT),
        }
    }

    /// Whether the call that an item answers is missing.
    pub(super) fn lacks(&self, label: &Label<'_>) -> bool {
        label.call_id.as_ref().is_some_and(|id| !self.ids.contains(id))
    }
}

/// Reads a call whose input is a text.
fn function(id: Text, input: &str, mut fields: Fields<'_>, mut own: Vec<Field>) -> Option<ToolUse> {
    fields.take("type");
    fields.take("call_id");
    let name = fields.take_text("name")?;
    let input = ToolInput::Text(fields.take_text(input)?);
    own.extend(books(&mut fields));
    Some(ToolUse { id, name, input, extra: keep(&fields, own) })
}

/// Reads a call that the provider answers itself. It is kept whole, so that it can be read.
fn hosted(raw: Raw<'_>, label: &Label<'_>, led: Option<&Text>) -> Option<ContentBlock> {
    let id = label.id.as_deref()?;
    let mut own = vec![mark("~as", &label.kind)];
    own.extend(led.map(|led| mark("~led", led)));
    let extra = keep(&Fields::default(), own);
    let call = ServerToolUse::new(id, label.kind.as_ref(), raw.json());
    Some(ServerToolUse { extra, ..call }.into())
}

/// Reads a message of the user or of the host; `None` if it cannot be read.
fn message(label: &Label<'_>, mut fields: Fields<'_>) -> Option<MessageParts> {
    let (role, word) = match label.role.as_deref()? {
        "user" => (Role::User, None),
        "system" => (Role::System, None),
        "developer" => (Role::System, Some(mark("~role", "developer"))),
        _ => return None,
    };
    fields.take("role");
    let Content { blocks, form } = said(fields.take("content")?)?;
    let own = books(&mut fields).into_iter().chain(word).chain(form).collect();
    let extra = keep(&fields, own);
    Some(MessageParts { extra, ..MessageParts::new(role, blocks) })
}

/// Reads the answer to a call, which may have a form of its own; `None` if it names no call, or has
/// not the form of its type.
fn result(label: &Label<'_>, mut fields: Fields<'_>, of_client: bool) -> Option<ContentBlock> {
    let kind = label.kind.as_ref();
    let mut own = Vec::new();
    let id = match &label.call_id {
        Some(id) => id.clone(),
        None if kind == kinds::LOCAL_SHELL_OUTPUT => {
            own.push(mark("~named", "id"));
            fields.take("id").and_then(text)?
        }
        None => return None,
    };
    fields.take("type");
    fields.take("call_id");
    if kind != kinds::FUNCTION_OUTPUT || of_client {
        own.push(mark("~as", kind));
    }
    let content = match fields.take("output") {
        Some(raw) => output(raw),
        None if kind == kinds::FUNCTION_OUTPUT || kind == kinds::CUSTOM_OUTPUT => return None,
        None => Content { blocks: Vec::new(), form: Some(mark("~content", "absent")) },
    };
    own.extend(content.form);
    own.extend(books(&mut fields));
    Some(ToolResult { extra: keep(&fields, own), ..ToolResult::new(id, content.blocks) }.into())
}
