//! The rulebook: a request in, a reply out.

use serde_json::Value;
use threadfold::{message::Timestamp, wire::Dialect};

use super::{
    anthropic::Anthropic,
    bound::Bound,
    cache::Cache,
    call::{HttpCall, Reply},
    chat::Chat,
    converse::Converse,
    gemini::Gemini,
    held::Held,
    numbers::{Numbers, hash_of},
    options::{BookOptions, Fit, Refusal},
    piece::{Kind, tokens_in},
    responses::Responses,
    rule::{Rule, Source, Violation},
    script::{Asked, Part, Purpose, Said},
    seen::{Last, Outcome, Seen},
    vendor::{Incoming, Size, Vendor, Wants, Writing},
};

/// The executable rules of an API: it judges requests, and answers legal ones as the vendor does,
/// with the words of a closure, the script.
///
/// It is a value: it opens no connection and knows no clock. The same requests, times, seed and
/// script give the same replies, byte for byte.
#[derive(Debug)]
pub struct Rulebook {
    dialect: Dialect,
    vendor: Box<dyn Vendor>,
    options: BookOptions,
    state: State,
}

#[derive(Debug)]
struct State {
    numbers: Numbers,
    bound: Bound,
    cache: Cache,
    held: Held,
    seen: Seen,
}

impl Rulebook {
    /// Returns the rulebook of a vendor's API. A request says which of its rules hold: by the header
    /// `anthropic-version`, 2023-06-01 or 2026-10-21; by a model of OpenAI, which binds reasoning
    /// since GPT-6.2; by a model of Gemini, whose calls need their signatures since Gemini 3; and by
    /// the vendor of a model at Bedrock.
    ///
    /// # Panics
    ///
    /// For a dialect without a rulebook. All that exist today have one.
    #[must_use]
    pub fn new(dialect: Dialect, options: BookOptions) -> Self {
        let vendor: Box<dyn Vendor> = match dialect {
            Dialect::Anthropic => Box::new(Anthropic),
            Dialect::OpenAiResponses => Box::new(Responses),
            Dialect::OpenAiChat => Box::new(Chat),
            Dialect::Gemini => Box::new(Gemini),
            Dialect::BedrockConverse => Box::new(Converse),
            other => panic!("{} has no rulebook", other.name()),
        };
        let state = State {
            numbers: Numbers::new(options.seed),
            bound: Bound::default(),
            cache: Cache::default(),
            held: Held::default(),
            seen: Seen::default(),
        };
        Self { dialect, vendor, options, state }
    }

    /// The dialect of the API.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The options. Changes hold from the next request on.
    pub fn options_mut(&mut self) -> &mut BookOptions {
        &mut self.options
    }

    /// All rules that are enforced, with their sources.
    #[must_use]
    pub fn rules(&self) -> &'static [&'static Rule] {
        self.vendor.rules()
    }

    /// What was seen so far.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.state.seen
    }

    /// Returns the reply to a request at this time. The script is asked only for a legal request
    /// that fits.
    ///
    /// ```
    /// use threadfold::{message::Timestamp, wire::Dialect};
    /// use threadfold_testing::rulebook::{Asked, BookOptions, HttpCall, Rulebook, Said};
    ///
    /// let mut book = Rulebook::new(Dialect::Anthropic, BookOptions::default());
    /// let mut script = |_: &Asked<'_>| Said::text("Hello!");
    /// let call = HttpCall {
    ///     path: "/v1/messages",
    ///     headers: &[("anthropic-version", "2026-10-21")],
    ///     body: br#"{"model": "claude-opus-5-5", "max_tokens": 9, "temperature": 1,
    ///         "messages": [{"role": "user", "content": "Hi."}]}"#,
    /// };
    /// let reply = book.answer(&call, Timestamp(0), &mut script);
    /// assert_eq!(reply.status, 400);
    /// let violation = &book.seen().violations[0];
    /// assert_eq!(violation.message, "temperature: Extra inputs are not permitted");
    /// assert_eq!(violation.rule.name, "no-sampling-parameters");
    /// ```
    pub fn answer(
        &mut self,
        call: &HttpCall<'_>,
        now: Timestamp,
        script: &mut dyn FnMut(&Asked<'_>) -> Said,
    ) -> Reply {
        let parsed: Result<Value, _> = serde_json::from_slice(call.body);
        let Ok(body) = parsed else {
            return self.refused(&Violation::new(&NOT_JSON, "the body is not JSON"));
        };
        let Some(wants) = self.vendor.wants(call, &body) else {
            let message = format!("there is no path {}", call.route());
            return self.refused(&Violation::new(&NO_PATH, message).status(404));
        };
        let model = self.vendor.model(call, &body);
        let mut request = Incoming { call, model, wants, body, now };
        self.state.seen.last = Last::default();
        if wants != Wants::Count {
            self.state.seen.requests += 1;
        }
        if let Err(violation) = self.vendor.resume(&mut request, &mut self.state.held) {
            self.state.seen.last.outcome = Outcome::NotFound;
            return self.written(&violation);
        }
        if let Some(violation) = self.vendor.violation(&request, &self.state.bound) {
            return self.refused(&violation);
        }
        self.judged(&request, script)
    }

    /// The reply to a request whose form is legal.
    fn judged(
        &mut self,
        request: &Incoming<'_>,
        script: &mut dyn FnMut(&Asked<'_>) -> Said,
    ) -> Reply {
        let mut pieces = self.vendor.pieces(request);
        let strictness = self.vendor.strictness(&request.model, &self.options);
        let checked =
            self.state.bound.check(&pieces, strictness, |of| self.vendor.reads(&request.model, of));
        if request.wants != Wants::Count {
            let place = |index: usize| pieces.get(index).map(|piece| piece.path.clone());
            let void = checked.void.iter();
            let void = void.filter_map(|(index, why)| Some((place(*index)?, *why)));
            self.state.seen.last.void = void.collect();
            self.state.seen.void += checked.void.len() as u64;
        }
        for (index, reason) in &checked.void {
            let Some(piece) = pieces.get_mut(*index) else { continue };
            let refusal = self.vendor.refuses_void(request, piece, *reason);
            if let Some(violation) = refusal {
                return self.refused(&violation);
            }
            piece.tokens = 0;
        }
        let prompt: u64 = pieces.iter().map(|piece| piece.tokens).sum();
        if request.wants == Wants::Count {
            return Reply::json(200, self.vendor.count(prompt));
        }
        self.state.seen.last.tokens = prompt;
        let answer = self.vendor.answer_limit(&request.body);
        let needed = if self.options.fit == Fit::Sum { prompt + answer } else { prompt };
        if needed > self.options.window {
            return self.too_long(request, Size { prompt, answer, window: self.options.window });
        }
        for (index, piece) in pieces.iter().enumerate() {
            let is_void = checked.void.iter().any(|(void, _)| *void == index);
            if matches!(piece.kind, Kind::Reasoning(_)) && !is_void {
                self.state.seen.last.arrived.push(piece.path.clone());
            }
        }
        self.state.seen.arrived += self.state.seen.last.arrived.len() as u64;
        let purpose = match request.wants {
            Wants::Compaction => Purpose::Compaction,
            Wants::Answer | Wants::Count => Purpose::Answer,
        };
        let asked = Asked {
            dialect: self.dialect,
            model: &request.model,
            purpose,
            body: &request.body,
            tokens: prompt,
        };
        let said = script(&asked);
        let rules = self.vendor.cache(&request.model);
        let model = hash_of(&Value::from(request.model.as_str()));
        let used = self.state.cache.take(&pieces, model, &rules, request.now);
        let output = said_tokens(&said);
        let seen = &mut self.state.seen;
        seen.last.outcome = Outcome::Answered;
        seen.input.plain += used.plain;
        seen.input.read += used.read;
        seen.input.written += used.written;
        seen.input.written_hour += used.written_hour;
        seen.price += used.price(&rules);
        seen.output += output;
        match purpose {
            Purpose::Answer => seen.answered += 1,
            Purpose::Compaction => seen.compactions += 1,
        }
        let State { numbers, bound, held, .. } = &mut self.state;
        let (void, end) = (checked.void.as_slice(), checked.end);
        let writing = Writing { numbers, bound, held, pieces: &pieces, void, end, used, output };
        self.vendor.reply(request, &said, writing)
    }

    /// The reply to an illegal request.
    fn refused(&mut self, violation: &Violation) -> Reply {
        self.state.seen.last.outcome = Outcome::Illegal;
        self.state.seen.violations.push(violation.clone());
        self.written(violation)
    }

    fn too_long(&mut self, request: &Incoming<'_>, size: Size) -> Reply {
        self.state.seen.overflows += 1;
        self.state.seen.last.outcome = Outcome::TooLong;
        let violation = self.vendor.overflow(size);
        let error = self.vendor.error(&violation, &mut self.state.numbers);
        if self.options.refusal == Refusal::InStream
            && let Some(reply) = self.vendor.in_stream(request, &violation, &error)
        {
            return reply;
        }
        self.with_headers(&violation, error)
    }

    fn written(&mut self, violation: &Violation) -> Reply {
        let error = self.vendor.error(violation, &mut self.state.numbers);
        self.with_headers(violation, error)
    }

    fn with_headers(&self, violation: &Violation, error: Value) -> Reply {
        let mut reply = Reply::json(violation.status, error);
        reply.headers.extend(self.vendor.error_headers(violation));
        reply
    }
}

static NOT_JSON: Rule = Rule { name: "json", says: "A body is JSON.", source: Source::Common };
static NO_PATH: Rule =
    Rule { name: "path", says: "A path is one of the API's.", source: Source::Common };

/// The tokens of an answer.
fn said_tokens(said: &Said) -> u64 {
    let bytes = said.parts.iter().map(|part| match part {
        Part::Reasoning(text) | Part::Text(text) => text.len(),
        Part::Call { name, input } => name.len() + input.to_string().len(),
    });
    tokens_in(bytes.sum()).max(1)
}
