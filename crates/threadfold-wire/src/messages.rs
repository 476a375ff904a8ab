//! Reading the messages of the dialects whose messages have a role and blocks.

use super::{
    contract::WireError,
    fields::{self, Fields, Path},
    raw::Raw,
};
use threadfold_core::message::{Message, Role};

/// Takes the messages out of a body, each read by this reader.
pub(super) fn take_all(
    body: &mut Fields<'_>,
    read: impl Fn(Fields<'_>, Path<'_>) -> Result<Message, WireError>,
) -> Result<Vec<Message>, WireError> {
    const MESSAGES: &str = "an array of messages";
    let path = Path::Field(&Path::Body, "messages");
    let raw = body.take("messages").ok_or_else(|| path.missing(MESSAGES))?;
    let items = fields::items(raw).ok_or_else(|| path.mismatch(MESSAGES, raw))?;
    let read = |(index, item): (usize, Raw<'_>)| {
        let path = Path::Item(&path, index);
        read(Fields::read(item, path)?, path)
    };
    items.into_iter().enumerate().map(read).collect()
}

/// Takes the role out of a message.
pub(super) fn take_role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role, WireError> {
    const ROLE: &str = "`user`, `assistant` or `system`";
    let path = Path::Field(&path, "role");
    let raw = fields.take("role").ok_or_else(|| path.missing(ROLE))?;
    match fields::word(raw).as_deref() {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system") => Ok(Role::System),
        Some(_) | None => Err(path.mismatch(ROLE, raw)),
    }
}
