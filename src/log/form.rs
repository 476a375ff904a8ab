//! The stored form of an event.
//!
//! An event is an object with one key, its kind: `{"message_appended":{"role":"user",...}}`. The
//! kind stands outside, because a tag inside would have serde buffer the fields, and buffered JSON
//! has lost its key order and the text of its numbers.
//!
//! Reading never refuses an event that is JSON: one of another kind is [`Event::Unknown`], one
//! whose payload is not as it should be [`Event::Malformed`], and both are written back as they
//! came. The common case is read straight into its type; only what fails there is looked at again.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeStruct};
use serde_json::value::RawValue;

use super::event::{
    CompactionFailure, CompactionRecord, CompactionUndone, Event, HostEvent, LocalNotice,
    LoggedEvent, RuleChange, SystemPrompt, Truncated, UnreadEvent,
};
use crate::message::{Json, Message, Timestamp};

pub(super) const MESSAGE_APPENDED: &str = "message_appended";
const SYSTEM_PROMPT_SET: &str = "system_prompt_set";
const LOCAL_NOTICE: &str = "local_notice";
const TRUNCATED: &str = "truncated";
const COMPACTED: &str = "compacted";
pub(super) const COMPACTION_FAILED: &str = "compaction_failed";
const COMPACTION_UNDONE: &str = "compaction_undone";
const RULE_CHANGED: &str = "rule_changed";
const HOST: &str = "host";

/// The kinds that this build reads.
const KINDS: [&str; 9] = [
    MESSAGE_APPENDED,
    SYSTEM_PROMPT_SET,
    LOCAL_NOTICE,
    TRUNCATED,
    COMPACTED,
    COMPACTION_FAILED,
    COMPACTION_UNDONE,
    RULE_CHANGED,
    HOST,
];

impl Event {
    /// The kind, as it is stored.
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
            Self::SystemPromptSet(_) => SYSTEM_PROMPT_SET,
            Self::LocalNotice(_) => LOCAL_NOTICE,
            Self::Truncated(_) => TRUNCATED,
            Self::Compacted(_) => COMPACTED,
            Self::CompactionFailed(_) => COMPACTION_FAILED,
            Self::CompactionUndone(_) => COMPACTION_UNDONE,
            Self::RuleChanged(_) => RULE_CHANGED,
            Self::Host(_) => HOST,
            Self::Unknown(unread) | Self::Malformed(unread) => &unread.kind,
        }
    }
}

/// Reads an event from its line.
pub(super) fn read(line: &str) -> serde_json::Result<LoggedEvent> {
    if let Ok(Direct { seq, at, event }) = serde_json::from_str(line) {
        return Ok(LoggedEvent { seq, at, event: event.into() });
    }
    let Unread { seq, at, event } = serde_json::from_str(line)?;
    Ok(LoggedEvent { seq, at, event: unread(Json::from_raw(event)) })
}

/// A line whose event is as this build knows it.
#[derive(Deserialize)]
struct Direct {
    seq: u64,
    at: Timestamp,
    event: Known,
}

/// A line whose event may be anything.
#[derive(Deserialize)]
struct Unread<'a> {
    seq: u64,
    at: Timestamp,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// The events that this build reads. The names are those of [`KINDS`].
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Known {
    MessageAppended(Message),
    SystemPromptSet(SystemPrompt),
    LocalNotice(LocalNotice),
    Truncated(Truncated),
    Compacted(Box<CompactionRecord>),
    CompactionFailed(Box<CompactionFailure>),
    CompactionUndone(CompactionUndone),
    RuleChanged(RuleChange),
    Host(HostEvent),
}

impl From<Known> for Event {
    fn from(known: Known) -> Self {
        match known {
            Known::MessageAppended(message) => Self::MessageAppended(message),
            Known::SystemPromptSet(prompt) => Self::SystemPromptSet(prompt),
            Known::LocalNotice(notice) => Self::LocalNotice(notice),
            Known::Truncated(truncated) => Self::Truncated(truncated),
            Known::Compacted(record) => Self::Compacted(record),
            Known::CompactionFailed(failure) => Self::CompactionFailed(failure),
            Known::CompactionUndone(undone) => Self::CompactionUndone(undone),
            Known::RuleChanged(change) => Self::RuleChanged(change),
            Known::Host(event) => Self::Host(event),
        }
    }
}

/// Returns the event of a form that was not read directly.
fn unread(data: Json) -> Event {
    // What cannot even be walked, such as a string with half a surrogate pair, names no kind.
    let Kind(kind) = serde_json::from_str(data.as_str()).unwrap_or_default();
    let known = KINDS.contains(&kind.as_str());
    let unread = UnreadEvent { kind: kind.into(), data };
    if known { Event::Malformed(unread) } else { Event::Unknown(unread) }
}

/// The kind that a form names: the key of an object, a bare string, or nothing. Of several keys it
/// is the first that this build knows, so that a message with something beside it is missed.
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

impl Serialize for LoggedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("LoggedEvent", 3)?;
        line.serialize_field("seq", &self.seq)?;
        line.serialize_field("at", &self.at)?;
        line.serialize_field("event", &self.event)?;
        line.end()
    }
}

impl<'de> Deserialize<'de> for LoggedEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Line {
            seq: u64,
            at: Timestamp,
            event: Event,
        }
        let Line { seq, at, event } = Line::deserialize(deserializer)?;
        Ok(Self { seq, at, event })
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = KINDS.into_iter().find(|kind| *kind == self.kind()).unwrap_or_default();
        let (to, name) = (serializer, "Event");
        match self {
            Self::MessageAppended(message) => to.serialize_newtype_variant(name, 0, kind, message),
            Self::SystemPromptSet(prompt) => to.serialize_newtype_variant(name, 1, kind, prompt),
            Self::LocalNotice(notice) => to.serialize_newtype_variant(name, 2, kind, notice),
            Self::Truncated(truncated) => to.serialize_newtype_variant(name, 3, kind, truncated),
            Self::Compacted(record) => to.serialize_newtype_variant(name, 4, kind, record),
            Self::CompactionFailed(failure) => to.serialize_newtype_variant(name, 5, kind, failure),
            Self::CompactionUndone(undone) => to.serialize_newtype_variant(name, 6, kind, undone),
            Self::Host(event) => to.serialize_newtype_variant(name, 7, kind, event),
            Self::RuleChanged(change) => to.serialize_newtype_variant(name, 8, kind, change),
            Self::Unknown(unread) | Self::Malformed(unread) => unread.data.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Json::deserialize(deserializer)?;
        let known: Result<Known, _> = serde_json::from_str(data.as_str());
        Ok(known.map_or_else(|_| unread(data), Self::from))
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
            assert_eq!(matches!(read.event, Event::Malformed(_)), malformed, "{event}");
            assert_eq!(matches!(read.event, Event::Unknown(_)), !malformed, "{event}");
            assert_eq!(serde_json::to_string(&read).unwrap(), line(event));
            assert_eq!(serde_json::from_str::<LoggedEvent>(&line(event)).unwrap(), read);
        }
    }

    #[test]
    fn every_kind_has_one_name() {
        let names = KINDS.map(|kind| line(&format!("{{\"{kind}\":null}}")));
        for (line, kind) in names.iter().zip(KINDS) {
            let Event::Malformed(unread) = read(line).unwrap().event else { panic!("{kind}") };
            assert_eq!(unread.kind, kind);
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
