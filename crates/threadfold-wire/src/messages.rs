//! Reading the bodies of the dialects whose messages have a role and blocks.

use super::{
    contract::Result, extras::text_mark, json::*, mark, normal::is_call, options::DecodeOptions,
    texts::recognise,
};
use threadfold_core::message::*;

/// Reads the messages of one dialect.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) codec: &'static str,
    /// The expected content of a message, for errors.
    pub(super) expected: &'static str,
    /// Reads the blocks of a content, and marks its owner; `None` if the value is no content.
    pub(super) content: fn(Raw<'_>, Role, &mut Fields<'_>) -> Option<Vec<ContentBlock>>,
    /// Whether a block is a cache point, which may follow the checkpoint of a message.
    pub(super) is_cache_point: fn(&ContentBlock) -> bool,
    /// Whether a block of this role proves that a model of this provider wrote the message. Other
    /// codecs need that origin, because signatures are valid for one provider only.
    pub(super) is_made_here: fn(Role, &ContentBlock) -> bool,
}

impl Reader {
    /// Removes the messages from a body and reads them.
    pub(super) fn messages(
        self,
        body: &mut Fields<'_>,
        options: DecodeOptions,
    ) -> Result<Vec<Message>> {
        let path = Path::Field(&Path::Body, "messages");
        let items = body.take_items("messages", Path::Body, "an array of messages")?;
        let items = items.into_iter().enumerate().map(|(index, item)| {
            let path = Path::Item(&path, index);
            self.message(Fields::read(item, path)?, path, options)
        });
        items.collect()
    }

    /// Reads a message.
    pub(super) fn message(
        self,
        mut fields: Fields<'_>,
        path: Path<'_>,
        options: DecodeOptions,
    ) -> Result<Message> {
        let role = take_role(&mut fields, path)?;
        if role == Role::System {
            fields.add_word(mark::ROLE, "system");
        }
        let path = Path::Field(&path, "content");
        let raw = fields.take("content").ok_or_else(|| path.missing(self.expected))?;
        let content = self.blocks(raw, role, options, &mut fields);
        let content = content.ok_or_else(|| path.mismatch(self.expected, raw))?;
        let is_made_here = content.iter().any(|block| (self.is_made_here)(role, block));
        let mut parts = MessageParts::new(role, content);
        parts.origin = is_made_here.then(|| Origin::new(self.codec, None));
        parts.extra = fields.keep(self.codec);
        Ok(parts.into())
    }

    /// Reads the blocks of a content. Texts of a user message that have the wire form of another
    /// kind of block become that kind.
    pub(super) fn blocks(
        self,
        raw: Raw<'_>,
        role: Role,
        options: DecodeOptions,
        owner: &mut Fields<'_>,
    ) -> Option<Vec<ContentBlock>> {
        let mut blocks = (self.content)(raw, role, owner)?;
        if role == Role::User {
            let last = blocks.iter().rposition(|block| !(self.is_cache_point)(block));
            let (blocks, _) = blocks.split_at_mut(last.map_or(0, |last| last + 1));
            recognise(self.codec, blocks, options);
        }
        Some(blocks)
    }

    /// Removes the system prompt from a body and reads it.
    pub(super) fn system(self, body: &mut Fields<'_>) -> Result<Option<Message>> {
        let Some(raw) = body.take("system") else { return Ok(None) };
        let mut own = Fields::default();
        let content = match raw.get() {
            "null" => Vec::new(),
            _ => (self.content)(raw, Role::System, &mut own)
                .ok_or_else(|| Path::Field(&Path::Body, "system").mismatch(self.expected, raw))?,
        };
        if content.is_empty() {
            body.add(mark::SYSTEM, raw.json());
            return Ok(None);
        }
        let parts = MessageParts::new(Role::System, content);
        Ok(Some(MessageParts { extra: own.keep(self.codec), ..parts }.into()))
    }
}

/// Reads tools: functions of the host with `of_host`. Any other tool is the provider's own; its
/// fields are kept in `extra`, and its name is copied so that it can be found.
pub(super) fn tools(
    codec: &'static str,
    (items, path): (Vec<Raw<'_>>, Path<'_>),
    of_host: fn(Fields<'_>) -> Option<ToolSpec>,
    name_of: fn(&Fields<'_>) -> Option<Text>,
) -> Result<Vec<ToolSpec>> {
    let tools = items.into_iter().enumerate().map(|(index, raw)| {
        let fields = Fields::read(raw, Path::Item(&path, index))?;
        Ok(of_host(fields.clone()).unwrap_or_else(|| {
            let name = name_of(&fields).unwrap_or_default();
            ToolSpec { extra: fields.keep(codec), ..ToolSpec::new(name, "", Json::default()) }
        }))
    });
    tools.collect()
}

/// The stop reason of an answer whose dialect only states that it is complete: a refusal if a text
/// is marked as one.
pub(super) fn ended(codec: &str, content: &[ContentBlock]) -> StopReason {
    if content.iter().any(is_call) {
        return StopReason::ToolUse;
    }
    let mut forms = content.iter().filter_map(|block| {
        let ContentBlock::Text(text) = block else { return None };
        text_mark(codec, &text.extra, mark::AS)
    });
    let is_refused = forms.any(|form| form.starts_with("refusal"));
    if is_refused { StopReason::Refusal } else { StopReason::EndTurn }
}

/// Removes the role from a message and reads it.
fn take_role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role> {
    const ROLES: &str = "`user`, `assistant` or `system`";
    let path = Path::Field(&path, "role");
    let raw = fields.take("role").ok_or_else(|| path.missing(ROLES))?;
    match raw.word().as_deref() {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system") => Ok(Role::System),
        Some(_) | None => Err(path.mismatch(ROLES, raw)),
    }
}
