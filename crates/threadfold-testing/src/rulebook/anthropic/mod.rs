//! Anthropic Messages, API versions 2023-06-01 and 2026-10-21.
//!
//! Not enforced: the limits of media, tools of the server, compaction from a number of tokens on
//! (`compact_20260112`), the clearing of results and thinking by the API, and the reports
//! `thinking_mismatch_allowed` of an old account.

pub(super) mod binding;
mod check;
mod family;
mod rules;
mod turns;
mod write;

use serde_json::{Value, json};

use super::{
    bound::{Bound, Strictness, VoidReason},
    cache::CacheRules,
    call::{HttpCall, Reply},
    event::Event,
    held::{Held, Thread},
    numbers::Numbers,
    options::BookOptions,
    piece::{Kind, Piece, Place},
    rule::{Found, Rule, Violation},
    script::Said,
    vendor::{Incoming, Size, Vendor, Wants, Writing, items, stream, word},
};
pub(super) use family::{Family, anthropic_cache};
use turns::{blocks, turns};

#[derive(Clone, Copy, Debug)]
pub(super) struct Anthropic;

impl Vendor for Anthropic {
    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn wants(&self, call: &HttpCall<'_>, body: &Value) -> Option<Wants> {
        let compacts = body.get("compaction").is_some_and(Value::is_object);
        match call.route() {
            "/v1/messages" if compacts => Some(Wants::Compaction),
            "/v1/messages" => Some(Wants::Answer),
            "/v1/messages/count_tokens" => Some(Wants::Count),
            _ => None,
        }
    }

    fn resume(&self, request: &mut Incoming<'_>, held: &mut Held) -> Result<(), Violation> {
        let thread = request.body.get("thread").unwrap_or(&Value::Null);
        let of = |message: &str| Violation::new(&rules::THREADS, message);
        if !thread.is_object() {
            return Ok(());
        }
        if !request.has_beta("message-threads-2026-08-12") {
            return Err(of("thread: Extra inputs are not permitted"));
        }
        if word(thread, "type") != "continue" {
            return Ok(());
        }
        let id = word(thread, "previous_message_id").to_owned();
        let Some(Thread { body, is_continued, .. }) = held.find(&id, request.now.0) else {
            let message = "No usable Thread state was found for `previous_message_id`. Replay the \
                           full conversation with `thread: {\"type\": \"create\"}` to start a new Thread.";
            return Err(of(message).status(404).coded("thread_not_found"));
        };
        if *is_continued {
            let message = "The response that `previous_message_id` names has already been continued, \
                           and each response can be continued only once.";
            return Err(of(message).coded("thread_already_continued"));
        }
        for field in ["model", "system", "tools"] {
            let sent = request.body.get(field).filter(|sent| !sent.is_null());
            if sent.is_some_and(|sent| body.get(field) != Some(sent)) {
                let message =
                    format!("thread: `{field}` differs from the value stored with the Thread");
                return Err(of(&message).coded("thread_fingerprint_mismatch"));
            }
        }
        *is_continued = true;
        let mut messages: Vec<Value> = items(body.get("messages")).cloned().collect();
        messages.extend(items(request.body.get("messages")).cloned());
        let kept = ["system", "tools"].map(|field| (field, body.get(field).cloned()));
        let Some(fields) = request.body.as_object_mut() else { return Ok(()) };
        fields.insert("messages".to_owned(), Value::Array(messages));
        for (field, value) in kept {
            if let Some(value) = value {
                fields.insert(field.to_owned(), value);
            }
        }
        Ok(())
    }

    fn violation(&self, request: &Incoming<'_>, bound: &Bound) -> Found {
        check::violation(request, bound)
    }

    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece> {
        let body = &request.body;
        let mut pieces: Vec<Piece> = Vec::new();
        // A tool that is loaded later is no part of the prefix.
        let tools = items(body.get("tools")).filter(|tool| tool.get("defer_loading").is_none());
        for (index, tool) in tools.enumerate() {
            pieces.push(Piece::new(format!("tools.{index}"), Place::Head, tool));
        }
        for (index, block) in blocks(body.get("system")).iter().enumerate() {
            pieces.push(Piece::new(format!("system.{index}"), Place::Head, block));
        }
        for turn in turns(body) {
            let place = place_of(&turn.role);
            for block in &turn.blocks {
                pieces.extend(piece(block, place));
            }
        }
        if let Some(mark) = body.get("cache_control").filter(|mark| mark.is_object()) {
            let mut pieces = pieces.iter_mut().rev();
            if let Some(last) = pieces.find(|piece| piece.kind == Kind::Content) {
                let marked = json!({"cache_control": mark});
                last.mark = Piece::new(String::new(), Place::Head, &marked).mark;
            }
        }
        pieces
    }

    fn strictness(&self, model: &str, options: &BookOptions) -> Strictness {
        binding::strictness(model, options)
    }

    fn reads(&self, model: &str, of: &str) -> bool {
        binding::reads(model, of)
    }

    fn refuses_void(&self, request: &Incoming<'_>, piece: &Piece, reason: VoidReason) -> Found {
        binding::refuses_void(&request.body["thinking"], piece, reason, &rules::BINDING)
    }

    fn cache(&self, model: &str) -> CacheRules {
        anthropic_cache(model)
    }

    fn answer_limit(&self, body: &Value) -> u64 {
        body.get("max_tokens").and_then(Value::as_u64).unwrap_or(0)
    }

    fn overflow(&self, size: Size) -> Violation {
        let Size { prompt, answer, window } = size;
        if prompt > window {
            let message = format!("prompt is too long: {prompt} tokens > {window} maximum");
            return Violation::new(&rules::WINDOW, message);
        }
        let message = format!(
            "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, \
             decrease input length or `max_tokens` and try again"
        );
        Violation::new(&rules::SUM, message)
    }

    fn error(&self, violation: &Violation, numbers: &mut Numbers) -> Value {
        let kind =
            if violation.status == 404 { "not_found_error" } else { "invalid_request_error" };
        let mut error = json!({"type": kind, "message": violation.message});
        if let Some(code) = violation.code {
            error["details"] = json!({"error_code": code});
        }
        json!({"type": "error", "error": error, "request_id": numbers.id("req_011")})
    }

    fn in_stream(&self, request: &Incoming<'_>, _: &Violation, error: &Value) -> Option<Reply> {
        request.streams().then(|| stream(vec![Event::typed(error.clone())]))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({"input_tokens": tokens})
    }

    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
        write::reply(request, said, writing)
    }
}

fn place_of(role: &str) -> Place {
    match role {
        "system" => Place::System,
        "assistant" => Place::Assistant,
        _ => Place::User,
    }
}

/// The piece of a block; `None` for a compaction that failed, which the server ignores.
fn piece(block: &turns::Block, place: Place) -> Option<Piece> {
    let mut piece = Piece::new(block.path(), place, &block.value);
    match block.kind() {
        "thinking" | "redacted_thinking" => {
            piece.kind = Kind::Reasoning(block.signature().to_owned())
        }
        "compaction" if block.value["content"].is_null() => return None,
        "compaction" => {
            let signature = word(&block.value, "signature");
            piece.kind = Kind::Compaction(signature.to_owned());
        }
        _ => {}
    }
    Some(piece)
}
