//! Reading answers.

use super::{
    decode::READER,
    forms::{self, NAME},
};
use crate::{
    contract::{Recognise, WireError},
    json::{Fields, Path, Scanned},
    usage::Counts,
};
use threadfold_core::message::{Extra, Json, Origin, Role, StopReason, Text, Turn};

/// Reads a response body.
pub(super) fn turn(body: &[u8]) -> Result<Turn, WireError> {
    const OUTPUT: &str = "an answer with its `output`";
    const MESSAGE: &str = "a message";
    let scanned = Scanned::new(body);
    let mut fields = Fields::body(&scanned)?;
    let path = Path::Field(&Path::Body, "output");
    let mut output = match (fields.take("output"), fields.get("message")) {
        (Some(raw), _) => Fields::read(raw, path)?,
        // Errors have a message instead of an output.
        (None, Some(error)) => return Err(Path::Body.mismatch(OUTPUT, error)),
        (None, None) => return Err(path.missing(OUTPUT)),
    };
    let path = Path::Field(&path, "message");
    let raw = output.take("message").ok_or_else(|| path.missing(MESSAGE))?;
    let mut message = READER.message(Fields::read(raw, path)?, path, Recognise::default())?;
    if message.role != Role::Assistant {
        return Err(Path::Field(&path, "role").mismatch("`assistant`", raw));
    }
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let stop_reason = stop_reason(fields.take_text("stopReason"));
    let parts = message.make_mut();
    parts.origin = Some(Origin::new(NAME, None));
    parts.extra = answer(&fields, parts.extra.fields());
    Ok(Turn::new(message, stop_reason, usage))
}

/// Notes what else the response says, which a request could not carry.
fn answer<'e>(fields: &Fields<'_>, own: impl Iterator<Item = (&'e str, &'e Json)>) -> Extra {
    let note = (Text::from(forms::ANSWER), fields.json());
    let own = own.map(|(key, json)| (Text::from(key), json.clone()));
    Extra::new(NAME, std::iter::once(note).chain(own))
}

fn stop_reason(reason: Option<Text>) -> StopReason {
    match reason.as_ref().map(Text::as_str) {
        Some("guardrail_intervened" | "content_filtered") => StopReason::Refusal,
        Some(reason) => StopReason::from(reason),
        None => StopReason::Other("unknown".into()),
    }
}

/// The fields of the usage. The provider counts the cached part of the prompt separately.
pub(super) const USAGE: Counts = Counts {
    input: &["inputTokens", "cacheWriteInputTokens", "cacheReadInputTokens"],
    output: &["outputTokens"],
    cache_read: "cacheReadInputTokens",
    cache_write: "cacheWriteInputTokens",
    reasoning: "",
};

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold_core::message::{ContentBlock, Usage};

    #[test]
    fn an_answer_is_read_with_its_usage_and_origin() {
        let body = r#"{"output":{"message":{"role":"assistant","content":[{"text":"yes"}]}},
            "stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":7,"totalTokens":10,
            "cacheReadInputTokens":100,"cacheWriteInputTokens":20},"metrics":{"latencyMs":5}}"#;
        let turn = turn(body.as_bytes()).unwrap();
        let usage = Usage { input: 123, output: 7, cache_read: 100, cache_write: 20, reasoning: 0 };
        assert_eq!((turn.usage, turn.message.usage), (Some(usage), Some(usage)));
        assert_eq!(turn.stop_reason, StopReason::EndTurn);
        assert_eq!(turn.message.content, [ContentBlock::text("yes")]);
        assert_eq!(turn.message.origin, Some(Origin::new(NAME, None)));
        let rest = turn.message.extra.get(NAME, forms::ANSWER).map(Json::as_str).unwrap();
        assert!(rest.ends_with(r#","metrics":{"latencyMs":5}}"#), "{rest}");
    }

    #[test]
    fn stop_reasons_are_mapped_and_unknown_ones_kept() {
        let rows = [
            ("tool_use", StopReason::ToolUse),
            ("max_tokens", StopReason::MaxTokens),
            ("stop_sequence", StopReason::StopSequence),
            ("guardrail_intervened", StopReason::Refusal),
            ("content_filtered", StopReason::Refusal),
            ("model_context_window_exceeded", StopReason::ContextWindowExceeded),
            ("malformed_tool_use", StopReason::Other("malformed_tool_use".into())),
        ];
        for (word, reason) in rows {
            let body = format!(
                r#"{{"output":{{"message":{{"role":"assistant","content":[]}}}},"stopReason":"{word}"}}"#
            );
            let turn = turn(body.as_bytes()).unwrap();
            assert_eq!((turn.stop_reason, turn.usage), (reason, None));
        }
    }

    #[test]
    fn an_error_body_is_no_answer() {
        let error = turn(br#"{"message":"Too many requests"}"#).unwrap_err().to_string();
        assert_eq!(
            error,
            "body: expected an answer with its `output`, found \"Too many requests\""
        );
    }
}
