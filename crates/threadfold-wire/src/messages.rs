//! Reading the bodies of the dialects whose messages have a role and blocks.

use super::{
    contract::WireError,
    json::{Fields, Path, Raw},
    normal::is_call,
    options::DecodeOptions,
    texts::Speaker,
};
use threadfold_core::message::{
    ContentBlock, Json, Message, MessageParts, Origin, Role, StopReason, Text, TextBlock, ToolSpec,
};

/// The mark on a message of the role `system` within the thread.
pub(super) const ROLE: &str = "~role";
/// The mark on a request whose system prompt came `null` or empty.
pub(super) const SYSTEM: &str = "~system";

/// How a dialect reads its messages.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub(super) codec: &'static str,
    /// What the content of a message must be.
    pub(super) expected: &'static str,
    /// Reads the blocks of a content, and marks its owner; `None` if it is no content.
    pub(super) content: fn(Raw<'_>, Speaker, &mut Fields<'_>) -> Option<Vec<ContentBlock>>,
    /// Whether a block in a message of this role shows that a model of this provider made it. Other
    /// codecs must know whose signatures these are.
    pub(super) is_made_here: fn(Role, &ContentBlock) -> bool,
}

impl Reader {
    /// Takes the messages out of a body.
    pub(super) fn messages(
        self,
        body: &mut Fields<'_>,
        recognise: DecodeOptions,
    ) -> Result<Vec<Message>, WireError> {
        let path = Path::Field(&Path::Body, "messages");
        let items = body.take_items("messages", Path::Body, "an array of messages")?;
        let read = |(index, item): (usize, Raw<'_>)| {
            let path = Path::Item(&path, index);
            self.message(Fields::read(item, path)?, path, recognise)
        };
        items.into_iter().enumerate().map(read).collect()
    }

    /// Reads a message.
    pub(super) fn message(
        self,
        mut fields: Fields<'_>,
        path: Path<'_>,
        recognise: DecodeOptions,
    ) -> Result<Message, WireError> {
        let role = take_role(&mut fields, path)?;
        if role == Role::System {
            fields.mark(ROLE, "system");
        }
        let path = Path::Field(&path, "content");
        let raw = fields.take("content").ok_or_else(|| path.missing(self.expected))?;
        let speaker = Speaker { codec: self.codec, role, recognise };
        let content = (self.content)(raw, speaker, &mut fields);
        let content = content.ok_or_else(|| path.mismatch(self.expected, raw))?;
        let is_made_here = content.iter().any(|block| (self.is_made_here)(role, block));
        let mut parts = MessageParts::new(role, content);
        parts.origin = is_made_here.then(|| Origin::new(self.codec, None));
        parts.extra = fields.keep(self.codec);
        Ok(parts.into())
    }

    /// Takes the system prompt out of a body.
    pub(super) fn system(self, body: &mut Fields<'_>) -> Result<Option<Message>, WireError> {
        let Some(raw) = body.take("system") else { return Ok(None) };
        let speaker =
            Speaker { codec: self.codec, role: Role::System, recognise: DecodeOptions::default() };
        let mut own = Fields::default();
        let content = match raw.get() {
            "null" => Vec::new(),
            _ => (self.content)(raw, speaker, &mut own)
                .ok_or_else(|| Path::Field(&Path::Body, "system").mismatch(self.expected, raw))?,
        };
        if content.is_empty() {
            body.note(SYSTEM, raw.json());
            return Ok(None);
        }
        let parts = MessageParts::new(Role::System, content);
        Ok(Some(MessageParts { extra: own.keep(self.codec), ..parts }.into()))
    }
}

/// Reads tools: those of the host with this reader. One of the provider's own, without a schema, keeps
/// its whole shape as extra fields; its name is a copy for those who look tools up.
pub(super) fn tools(
    codec: &'static str,
    (items, path): (Vec<Raw<'_>>, Path<'_>),
    of_host: fn(Fields<'_>) -> Option<ToolSpec>,
    name_of: fn(&Fields<'_>) -> Option<Text>,
) -> Result<Vec<ToolSpec>, WireError> {
    let read = |(index, raw): (usize, Raw<'_>)| {
        let fields = Fields::read(raw, Path::Item(&path, index))?;
        Ok(of_host(fields.clone()).unwrap_or_else(|| {
            let name = name_of(&fields).unwrap_or_default();
            ToolSpec { extra: fields.keep(codec), ..ToolSpec::new(name, "", Json::default()) }
        }))
    };
    items.into_iter().enumerate().map(read).collect()
}

/// Why a model stopped that says no more than that its answer is complete. `is_refusal` says whether a
/// text declines.
pub(super) fn ended(
    content: &[ContentBlock],
    is_refusal: impl Fn(&TextBlock) -> bool,
) -> StopReason {
    if content.iter().any(is_call) {
        return StopReason::ToolUse;
    }
    let refuses = |block: &_| matches!(block, ContentBlock::Text(text) if is_refusal(text));
    if content.iter().any(refuses) { StopReason::Refusal } else { StopReason::EndTurn }
}

/// Takes the role out of a message.
fn take_role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role, WireError> {
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
