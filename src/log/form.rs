//! The stored form of an event.
//!
//! An event is an object with one key, its kind: `{"message_appended":{"role":"user",...}}`. The
//! kind is the key and not a field, because an inner tag makes serde buffer the fields, and
//! buffered JSON loses its key order and the text of its numbers.
//!
//! Reading accepts every event that is JSON: one of an unknown kind becomes [`Event::Unknown`], one
//! whose payload does not parse [`Event::Malformed`], and both are written back unchanged. Most
//! events parse directly into their type; only the others are parsed twice.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use super::event::{CompactionFailure, CompactionRecord, Event, LoggedEvent, is_users};
use crate::message::{CompactionId, Json, Message, Text, Timestamp, ToolResult, Usage};

pub(super) const MESSAGE_APPENDED: &str = "message_appended";
const SYSTEM_PROMPT_SET: &str = "system_prompt_set";
const LOCAL_NOTICE: &str = "local_notice";
const TRUNCATED: &str = "truncated";
const COMPACTED: &str = "compacted";
pub(super) const COMPACTION_FAILED: &str = "compaction_failed";
const COMPACTION_UNDONE: &str = "compaction_undone";
const RULE_ADDED: &str = "rule_added";
const RULE_REVOKED: &str = "rule_revoked";
const NOTE_WRITTEN: &str = "note_written";
const HOST: &str = "host";
const RESULT_CUT: &str = "result_cut";
const CACHE_KEPT: &str = "cache_kept";

/// The kinds that this build reads.
const KINDS: [&str; 13] = [
    MESSAGE_APPENDED,
    SYSTEM_PROMPT_SET,
    LOCAL_NOTICE,
    TRUNCATED,
    COMPACTED,
    COMPACTION_FAILED,
    COMPACTION_UNDONE,
    RULE_ADDED,
    RULE_REVOKED,
    NOTE_WRITTEN,
    HOST,
    RESULT_CUT,
    CACHE_KEPT,
];

impl Event {
    /// Returns the kind, as stored.
    ///
    /// ```
    /// use threadfold::{Message, log::Event};
    ///
    /// assert_eq!(Event::MessageAppended(Message::user("hi")).kind(), "message_appended");
    /// ```
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::MessageAppended(_) => MESSAGE_APPENDED,
            Self::SystemPromptSet { .. } => SYSTEM_PROMPT_SET,
            Self::LocalNotice { .. } => LOCAL_NOTICE,
            Self::Truncated { .. } => TRUNCATED,
            Self::Compacted(_) => COMPACTED,
            Self::CompactionFailed(_) => COMPACTION_FAILED,
            Self::CompactionUndone { .. } => COMPACTION_UNDONE,
            Self::RuleAdded { .. } => RULE_ADDED,
            Self::RuleRevoked { .. } => RULE_REVOKED,
            Self::NoteWritten { .. } => NOTE_WRITTEN,
            Self::Host { .. } => HOST,
            Self::ResultCut(_) => RESULT_CUT,
            Self::CacheKept { .. } => CACHE_KEPT,
            Self::Unknown { kind, .. } | Self::Malformed { kind, .. } => kind,
        }
    }
}

/// Reads an event from its line.
pub(crate) fn read(line: &str) -> serde_json::Result<LoggedEvent> {
    if let Ok(KnownLine { seq, at, event }) = serde_json::from_str(line) {
        return Ok(LoggedEvent { seq, at, event });
    }
    let AnyLine { seq, at, event } = serde_json::from_str(line)?;
    Ok(LoggedEvent { seq, at, event: unread(Json::from_raw(event)) })
}

/// A line with an event that this build can read.
#[derive(Deserialize)]
struct KnownLine {
    seq: u64,
    at: Timestamp,
    #[serde(with = "KnownEvent")]
    event: Event,
}

/// A line with an event of any shape.
#[derive(Deserialize)]
struct AnyLine<'a> {
    seq: u64,
    at: Timestamp,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// The events that this build can read, named as in [`KINDS`].
#[derive(Deserialize)]
#[serde(remote = "Event", rename_all = "snake_case")]
enum KnownEvent {
    MessageAppended(Message),
    SystemPromptSet {
        text: Text,
        #[serde(rename = "by", deserialize_with = "is_users")]
        by_user: bool,
    },
    LocalNotice {
        text: Text,
    },
    Truncated {
        from: usize,
        len: usize,
    },
    Compacted(Box<CompactionRecord>),
    CompactionFailed(Box<CompactionFailure>),
    CompactionUndone {
        id: CompactionId,
    },
    RuleAdded {
        text: Text,
    },
    RuleRevoked {
        id: Text,
    },
    NoteWritten {
        name: Text,
        text: Text,
    },
    Host {
        kind: Text,
        data: Json,
    },
    ResultCut(Box<ToolResult>),
    CacheKept {
        usage: Usage,
    },
}

/// Returns the event for JSON that is not a [`KnownEvent`].
fn unread(data: Json) -> Event {
    // JSON that serde cannot parse, such as a string with half a surrogate pair, has no kind.
    let Kind(kind) = serde_json::from_str(data.as_str()).unwrap_or_default();
    let is_known = KINDS.contains(&kind.as_str());
    let kind = kind.into();
    if is_known { Event::Malformed { kind, data } } else { Event::Unknown { kind, data } }
}

/// The kind in an event's JSON: the key of an object, a bare string, or empty. If an object has
/// several keys, the kind is the first one that this build knows, so that a message with an extra
/// key counts as a malformed message.
#[derive(Default)]
struct Kind(String);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> de::Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a string")
    }

    fn visit_str<E: de::Error>(self, kind: &str) -> Result<Kind, E> {
        Ok(Kind(kind.to_owned()))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut kind: Option<String> = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            map.next_value::<de::IgnoredAny>()?;
            let is_known = KINDS.contains(&&*key);
            if kind.as_deref().is_none_or(|kind| is_known && !KINDS.contains(&kind)) {
                kind = Some(key.into_owned());
            }
        }
        Ok(Kind(kind.unwrap_or_default()))
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Json::deserialize(deserializer)?;
        let known = KnownEvent::deserialize(&mut serde_json::Deserializer::from_str(data.as_str()));
        Ok(known.unwrap_or_else(|_| unread(data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str) -> String {
        format!(r#"{{"seq":3,"at":5,"event":{event}}}"#)
    }

    #[test]
    fn what_is_not_known_is_kept_and_written_back() {
        let rows = [
            (r#"{"message_edited":{"z":1.0,"a":2}}"#, "message_edited", false),
            (r#""paused""#, "paused", false),
            (r#"{"truncated":{"from":-1,"len":0}}"#, "truncated", true),
            (r#""truncated""#, "truncated", true),
            (r#"{"trace":1,"message_appended":{}}"#, "message_appended", true),
            (r#"{"host":{"kind":"a","data":1},"host":2}"#, "host", true),
            (r#"{"message_appended":"\ud800"}"#, "message_appended", true),
            ("{}", "", false),
            ("[1,2]", "", false),
            ("null", "", false),
        ];
        for (event, kind, malformed) in rows {
            let read = read(&line(event)).unwrap();
            assert_eq!(read.event.kind(), kind);
            assert_eq!(matches!(read.event, Event::Malformed { .. }), malformed, "{event}");
            assert_eq!(matches!(read.event, Event::Unknown { .. }), !malformed, "{event}");
            assert_eq!(serde_json::to_string(&read).unwrap(), line(event));
            assert_eq!(serde_json::from_str::<LoggedEvent>(&line(event)).unwrap(), read);
        }
    }

    #[test]
    fn every_kind_has_one_name() {
        let names = KINDS.map(|kind| line(&format!("{{\"{kind}\":null}}")));
        for (line, kind) in names.iter().zip(KINDS) {
            let event = read(line).unwrap().event;
            assert!(matches!(event, Event::Malformed { .. }) && event.kind() == kind, "{event:?}");
        }
    }

    #[test]
    fn inputs_of_calls_keep_their_text() {
        let call = r#"{"type":"tool_use","id":"t1","name":"f","input":{"z":1.0,"a":1e2}}"#;
        let event = format!(r#"{{"message_appended":{{"role":"assistant","content":[{call}]}}}}"#);
        let read = read(&line(&event)).unwrap();
        assert!(matches!(read.event, Event::MessageAppended(_)));
        assert_eq!(serde_json::to_string(&read).unwrap(), line(&event));
    }
}
