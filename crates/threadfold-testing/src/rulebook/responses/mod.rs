//! OpenAI Responses, before and since GPT-6.2.
//!
//! Not enforced: `conversation`, compaction from a number of tokens on, explicit cache breakpoints,
//! hosted tools, the limits of media, and `truncation: auto`.

mod check;
mod items;
mod rules;
mod version;
mod write;

use serde_json::{Value, json};

use self::items::{is_bare_reference, kind_of, piece};
use super::{
    bound::{Bound, Strictness},
    cache::CacheRules,
    call::{HttpCall, Reply},
    event::Event,
    held::Held,
    numbers::Numbers,
    openai::cache_rules,
    options::BookOptions,
    piece::{Kind, Piece, Place},
    rule::{Found, Rule, Violation},
    script::Said,
    vendor::{Incoming, Size, Vendor, Wants, Writing, items, openai_error, stream, word},
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Responses;

impl Vendor for Responses {
    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn wants(&self, call: &HttpCall<'_>, body: &Value) -> Option<Wants> {
        let last = items(body.get("input")).next_back();
        let compacts = last.is_some_and(|item| kind_of(item) == "compaction_trigger");
        // Base URLs end with or without the version.
        match call.route().trim_start_matches("/v1") {
            "/responses" if compacts => Some(Wants::Compaction),
            "/responses" => Some(Wants::Answer),
            "/responses/compact" => Some(Wants::Compaction),
            "/responses/input_tokens" => Some(Wants::Count),
            _ => None,
        }
    }

    fn resume(&self, request: &mut Incoming<'_>, held: &mut Held) -> Result<(), Violation> {
        let mut input = Vec::new();
        if let Some(id) = request.body.get("previous_response_id").and_then(Value::as_str) {
            let Some(thread) = held.find(id, request.now.0) else {
                let message = format!("Previous response with id '{id}' not found.");
                let violation = Violation::new(&rules::STORED, message);
                let violation = violation.at("previous_response_id");
                return Err(violation.coded("previous_response_not_found"));
            };
            input.extend(items(thread.body.get("input")).cloned());
        }
        match request.body.get("input") {
            Some(Value::String(text)) => input.push(json!({"role": "user", "content": text})),
            sent => input.extend(items(sent).cloned()),
        }
        for item in &mut input {
            if kind_of(item) != "item_reference" && !is_bare_reference(item) {
                continue;
            }
            let id = word(item, "id");
            let Some(stored) = held.item(id) else {
                let message = format!(
                    "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                     false. Try again with `store` set to true, or remove this item from your input."
                );
                return Err(Violation::new(&rules::FOUND, message).at("input"));
            };
            *item = stored.clone();
        }
        if let Some(fields) = request.body.as_object_mut()
            && (!input.is_empty() || fields.contains_key("input"))
        {
            fields.insert("input".to_owned(), Value::Array(input));
        }
        Ok(())
    }

    fn violation(&self, request: &Incoming<'_>, bound: &Bound) -> Found {
        check::violation(request, bound)
    }

    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece> {
        let body = &request.body;
        let mut pieces: Vec<Piece> = Vec::new();
        let instructions = body.get("instructions").filter(|text| text.is_string());
        let instructions =
            instructions.map(|text| Piece::new("instructions".to_owned(), Place::Head, text));
        // Since GPT-6.2 they hold for one request and stand after the input.
        let stand_last = version::binds(&request.model);
        if !stand_last {
            pieces.extend(instructions.clone());
        }
        for (index, tool) in items(body.get("tools")).enumerate() {
            pieces.push(Piece::new(format!("tools[{index}]"), Place::Head, tool));
        }
        if let Some(format) = body.get("text").and_then(|text| text.get("format")) {
            pieces.push(Piece::new("text.format".to_owned(), Place::Head, format));
        }
        for (index, item) in items(body.get("input")).enumerate() {
            if kind_of(item) != "compaction_trigger" {
                pieces.push(piece(&format!("input[{index}]"), item));
            }
        }
        if stand_last {
            pieces.extend(instructions.map(|piece| Piece { kind: Kind::Aside, ..piece }));
        }
        pieces
    }

    fn strictness(&self, model: &str, _: &BookOptions) -> Strictness {
        Strictness { prefix: version::binds(model), gaps: false, roles: false }
    }

    fn reads(&self, model: &str, of: &str) -> bool {
        model == of || !version::binds(model)
    }

    fn cache(&self, model: &str) -> CacheRules {
        cache_rules(model, &rules::CACHE)
    }

    fn answer_limit(&self, body: &Value) -> u64 {
        body.get("max_output_tokens").and_then(Value::as_u64).unwrap_or(0)
    }

    fn overflow(&self, _: Size) -> Violation {
        let message = "Your input exceeds the context window of this model. Please adjust your input \
                       and try again.";
        let violation = Violation::new(&rules::WINDOW, message);
        violation.at("input").coded("context_length_exceeded")
    }

    fn error(&self, violation: &Violation, _: &mut Numbers) -> Value {
        openai_error(violation)
    }

    fn in_stream(&self, request: &Incoming<'_>, violation: &Violation, _: &Value) -> Option<Reply> {
        let error = json!({"code": violation.code, "message": violation.message});
        let response = |status: &str, error: &Value| json!({"id": "resp_0", "object": "response", "status": status, "error": error, "output": []});
        let created = response("in_progress", &Value::Null);
        let events = [
            json!({"type": "response.created", "sequence_number": 0, "response": created}),
            json!({"type": "response.failed", "sequence_number": 1,
                "response": response("failed", &error)}),
        ];
        request.streams().then(|| stream(events.into_iter().map(Event::typed).collect()))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({"object": "response.input_tokens", "input_tokens": tokens})
    }

    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
        write::reply(request, said, writing)
    }
}
