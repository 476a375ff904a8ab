//! Reading answers.

use super::{
    blocks,
    forms::{self, NAME},
};
use crate::{
    contract::{Recognise, WireError},
    json::{Fields, Path, Raw, Scanned, marked},
    texts::Speaker,
    usage::Counts,
};
use threadfold_core::message::{MessageParts, Origin, Role, StopReason, Text, Turn, Usage};

/// Reads a response body.
pub(super) fn turn(body: &[u8]) -> Result<Turn, WireError> {
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    check_type(&fields)?;
    let path = Path::Field(&Path::Body, "content");
    let raw = fields.take("content").ok_or_else(|| path.missing(CONTENT))?;
    let speaker = Speaker { codec: NAME, role: Role::Assistant, recognise: Recognise::default() };
    let content = blocks::read_all(raw, speaker).ok_or_else(|| path.mismatch(CONTENT, raw))?;
    let usage = fields.get("usage").and_then(usage);
    let stop_reason = fields.take_text("stop_reason");
    let stop_reason = stop_reason.map_or_else(unknown, |reason| match reason.as_str() {
        // After its own compaction the provider goes on when it gets the thread again.
        "compaction" => StopReason::PauseTurn,
        reason => StopReason::from(reason),
    });
    let mut parts = MessageParts::new(Role::Assistant, content);
    parts.origin = Some(Origin::new(NAME, fields.take_text("model")));
    fields.take("role");
    // What else the response says, which a request could not carry.
    parts.extra = marked(NAME, forms::ANSWER, fields.json());
    Ok(Turn::new(parts.into(), stop_reason, usage))
}

const CONTENT: &str = "an array of blocks";

fn unknown() -> StopReason {
    StopReason::Other("unknown".into())
}

fn check_type(fields: &Fields<'_>) -> Result<(), WireError> {
    const MESSAGE: &str = "a response of type `message`";
    let Some(raw) = fields.get("type") else { return Ok(()) };
    match raw.text().as_ref().map(Text::as_str) {
        Some("message") => Ok(()),
        Some("error") => {
            let error = fields.get("error").unwrap_or(raw);
            Err(Path::Body.mismatch("a message, not an error", error))
        }
        Some(_) | None => Err(Path::Field(&Path::Body, "type").mismatch(MESSAGE, raw)),
    }
}

/// Reads a usage. Its counts leave out passes that compacted, which are listed beside them. They are
/// the prompt of the answer, so the listed ones count only where there was no answer.
pub(super) fn usage(raw: Raw<'_>) -> Option<Usage> {
    let usage = USAGE.read(raw)?;
    if !usage.is_zero() {
        return Some(usage);
    }
    let passes = Fields::of(raw).and_then(|fields| fields.items("iterations"));
    let passes = passes.unwrap_or_default().into_iter().filter_map(|pass| USAGE.read(pass));
    Some(passes.fold(usage, |sum, pass| sum + pass))
}

/// The fields of the usage. The provider counts the cached part of the prompt separately.
pub(super) const USAGE: Counts = Counts {
    input: &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
    output: &["output_tokens"],
    cache_read: "cache_read_input_tokens",
    cache_write: "cache_creation_input_tokens",
    reasoning: "output_tokens_details.thinking_tokens",
};

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold_core::message::{ContentBlock, Json};

    #[test]
    fn an_answer_is_read_with_its_usage_and_origin() {
        let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",
            "content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","stop_sequence":null,
            "usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,
            "output_tokens":7,"output_tokens_details":{"thinking_tokens":5}}}"#;
        let turn = turn(body.as_bytes()).unwrap();
        let usage = Usage { input: 123, output: 7, cache_read: 100, cache_write: 20, reasoning: 5 };
        assert_eq!((turn.usage, turn.message.usage), (Some(usage), Some(usage)));
        assert_eq!(turn.stop_reason, StopReason::EndTurn);
        assert_eq!(turn.message.content, [ContentBlock::text("yes")]);
        assert_eq!(turn.message.origin, Some(Origin::new(NAME, Some("claude-x".into()))));
        let rest = turn.message.extra.get(NAME, forms::ANSWER).map(Json::as_str).unwrap();
        assert!(rest.starts_with(r#"{"id":"msg_1","type":"message","stop_sequence":null,"#));
    }

    #[test]
    fn missing_counts_are_zero_and_a_missing_usage_is_none() {
        let body = |usage| format!(r#"{{"content":[],"stop_reason":"odd"{usage}}}"#);
        let counted = turn(body(r#","usage":{"input_tokens":null}"#).as_bytes()).unwrap();
        assert_eq!(counted.usage, Some(Usage::default()));
        assert_eq!(counted.stop_reason, StopReason::Other("odd".into()));
        assert_eq!(turn(body("").as_bytes()).unwrap().usage, None);
    }

    #[test]
    fn an_error_body_is_no_answer() {
        let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let error = turn(body.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            "body: expected a message, not an error, found \
             {\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"
        );
    }
}
