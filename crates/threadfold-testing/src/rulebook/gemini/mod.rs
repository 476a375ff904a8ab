//! Gemini `generateContent`, before and since Gemini 3.
//!
//! Not enforced: `cachedContent`, tools of the server, the rules of Vertex AI for responses beside
//! text, and the limits of media. Reasoning is not bound to its prefix here: what counts as reasoning
//! are parts with a signature.

mod check;
mod rules;

use serde_json::{Value, json};

use super::{
    bound::Bound,
    cache::{CacheMarks, CacheRules},
    call::{HttpCall, Reply, ReplyBody},
    event::Event,
    held::Held,
    numbers::Numbers,
    piece::{Kind, MINUTE, Piece, Place},
    rule::{Found, Rule, Violation},
    script::{Part, Said},
    vendor::{Incoming, Size, Vendor, Wants, Writing, halves, items, stream, word},
};
use check::field;

#[derive(Clone, Copy, Debug)]
pub(super) struct Gemini;

impl Vendor for Gemini {
    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn wants(&self, call: &HttpCall<'_>, _: &Value) -> Option<Wants> {
        match call.route().rsplit_once(':')?.1 {
            "generateContent" | "streamGenerateContent" => Some(Wants::Answer),
            "countTokens" => Some(Wants::Count),
            _ => None,
        }
    }

    fn model(&self, call: &HttpCall<'_>, _: &Value) -> String {
        let last = call.route().rsplit('/').next().unwrap_or_default();
        last.split(':').next().unwrap_or_default().to_owned()
    }

    fn resume(&self, request: &mut Incoming<'_>, _: &mut Held) -> Result<(), Violation> {
        // A count may wrap the request that is counted.
        if let Some(inner) = field(&request.body, "generateContentRequest").cloned() {
            request.body = inner;
        }
        Ok(())
    }

    fn violation(&self, request: &Incoming<'_>, bound: &Bound) -> Found {
        check::violation(request, bound)
    }

    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for name in ["systemInstruction", "tools", "toolConfig"] {
            let value = field(&request.body, name);
            pieces.extend(value.map(|value| Piece::new(name.to_owned(), Place::Head, value)));
        }
        for (at, content) in items(request.body.get("contents")).enumerate() {
            let place =
                if word(content, "role") == "model" { Place::Assistant } else { Place::User };
            for (number, part) in items(content.get("parts")).enumerate() {
                let mut piece = Piece::new(format!("contents[{at}].parts[{number}]"), place, part);
                let signature = check::signature(part).filter(|text| !check::is_stand_in(text));
                if let Some(signature) = signature {
                    piece.kind = Kind::Reasoning(signature.to_owned());
                }
                pieces.push(piece);
            }
        }
        pieces
    }

    fn cache(&self, _: &str) -> CacheRules {
        CacheRules {
            minimum: 4_096,
            marks: CacheMarks::Implicit { life: 5 * MINUTE },
            read_price: 0.1,
            write_price: 1.0,
            hour_write_price: 1.0,
            rule: &rules::CACHE,
        }
    }

    fn answer_limit(&self, body: &Value) -> u64 {
        let config = field(body, "generationConfig").unwrap_or(&Value::Null);
        field(config, "maxOutputTokens").and_then(Value::as_u64).unwrap_or(0)
    }

    fn overflow(&self, size: Size) -> Violation {
        let Size { prompt, window, .. } = size;
        let message = format!(
            "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
        );
        Violation::new(&rules::WINDOW, message)
    }

    fn error(&self, violation: &Violation, _: &mut Numbers) -> Value {
        let status = if violation.status == 404 { "NOT_FOUND" } else { "INVALID_ARGUMENT" };
        json!({"error": {"code": violation.status, "message": violation.message, "status": status}})
    }

    fn in_stream(&self, request: &Incoming<'_>, _: &Violation, error: &Value) -> Option<Reply> {
        streamed(request, vec![error.clone()])
    }

    fn count(&self, tokens: u64) -> Value {
        json!({"totalTokens": tokens})
    }

    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
        let parts = parts(request, said, writing.numbers, writing.bound, writing.end);
        let used = writing.used;
        let usage = json!({
            "promptTokenCount": used.prompt(), "cachedContentTokenCount": used.read,
            "candidatesTokenCount": writing.output, "totalTokenCount": used.prompt() + writing.output,
        });
        let id = writing.numbers.id("");
        let whole = |parts: Value, reason: Value| {
            let content = json!({"role": "model", "parts": parts});
            json!({
                "candidates": [{"content": content, "finishReason": reason, "index": 0}],
                "usageMetadata": usage, "modelVersion": request.model, "responseId": id,
            })
        };
        let last = parts.len().saturating_sub(1);
        let chunks = parts.iter().enumerate().flat_map(|(at, part)| {
            let reason = if at == last { json!("STOP") } else { Value::Null };
            pieces_of(part).into_iter().map(move |piece| (piece, reason.clone()))
        });
        let chunks: Vec<Value> =
            chunks.map(|(piece, reason)| whole(json!([piece]), reason)).collect();
        match streamed(request, chunks) {
            Some(reply) => reply,
            None => Reply::json(200, whole(json!(parts), json!("STOP"))),
        }
    }
}

/// The chunks as a stream, if the request asks for one.
fn streamed(request: &Incoming<'_>, chunks: Vec<Value>) -> Option<Reply> {
    if !request.call.route().ends_with(":streamGenerateContent") {
        return None;
    }
    Some(match request.call.query().split('&').any(|pair| pair == "alt=sse") {
        true => stream(chunks.into_iter().map(Event::unnamed).collect()),
        false => Reply::of(200, "application/json", ReplyBody::Array(chunks)),
    })
}

/// The parts of an answer. A signature stands on the first call, or on the text if there is none.
fn parts(
    request: &Incoming<'_>,
    said: &Said,
    numbers: &mut Numbers,
    bound: &mut Bound,
    mut end: super::bound::End,
) -> Vec<Value> {
    let reply = bound.begin_reply();
    let signs = check::is_third(&request.model);
    let mut thought = false;
    let mut parts = Vec::new();
    let mut is_signed = false;
    for part in &said.parts {
        let mut part = match part {
            Part::Reasoning(_) => {
                thought = true;
                continue;
            }
            Part::Text(text) => json!({"text": text}),
            Part::Call { name, input } => {
                let call = json!({"name": name, "args": input});
                json!({"functionCall": call})
            }
        };
        let is_call = part.get("functionCall").is_some();
        if !is_signed && ((is_call && signs) || thought) {
            let signature = numbers.opaque("CiQB");
            bound.remember(std::slice::from_ref(&signature), &mut end, (&request.model, 0), reply);
            part["thoughtSignature"] = json!(signature);
            is_signed = true;
        }
        parts.push(part);
    }
    parts
}

/// A part as a stream sends it. A signed one comes whole.
fn pieces_of(part: &Value) -> Vec<Value> {
    match part.get("text").and_then(Value::as_str) {
        Some(text) if check::signature(part).is_none() => {
            let pieces = halves(text).into_iter().filter(|text| !text.is_empty());
            pieces.map(|text| json!({"text": text})).collect()
        }
        _ => vec![part.clone()],
    }
}
