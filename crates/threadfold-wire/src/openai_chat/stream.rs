//! Assembling a response from the chunks of its stream.
//!
//! | of a chunk | becomes |
//! |---|---|
//! | `choices`, of the first one: `delta` | its `message` |
//! | `finish_reason` and other fields of the choice | the last value; lists of `logprobs` are joined |
//! | `usage`, also in a choice and in `x_groq` | the last counts |
//! | `id`, `model` and other fields | the last value; `obfuscation` is left out |
//! | `error` | a failure |
//!
//! The answer is complete with `[DONE]`. Not every server sends it, so an answer with a finish
//! reason is also complete at the end of the stream. An empty finish reason is none; one that names
//! an error ends the answer as a failure, and so does an `error` of the choice.
//!
//! | of a delta | becomes |
//! |---|---|
//! | `content`, `refusal`, `reasoning_content`, `reasoning` | one text each |
//! | a `content` of parts | parts, texts side by side joined |
//! | no content, or an empty one | `null` beside calls, else unchanged |
//! | `tool_calls`, `function_call` | calls; see `stream_call` |
//! | `reasoning_details` | entries; see `Details` |
//! | `annotations` | one list |
//! | `audio` | one object, its `data` and `transcript` joined |
//! | any other field | the last value |

use super::{marks::*, read, stream_call::*};
use crate::kit::*;

/// A response that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    head: Merged,
    usage: Merged,
    choice: Merged,
    logprobs: Merged,
    message: Option<Message>,
}

impl Assembly for Response {
    fn take(&mut self, name: &str, data: &str, out: &mut Output) -> Taken {
        out.is_complete = data.trim() == "[DONE]";
        if let Some(message) = self.message.as_mut().filter(|_| out.is_complete) {
            message.calls.finish(out);
        }
        read_event((name, data), &[], |fields, data| self.read(name, fields, data, out))
    }

    fn body(&mut self, is_complete: bool) -> Option<Json> {
        let finished = self.choice.get("finish_reason").is_some_and(|why| why.as_str() != "null");
        let message = self.message.as_ref().filter(|_| is_complete || finished)?;
        let mut choice = self.choice.object();
        choice.set_some("logprobs", self.logprobs.begun());
        choice.set("message", message.tree());
        let mut body = self.head.object();
        if body.get("object").is_some() {
            body.set("object", "chat.completion");
        }
        body.push("choices", Tree::Array(vec![choice.into()]));
        body.set_some("usage", self.usage.begun());
        Some(body.into_json())
    }
}

impl Response {
    fn read(&mut self, name: &str, mut fields: Fields<'_>, data: &str, out: &mut Output) -> Taken {
        if name == "error" || is_error(&fields) {
            return Err(provider_error(data));
        }
        let choices = fields.take("choices").and_then(Raw::items);
        let usage = fields.take("usage");
        if choices.is_none() && usage.is_none() {
            return Ok(());
        }
        fields.take("obfuscation");
        out.usage = self.usage.count(usage, &read::USAGE);
        if let Some(usage) = fields.object("x_groq").and_then(|groq| groq.get("usage")) {
            fields.take("x_groq");
            out.usage = self.usage.count(Some(usage), &read::USAGE).or(out.usage);
        }
        self.head.merge(&fields);
        let mut choices = choices.into_iter().flatten().filter_map(Fields::of).filter(is_first);
        choices.try_for_each(|choice| self.choice(choice, out))
    }

    fn choice(&mut self, mut choice: Fields<'_>, out: &mut Output) -> Taken {
        out.usage = self.usage.count(choice.take("usage"), &read::USAGE).or(out.usage);
        if let Some(logprobs) = choice.take_as("logprobs", Fields::of) {
            for (key, raw) in logprobs.rest() {
                match raw.items().filter(|items| !items.is_empty()) {
                    Some(items) => self.logprobs.extend(key, items),
                    // A whole answer has `null` for a list without items.
                    None if !self.logprobs.has(key) => self.logprobs.set(key, Json::default()),
                    None => {}
                }
            }
        }
        if holds_error(&choice) {
            return Err(provider_error(choice.tree().into_json().as_str()));
        }
        let delta = choice.take_value("delta");
        if choice.text("finish_reason").is_some_and(|reason| reason.is_empty()) {
            choice.take("finish_reason");
        }
        self.choice.merge(&choice);
        let Some(delta) = delta else { return Ok(()) };
        let delta = Fields::of(delta);
        let delta = delta.ok_or_else(|| unreadable("a delta is no JSON object"))?;
        let id = self.head.get("id").and_then(|id| Raw::of(id).text()).unwrap_or_default();
        self.message.get_or_insert_default().add(delta, &id, out);
        Ok(())
    }
}

/// Whether a chunk is an error, in any of the forms that servers use in streams.
fn is_error(fields: &Fields<'_>) -> bool {
    // MiniMax has its own object, also in answers that did not fail.
    let status = fields.object("base_resp").and_then(|base| base.number("status_code"));
    holds_error(fields)
        || fields.text("object").is_some_and(|object| object == "error")
        || status.is_some_and(|status| status != 0)
}

/// Whether an object has a field with an error.
fn holds_error(fields: &Fields<'_>) -> bool {
    fields.get("error").is_some_and(|error| !matches!(error.get(), "null" | "false" | "\"\""))
}

/// Whether a choice is the first one, the only one that is read.
fn is_first(choice: &Fields<'_>) -> bool {
    let index = choice.get("index");
    !index.is_some_and(|raw| raw.number().is_some() && raw.whole_number() != Some(0))
}

/// A message that is being received.
#[derive(Debug, Default)]
pub(super) struct Message {
    content: Vec<Piece>,
    /// Whether the stream had a content, even an empty one.
    has_content: bool,
    refusal: Option<AnswerText>,
    details: Option<Details>,
    /// The fields of the audio, and its texts, which a whole answer has last.
    audio: Option<(Merged, Merged)>,
    function_call: Option<Call>,
    calls: Calls,
    /// The other fields, including reasoning.
    rest: Merged,
}

/// A piece of the content.
#[derive(Debug)]
enum Piece {
    Text(AnswerText),
    /// Reasoning within the content.
    Thinking(String),
    Part(Json),
}

/// A text of the answer. Leading white space is reported together with the text after it, because a
/// text of white space only does not become a text block.
#[derive(Debug, Default)]
struct AnswerText {
    text: String,
    reported: bool,
}

impl Message {
    /// Takes a delta, and reports what it adds. `response` is the id of the response.
    fn add(&mut self, mut fields: Fields<'_>, response: &str, out: &mut Output) {
        self.reasoning(&mut fields, out);
        self.content(&mut fields, out);
        if let Some(piece) = take_piece(&mut fields, "refusal") {
            self.refusal.get_or_insert_default().add(&piece, out);
        }
        self.lists(&mut fields);
        if let Some(mut piece) = fields.take_as("audio", Fields::of) {
            let (fields, texts) = self.audio.get_or_insert_default();
            for key in ["data", "transcript"] {
                take_piece(&mut piece, key).iter().for_each(|text| texts.grow(key, text));
            }
            fields.merge(&piece);
        }
        if let Some(call) = fields.take_as("function_call", Fields::of) {
            let own = self.function_call.get_or_insert_with(|| Call::deprecated(response));
            own.add_body("function_call", call, out);
        }
        if let Some(calls) = fields.take_as("tool_calls", Raw::items) {
            calls.into_iter().filter_map(Fields::of).for_each(|call| self.calls.add(call, out));
        }
        fields.take("role");
        self.rest.merge(&fields);
    }

    /// The message as in a whole response.
    pub(super) fn tree(&self) -> Tree {
        let mut object = Object::of("role", "assistant");
        object.push("content", self.content_tree());
        self.rest.add_to(&mut object);
        let known = [
            ("reasoning_details", self.details.as_ref().map(Details::tree)),
            ("refusal", self.refusal.as_ref().map(|answer_text| answer_text.text.clone().into())),
            ("audio", self.audio.as_ref().map(audio)),
            ("function_call", self.function_call.as_ref().map(|call| call.body().into())),
            ("tool_calls", self.calls.tree()),
        ];
        // These replace values of another shape in `rest`.
        known.into_iter().for_each(|(key, value)| object.set_some(key, value));
        object.into()
    }

    fn content_tree(&self) -> Tree {
        let calls = self.function_call.is_some() || !self.calls.is_empty();
        match self.content.as_slice() {
            [] if self.has_content && !calls => "".into(),
            [] => Tree::Null,
            [Piece::Text(answer_text)] => answer_text.text.clone().into(),
            pieces => Tree::Array(pieces.iter().map(Piece::tree).collect()),
        }
    }

    /// Takes the reasoning of a delta. Some servers send it in two fields, so it is reported once.
    fn reasoning(&mut self, fields: &mut Fields<'_>, out: &mut Output) {
        let mut reported = Text::default();
        for key in REASONING {
            if let Some(text) = take_piece(fields, key) {
                self.rest.grow(key, &text);
                if reported != text {
                    out.thinking(text.clone());
                }
                reported = text;
            }
        }
    }

    fn content(&mut self, fields: &mut Fields<'_>, out: &mut Output) {
        let Some(raw) = fields.take_value("content") else { return };
        self.has_content = true;
        if let Some(piece) = raw.text() {
            self.say(&piece, out);
        }
        for raw in raw.items().into_iter().flatten() {
            if let Some(piece) = plain_text(raw) {
                self.say(&piece, out);
            } else if let Some(pieces) = plain_thinking(raw) {
                pieces.into_iter().for_each(|piece| self.think(piece, out));
            } else {
                self.content.push(Piece::Part(raw.json()));
            }
        }
    }

    fn say(&mut self, piece: &Text, out: &mut Output) {
        if piece.is_empty() {
            return;
        }
        if let Some(Piece::Text(answer_text)) = self.content.last_mut() {
            return answer_text.add(piece, out);
        }
        let mut answer_text = AnswerText::default();
        answer_text.add(piece, out);
        self.content.push(Piece::Text(answer_text));
    }

    fn think(&mut self, piece: Text, out: &mut Output) {
        if piece.is_empty() {
            return;
        }
        match self.content.last_mut() {
            Some(Piece::Thinking(text)) => text.push_str(&piece),
            _ => self.content.push(Piece::Thinking(piece.to_string())),
        }
        out.thinking(piece);
    }

    fn lists(&mut self, fields: &mut Fields<'_>) {
        if let Some(more) = fields.take_as("annotations", Raw::items) {
            self.rest.extend("annotations", more);
        }
        if let Some(more) = fields.take_as("reasoning_details", Raw::items) {
            self.details.get_or_insert_default().add(&more);
        }
    }
}

impl AnswerText {
    fn add(&mut self, piece: &Text, out: &mut Output) {
        self.text.push_str(piece);
        if self.reported {
            out.text(piece.clone());
        } else if !piece.is_blank() {
            self.reported = true;
            out.text(self.text.as_str().into());
        }
    }
}

impl Piece {
    fn tree(&self) -> Tree {
        match self {
            Self::Text(answer_text) => {
                Object::typed("text").with("text", answer_text.text.clone()).into()
            }
            Self::Thinking(text) => {
                let text = Tree::from(Object::typed("text").with("text", text.clone()));
                Object::typed("thinking").with("thinking", vec![text]).into()
            }
            Self::Part(part) => part.clone().into(),
        }
    }
}

fn audio((fields, texts): &(Merged, Merged)) -> Tree {
    let mut object = fields.object();
    texts.object().into_iter().for_each(|(key, text)| object.set(key, text));
    object.into()
}

/// Removes and returns a text; `None` if it is empty or no text.
fn take_piece(fields: &mut Fields<'_>, key: &str) -> Option<Text> {
    fields.take_text(key).filter(|text| !text.is_empty())
}

/// The text of a part that has no other fields.
fn plain_text(raw: Raw<'_>) -> Option<Text> {
    let mut fields = Fields::of(raw)?;
    let text = fields.take_text("text")?;
    let plain = fields.take_text("type").is_some_and(|kind| kind == "text");
    (plain && fields.left() == 0).then_some(text)
}

/// The texts of a part of reasoning that has no other fields.
fn plain_thinking(raw: Raw<'_>) -> Option<Vec<Text>> {
    let mut fields = Fields::of(raw)?;
    let texts = fields.take_as("thinking", |list| list.all(plain_text))?;
    let plain = fields.take_text("type").is_some_and(|kind| kind == "thinking");
    (plain && fields.left() == 0).then_some(texts)
}

/// The entries of `reasoning_details`, which gateways want back unchanged.
///
/// Texts and summaries arrive in pieces. Consecutive pieces belong together if they have the same
/// type and index and, if both have an id, the same id. Encrypted entries arrive whole.
#[derive(Debug, Default)]
struct Details(Vec<Detail>);

/// An entry, and its growing field; `None` if the entry arrived whole.
#[derive(Debug)]
struct Detail(Growing, Option<&'static str>);

impl Details {
    /// Takes more entries, or pieces of them.
    fn add(&mut self, items: &[Raw<'_>]) {
        for raw in items {
            let Some(mut piece) = Fields::of(*raw) else {
                self.0.push(Detail(Growing::Whole(raw.json()), None));
                continue;
            };
            let key = growing(&piece);
            let last = self.0.last().filter(|last| key.is_some() && last.1 == key);
            let mut text = Text::default();
            if last.is_some_and(|last| fits(&last.0, &piece)) {
                text = key.and_then(|key| piece.take(key)).and_then(Raw::text).unwrap_or_default();
            } else {
                // Its text stays at its position among the fields.
                self.0.push(Detail(Growing::Object(Merged::default()), key));
            }
            if let Some(Detail(Growing::Object(entry), _)) = self.0.last_mut() {
                entry.merge(&piece);
                key.into_iter().for_each(|key| entry.grow(key, &text));
            }
        }
    }

    /// The entries as in a whole response.
    fn tree(&self) -> Tree {
        Tree::Array(self.0.iter().map(|Detail(entry, _)| entry.tree()).collect())
    }
}

/// The growing field of a piece of a text or of a summary. A piece without that field carries a
/// signature.
fn growing(piece: &Fields<'_>) -> Option<&'static str> {
    let key = match piece.word("type")?.as_ref() {
        "reasoning.text" => "text",
        "reasoning.summary" => "summary",
        _ => return None,
    };
    let grows = piece.get(key).is_none_or(|raw| raw.get() == "null" || raw.is_text());
    grows.then_some(key)
}

/// Whether a piece continues an entry.
fn fits(begun: &Growing, piece: &Fields<'_>) -> bool {
    let Growing::Object(begun) = begun else { return false };
    let [ids, indices] = ["id", "index"].map(|key| {
        let before = begun.get(key).map(Json::as_str).filter(|text| *text != "null");
        (before, piece.value(key).map(Raw::get))
    });
    (ids.0.is_none() || ids.1.is_none() || ids.0 == ids.1) && indices.0 == indices.1
}
