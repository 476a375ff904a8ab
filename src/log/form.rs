//! The stored form of an event.
//!
//! An event is an object with one key, its kind: `{"message_appended":{"role":"user",...}}`. The
//! kind is the key and not a field, because an inner tag makes serde buffer the fields, and
//! buffered JSON loses its key order and the text of its numbers.
//!
//! An event that does not parse is an error, because the log without it may be another thread. The
//! one exception is the record of a compaction: without it the thread keeps its messages, so it
//! becomes [`Event::Malformed`] and is written back unchanged.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    error::{LogError, Result},
    event::{COMPACTED, COMPACTION_FAILED, Event, KINDS, LoggedEvent},
};
use crate::message::{Json, Text, Timestamp, quoted};

/// The number of characters of a parser's message that an error repeats.
const REASON: usize = 200;

/// Reads an event from its line, which has this number in its log.
pub(crate) fn read(text: &str, line: u64) -> Result<LoggedEvent> {
    let error = match serde_json::from_str(text) {
        Ok(Line { seq, at, event }) => return Ok(LoggedEvent { seq, at, event }),
        Err(error) => error,
    };
    if let Ok(malformed) = serde_json::from_str(text) {
        return Ok(malformed);
    }
    // Serde may report a wrong field before it reaches a syntax error, so check the syntax
    // separately.
    if let Err(error) = serde_json::from_str::<de::IgnoredAny>(text) {
        return Err(LogError::Broken { line, reason: reason(&error) });
    }
    let kinds: Option<Kinds<'_>> = serde_json::from_str(text).ok();
    let unknown = kinds.and_then(|Kinds { seq, event }| {
        let kind = event.into_keys().find(|kind| !KINDS.contains(&&**kind))?;
        Some(LogError::UnknownKind { seq, kind: quoted(&kind).into() })
    });
    Err(unknown.unwrap_or_else(|| LogError::NotAnEvent { line, reason: reason(&error) }))
}

/// A line whose event is parsed in place: [`Event`]'s own `Deserialize` copies its JSON first.
#[derive(Deserialize)]
struct Line {
    seq: u64,
    at: Timestamp,
    #[serde(with = "Event")]
    event: Event,
}

/// The number of an event, and the keys of its JSON.
#[derive(Deserialize)]
struct Kinds<'a> {
    seq: u64,
    #[serde(borrow)]
    event: BTreeMap<Cow<'a, str>, de::IgnoredAny>,
}

/// Returns the beginning of a parser's message, which may quote a long text, and the column. The
/// parser's line number is left out: it counts within one line of a log.
fn reason(error: &serde_json::Error) -> Text {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&position).unwrap_or(&message);
    let cut: String = message.chars().take(REASON).collect();
    let dots = if cut.len() < message.len() { "..." } else { "" };
    format!("{cut}{dots} at column {}", error.column()).into()
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Malformed { data, .. } = self {
            return data.serialize(serializer);
        }
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = Json::deserialize(deserializer)?;
        let known = Self::deserialize(&mut serde_json::Deserializer::from_str(data.as_str()));
        known.or_else(|error| {
            let kind = match serde_json::from_str(data.as_str()) {
                Ok(Record::Compacted(_)) => COMPACTED,
                Ok(Record::CompactionFailed(_)) => COMPACTION_FAILED,
                Err(_) => return Err(de::Error::custom(reason(&error))),
            };
            Ok(Self::Malformed { kind: kind.into(), data })
        })
    }
}

/// The record of a compaction, whatever it holds.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Compacted(de::IgnoredAny),
    CompactionFailed(de::IgnoredAny),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str) -> String {
        format!(r#"{{"seq":3,"at":5,"event":{event}}}"#)
    }

    #[test]
    fn a_record_of_a_compaction_that_does_not_parse_is_kept_and_written_back() {
        let rows = [
            (r#"{"compacted":{"z":1.0,"a":2}}"#, "compacted"),
            (r#"{"compacted":"\ud800"}"#, "compacted"),
            (r#"{"compaction_failed":null}"#, "compaction_failed"),
        ];
        for (event, kind) in rows {
            let read = read(&line(event), 5).unwrap();
            assert_eq!(read.event.kind(), kind);
            assert!(matches!(read.event, Event::Malformed { .. }), "{event}");
            assert_eq!(serde_json::to_string(&read).unwrap(), line(event));
            assert_eq!(serde_json::from_str::<LoggedEvent>(&line(event)).unwrap(), read);
        }
    }

    #[test]
    fn another_event_that_does_not_parse_is_an_error_that_names_what_was_found() {
        let rows = [
            (
                r#"{"message_appende":{"role":"user","content":[]}}"#,
                "event 3 has the unknown kind \"message_appende\"; this build knows \
                 message_appended, system_prompt_set, local_notice, truncated, compacted, \
                 compaction_failed, compaction_undone, rule_added, rule_revoked, note_written, \
                 host, result_cut, spent",
            ),
            (
                r#"{"message_appended":{"role":"nobody"}}"#,
                "line 5 of the log is not an event: unknown variant `nobody`, expected one of \
                 `system`, `user`, `assistant` at column 60",
            ),
        ];
        for (event, expected) in rows {
            assert_eq!(read(&line(event), 5).unwrap_err().to_string(), expected);
        }
        let others = [
            r#"{"compaction_undone":{"id":"x"}}"#,
            r#""truncated""#,
            r#"{"compacted":{},"host":{}}"#,
            r#"{"message_appended":"\ud800"}"#,
            "{}",
            "[1,2]",
            "null",
        ];
        for event in others {
            let error = read(&line(event), 5);
            assert!(matches!(error, Err(LogError::NotAnEvent { line: 5, .. })), "{error:?}");
            assert!(serde_json::from_str::<LoggedEvent>(&line(event)).is_err());
        }
    }

    #[test]
    fn a_long_text_is_not_repeated_in_an_error() {
        let long = "x".repeat(10_000);
        for event in [
            format!("{{\"{long}\":1}}"),
            format!("{{\"message_appended\":\"{long}\"}}"),
            format!("\"{long}\""),
        ] {
            let error = read(&line(&event), 5).unwrap_err().to_string();
            assert!(error.len() < 400, "{error}");
        }
    }

    #[test]
    fn every_kind_has_the_name_that_serde_reads() {
        for kind in KINDS {
            match read(&line(&format!("{{\"{kind}\":null}}")), 5) {
                Ok(read) => assert_eq!(read.event.kind(), kind),
                Err(LogError::NotAnEvent { reason, .. }) => {
                    assert!(reason.starts_with("invalid type: null"), "{reason}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn inputs_of_calls_keep_their_text() {
        let call = r#"{"type":"tool_use","id":"t1","name":"f","input":{"z":1.0,"a":1e2}}"#;
        let event = format!(r#"{{"message_appended":{{"role":"assistant","content":[{call}]}}}}"#);
        let read = read(&line(&event), 5).unwrap();
        assert!(matches!(read.event, Event::MessageAppended(_)));
        assert_eq!(serde_json::to_string(&read).unwrap(), line(&event));
    }
}
