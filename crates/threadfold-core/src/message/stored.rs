//! The serde form of a message: the fields of its parts, and the flag of the handle.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    author::Author,
    content::ContentBlock,
    extra::Extra,
    message::Message,
    parts::{MessageParts, Origin, Role, StopReason},
    usage::Usage,
};

#[derive(Serialize, Deserialize)]
#[serde(rename = "Message")]
struct Stored<'m> {
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    author: Option<Author>,
    content: Cow<'m, [ContentBlock]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    prefix_rewritten: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    untyped: bool,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessageParts { role, author, content, stop_reason, usage, origin, untyped, extra } =
            &**self;
        let stored = Stored {
            role: *role,
            author: author.clone(),
            content: content.into(),
            stop_reason: stop_reason.clone(),
            usage: *usage,
            origin: origin.clone(),
            prefix_rewritten: self.prefix_rewritten,
            untyped: *untyped,
            extra: extra.clone(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let prefix_rewritten = stored.prefix_rewritten;
        let mut content = stored.content.into_owned();
        // A vector that grows has room for four blocks at first, and most messages have one.
        content.shrink_to_fit();
        let parts = MessageParts {
            role: stored.role,
            author: stored.author,
            content,
            stop_reason: stored.stop_reason,
            usage: stored.usage,
            origin: stored.origin,
            untyped: stored.untyped,
            extra: stored.extra,
        };
        let message = Self::from(parts);
        Ok(if prefix_rewritten { message.rewritten() } else { message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Json;

    #[test]
    fn every_field_round_trips() {
        let text = r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input":3,"output":1,"cache_read":0,"cache_write":0,"reasoning":0},"origin":{"provider":"x"},"prefix_rewritten":true,"extra":{"codec":"x","fields":{"a":1.0}}}"#;
        let mut message = Message::assistant("hi").rewritten();
        let parts = message.make_mut();
        parts.stop_reason = Some(StopReason::EndTurn);
        parts.usage = Some(Usage::new(3, 1));
        parts.origin = Some(Origin::new("x", None));
        parts.extra = Extra::new("x", [("a", Json::parse("1.0").unwrap())]);
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        assert_eq!(serde_json::from_str::<Message>(text).unwrap(), message);
    }

    #[test]
    fn the_untyped_mark_round_trips() {
        let text = r#"{"role":"user","content":[{"type":"text","text":"hi"}],"untyped":true}"#;
        let message = Message::user("hi").untyped();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        let read: Message = serde_json::from_str(text).unwrap();
        assert!(read == message && !read.is_typed());
    }

    #[test]
    fn the_author_round_trips() {
        let text = r#"{"role":"user","author":"ann","content":[{"type":"text","text":"hi"}]}"#;
        let message = Message::user("hi").by("ann".parse().unwrap());
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        assert_eq!(serde_json::from_str::<Message>(text).unwrap(), message);
        assert_ne!(message, Message::user("hi"));
    }

    #[test]
    fn absent_fields_are_omitted() {
        let text = serde_json::to_string(&Message::user("hi")).unwrap();
        assert_eq!(text, r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#);
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), Message::user("hi"));
    }
}
