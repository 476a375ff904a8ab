//! Reading the messages of the dialects whose messages have a role and blocks.

use serde_json::value::RawValue;

use super::{
    contract::WireError,
    fields::{self, Fields, Path},
};
use crate::message::{Message, Role, Text};

/// Takes the messages out of a body, each read by this reader.
pub(super) fn take_all(
    body: &mut Fields<'_>,
    read: impl Fn(Fields<'_>, Path<'_>) -> Result<Message, WireError>,
) -> Result<Vec<Message>, WireError> {
    const MESSAGES: &str = "an array of messages";
    let path = Path::Field(&Path::Body, "messages");
    let raw = body.take("messages").ok_or_else(|| path.missing(MESSAGES))?;
    let items = fields::objects(raw).ok_or_else(|| path.mismatch(MESSAGES, raw))?;
    let read = |(index, item): (usize, Result<_, &RawValue>)| {
        let path = Path::Item(&path, index);
        read(item.map_err(|raw| path.mismatch("an object", raw))?, path)
    };
    items.into_iter().enumerate().map(read).collect()
}

/// Takes the role out of a message.
pub(super) fn take_role(fields: &mut Fields<'_>, path: Path<'_>) -> Result<Role, WireError> {
    const ROLE: &str = "`user`, `assistant` or `system`";
    let path = Path::Field(&path, "role");
    let raw = fields.take("role").ok_or_else(|| path.missing(ROLE))?;
    match fields::text(raw).as_ref().map(Text::as_str) {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system") => Ok(Role::System),
        Some(_) | None => Err(path.mismatch(ROLE, raw)),
    }
}
