//! Bedrock Converse, for the models of every maker.
//!
//! Not enforced: guardrails, tools of the server, the limits of media. Where a response names dropped
//! reasoning is not known, so it names none.

mod check;
mod rules;
mod write;

use serde_json::{Value, json};

use super::{
    anthropic::{anthropic_cache, binding},
    bound::{Bound, Strictness, VoidReason},
    cache::CacheRules,
    call::{HttpCall, Reply, ReplyBody},
    event::Event,
    held::Held,
    numbers::Numbers,
    options::BookOptions,
    piece::{Kind, MINUTE, Piece, Place},
    rule::{Found, Rule, Violation},
    script::Said,
    vendor::{Incoming, Size, Vendor, Wants, Writing, items, word},
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Converse;

impl Vendor for Converse {
    fn rules(&self) -> &'static [&'static Rule] {
        rules::RULES
    }

    fn wants(&self, call: &HttpCall<'_>, _: &Value) -> Option<Wants> {
        let action = call.route().strip_prefix("/model/")?.rsplit_once('/')?.1;
        match action {
            "converse" | "converse-stream" => Some(Wants::Answer),
            "count-tokens" => Some(Wants::Count),
            _ => None,
        }
    }

    fn model(&self, call: &HttpCall<'_>, body: &Value) -> String {
        let of_path = call.route().strip_prefix("/model/").and_then(|path| path.rsplit_once('/'));
        let of_path = of_path.map_or("", |(model, _)| model).replace("%3A", ":");
        if of_path.is_empty() { word(body, "modelId").to_owned() } else { of_path }
    }

    fn resume(&self, request: &mut Incoming<'_>, _: &mut Held) -> Result<(), Violation> {
        // A count wraps the request that is counted.
        let inner = request.body.get("input").and_then(|input| input.get("converse")).cloned();
        if let Some(inner) = inner {
            request.body = inner;
        }
        Ok(())
    }

    fn violation(&self, request: &Incoming<'_>, bound: &Bound) -> Found {
        check::violation(request, bound)
    }

    fn pieces(&self, request: &Incoming<'_>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let tools = items(request.body.get("toolConfig").and_then(|config| config.get("tools")));
        for (at, tool) in tools.enumerate() {
            add(&mut pieces, format!("toolConfig.tools.{at}"), Place::Head, tool);
        }
        for (at, block) in items(request.body.get("system")).enumerate() {
            add(&mut pieces, format!("system.{at}"), Place::Head, block);
        }
        for (at, message) in items(request.body.get("messages")).enumerate() {
            let place = match word(message, "role") {
                "assistant" => Place::Assistant,
                "system" => Place::System,
                _ => Place::User,
            };
            for (number, block) in items(message.get("content")).enumerate() {
                add(&mut pieces, format!("messages.{at}.content.{number}"), place, block);
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
        binding::refuses_void(
            &request.body["additionalModelRequestFields"]["thinking"],
            piece,
            reason,
            &rules::BINDING,
        )
    }

    fn cache(&self, model: &str) -> CacheRules {
        CacheRules { rule: &rules::CACHE, ..anthropic_cache(model) }
    }

    fn answer_limit(&self, body: &Value) -> u64 {
        body["inferenceConfig"]["maxTokens"].as_u64().unwrap_or(0)
    }

    fn overflow(&self, size: Size) -> Violation {
        let message = match size.prompt > size.window {
            true => "Input is too long for requested model.".to_owned(),
            false => format!(
                "input length and `max_tokens` exceed context limit: {} + {} > {}, decrease input \
                 length or `max_tokens` and try again",
                size.prompt, size.answer, size.window
            ),
        };
        Violation::new(&rules::WINDOW, message)
    }

    fn error(&self, violation: &Violation, _: &mut Numbers) -> Value {
        json!({"message": violation.message})
    }

    fn error_headers(&self, violation: &Violation) -> Vec<(String, String)> {
        let kind = match violation.status {
            404 => "ResourceNotFoundException",
            _ => "ValidationException",
        };
        vec![("x-amzn-errortype".to_owned(), kind.to_owned())]
    }

    fn in_stream(&self, request: &Incoming<'_>, _: &Violation, error: &Value) -> Option<Reply> {
        let event = Event::named("validationException", error.clone());
        is_stream(request).then(|| frames(vec![event]))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({"inputTokens": tokens})
    }

    fn reply(&self, request: &Incoming<'_>, said: &Said, writing: Writing<'_>) -> Reply {
        let whole = write::whole(request, said, writing);
        if is_stream(request) { frames(write::events(&whole)) } else { Reply::json(200, whole) }
    }
}

fn is_stream(request: &Incoming<'_>) -> bool {
    request.call.route().ends_with("/converse-stream")
}

fn frames(events: Vec<Event>) -> Reply {
    Reply::of(200, "application/vnd.amazon.eventstream", ReplyBody::Frames(events))
}

/// Adds the piece of a block. A cache point marks the piece before it.
fn add(pieces: &mut Vec<Piece>, path: String, place: Place, block: &Value) {
    if let Some(point) = block.get("cachePoint") {
        let life = if word(point, "ttl") == "1h" { 60 * MINUTE } else { 5 * MINUTE };
        if let Some(last) = pieces.last_mut() {
            last.mark = Some(life);
        }
        return;
    }
    let mut piece = Piece::new(path, place, block);
    if let Some(signature) = check::signature(block) {
        piece.kind = Kind::Reasoning(signature.to_owned());
    }
    pieces.push(piece);
}
