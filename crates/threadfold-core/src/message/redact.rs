//! Removing secrets from a message before it leaves the thread.
//!
//! The redactor sees every text of a message unescaped: names and ids of tool calls, texts and
//! numbers in their inputs, unknown wire fields. It does not see encrypted reasoning, signatures
//! and Base64 bytes. Blocks keep their positions, so that a plan made for the redacted message fits
//! the original.
//!
//! A strategy gets a redacted snapshot and brief and nothing else, so redaction covers the
//! strategies of hosts, requests, batches and summaries. A name and its value may stand in
//! two parts of a message and in one line of a rendering, so the redactor is applied again to
//! whatever is passed on as a whole. The pieces of a streamed answer are not passed on, because a
//! secret may be split over two of them. A name or id with a secret gets one replacement in the
//! whole snapshot, so calls still match their results.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use super::{
    compaction::CompactionReason,
    content::{
        Checkpoint, ContentBlock, ContextUpdate, Opaque, RedactedThinking, Summary, TextBlock,
        Thinking, ToolResult,
    },
    extra::Extra,
    json::Json,
    json_text::unescaped_lossy,
    media::{Document, Image, MediaSource},
    message::Message,
    parts::StopReason,
    redact_json,
    request::{Answer, Request},
    steps,
    text::Text,
    tool::{ServerToolUse, ToolInput, ToolSpec, ToolUse},
};

/// Removes from a text what must not leave the thread: keys, names, addresses.
///
/// Compactions apply it to everything that they hand on: requests to the model that summarizes,
/// summaries, batches, notices, records and errors, including tool names and call ids. It also sees
/// what the summarizing model answers. It sees every text alone, without JSON escapes, every number
/// in JSON as it is written, and then the whole as it is handed on: the JSON of a tool's input, a
/// rendered transcript, a summary. So a pattern such as `password: *` finds a name and its value in
/// any of these forms. It does not see other encodings, such as Base64. The thread itself, its log
/// and its own model's requests are not changed.
///
/// A text may pass more than once, so a replacement must not be something that the redactor would
/// replace again by another text.
///
/// ```
/// use std::borrow::Cow;
/// use threadfold::message::Redactor;
///
/// #[derive(Debug)]
/// struct Keys;
///
/// impl Redactor for Keys {
///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
///         match text.contains("sk-123") {
///             true => text.replace("sk-123", "[key]").into(),
///             false => text.into(),
///         }
///     }
/// }
///
/// assert_eq!(Keys.redact("The key is sk-123."), "The key is [key].");
/// ```
pub trait Redactor: fmt::Debug + Send + Sync {
    /// Returns the text with its secrets replaced, or the text itself if it has none.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

impl Message {
    /// Returns the message without what the redactor removes. It has the same number of blocks, of
    /// the same kinds. Reasoning that changes loses its signature, which would no longer match;
    /// encrypted reasoning and Base64 bytes stay.
    ///
    /// ```
    /// use std::borrow::Cow;
    /// use threadfold::{Message, message::Redactor};
    ///
    /// #[derive(Debug)]
    /// struct Numbers;
    ///
    /// impl Redactor for Numbers {
    ///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
    ///         text.replace(|character: char| character.is_ascii_digit(), "#").into()
    ///     }
    /// }
    ///
    /// assert_eq!(Message::user("Call 555.").redacted(&Numbers), Message::user("Call ###."));
    /// ```
    #[must_use]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        Redaction::of(redactor).message(self)
    }
}

impl CompactionReason {
    /// Returns the reason without what the redactor removes from its instructions.
    #[doc(hidden)]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let Self::Manual { instructions: Some(instructions) } = self else { return self.clone() };
        Self::Manual { instructions: Some(redacted_text(instructions, redactor)) }
    }
}

/// Returns the text without what the redactor removes; the same handle if it removes nothing.
#[doc(hidden)]
pub fn redacted_text(text: &Text, redactor: &dyn Redactor) -> Text {
    redact(text, redactor).map_or_else(|| text.clone(), Text::from)
}

/// How many levels of JSON escapes are resolved in a text: JSON in a string of JSON has two.
const ESCAPE_LEVELS: usize = 3;

/// Returns the redacted text; `None` if it does not change. The redactor sees the text unchanged,
/// and then with JSON escapes resolved, level by level, because tools and models write JSON into
/// texts.
fn redact(text: &str, redactor: &dyn Redactor) -> Option<String> {
    let mut redacted = redact_once(text, redactor);
    let mut unescaped = redacted.clone().map_or(Cow::Borrowed(text), Cow::Owned);
    for _ in 0..ESCAPE_LEVELS {
        if !unescaped.contains('\\') {
            break;
        }
        unescaped = unescaped_lossy(&unescaped).into_owned().into();
        if let Some(changed) = redact_once(&unescaped, redactor) {
            redacted = Some(changed.clone());
            unescaped = changed.into();
        }
    }
    redacted
}

fn redact_once(text: &str, redactor: &dyn Redactor) -> Option<String> {
    match redactor.redact(steps::through(text)) {
        same if *same == *text => None,
        other => Some(other.into_owned()),
    }
}

/// One pass of a redactor over messages that belong together.
///
/// A name or id that contains a secret gets a replacement: the same one wherever it occurs, and a
/// different one for each, so that tool calls and results still match.
#[doc(hidden)]
#[derive(Debug)]
pub struct Redaction<'r> {
    redactor: &'r dyn Redactor,
    /// The replacement of each name and id that contains a secret.
    replacements: HashMap<Text, Text>,
    used: HashSet<Text>,
}

impl<'r> Redaction<'r> {
    #[doc(hidden)]
    pub fn of(redactor: &'r dyn Redactor) -> Self {
        Self { redactor, replacements: HashMap::new(), used: HashSet::new() }
    }

    #[doc(hidden)]
    pub fn message(&mut self, message: &Message) -> Message {
        let mut redacted = message.clone();
        let parts = redacted.make_mut();
        parts.content.iter_mut().for_each(|block| self.block(block));
        self.extra(&mut parts.extra);
        if let Some(StopReason::Other(reason)) = &mut parts.stop_reason {
            self.text(reason);
        }
        if let Some(origin) = &mut parts.origin {
            self.text(&mut origin.provider);
            self.texts(&mut origin.model);
        }
        redacted
    }

    #[doc(hidden)]
    pub fn tool(&mut self, tool: &ToolSpec) -> ToolSpec {
        let mut redacted = tool.clone();
        let ToolSpec { name, description, input_schema, extra } = &mut redacted;
        self.name(name);
        self.text(description);
        self.json(input_schema);
        self.extra(extra);
        redacted
    }

    /// Redacts a text. Returns whether it changed.
    fn text(&self, text: &mut Text) -> bool {
        let redacted = redact(text, self.redactor);
        let is_changed = redacted.is_some();
        if let Some(redacted) = redacted {
            *text = redacted.into();
        }
        is_changed
    }

    fn texts<'t>(&self, texts: impl IntoIterator<Item = &'t mut Text>) {
        for text in texts {
            self.text(text);
        }
    }

    /// Redacts a name or an id.
    fn name(&mut self, name: &mut Text) {
        if let Some(replacement) = self.replacements.get(name) {
            *name = replacement.clone();
            return;
        }
        let Some(redacted) = redact(name, self.redactor) else { return };
        let mut replacement = Text::from(redacted.as_str());
        for number in 2.. {
            if self.used.insert(replacement.clone()) {
                break;
            }
            replacement = format!("{redacted}-{number}").into();
        }
        let name = std::mem::replace(name, replacement.clone());
        self.replacements.insert(name, replacement);
    }

    /// Returns the request without what the redactor removes.
    #[doc(hidden)]
    pub fn request(mut self, request: &Request) -> Request {
        let mut redacted = request.clone();
        for messages in [&mut redacted.system, &mut redacted.messages] {
            let clean = messages.iter().map(|message| self.message(message)).collect::<Vec<_>>();
            *messages = Arc::new(clean);
        }
        redacted.tools = Arc::new(request.tools.iter().map(|tool| self.tool(tool)).collect());
        self.extra(&mut redacted.extra);
        redacted
    }

    /// Returns the answer of a model without what the redactor removes. Opaque blocks stay: only
    /// their provider can read them, and it refuses a changed one.
    #[doc(hidden)]
    pub fn answer(mut self, answer: Answer) -> Answer {
        let mut message = self.message(&answer.message);
        for (clean, block) in message.make_mut().content.iter_mut().zip(&answer.message.content) {
            if matches!(block, ContentBlock::Opaque(_)) {
                *clean = block.clone();
            }
        }
        Answer { message, ..answer }
    }

    /// Redacts the texts and numbers in a JSON value, and then its whole text, in which a redactor
    /// sees a name together with its value. Texts are unescaped first, so that no escape hides a
    /// secret.
    fn json(&self, json: &mut Json) {
        *json = redact_json::redacted(json, &mut |text| redact(text, self.redactor));
        if let Some(text) = redact_once(json.as_str(), self.redactor) {
            *json = redact_json::of_text(json, text);
        }
    }

    fn extra(&self, extra: &mut Extra) {
        let Some(codec) = extra.codec() else { return };
        let fields = extra.fields().map(|(name, json)| {
            let mut json = json.clone();
            self.json(&mut json);
            (redact(name, self.redactor).unwrap_or_else(|| name.to_owned()), json)
        });
        *extra = Extra::new(codec, fields);
    }

    fn block(&mut self, block: &mut ContentBlock) {
        match block {
            ContentBlock::Text(TextBlock { text, extra })
            | ContentBlock::SystemReminder(TextBlock { text, extra }) => {
                self.text(text);
                self.extra(extra);
            }
            ContentBlock::Image(Image { source, extra }) => {
                self.source(source);
                self.extra(extra);
            }
            ContentBlock::Document(Document { source, title, context, extra }) => {
                self.source(source);
                self.texts(title.iter_mut().chain(context));
                self.extra(extra);
            }
            ContentBlock::Thinking(Thinking { text, signature, extra }) => {
                if self.text(text) {
                    *signature = None;
                }
                self.extra(extra);
            }
            ContentBlock::RedactedThinking(RedactedThinking { extra, .. })
            | ContentBlock::Checkpoint(Checkpoint { extra, .. }) => self.extra(extra),
            ContentBlock::ContextUpdate(ContextUpdate { paths, text, extra }) => {
                self.texts(paths.iter_mut().chain([text]));
                self.extra(extra);
            }
            ContentBlock::Summary(Summary { text, batches, segments, extra, .. }) => {
                self.texts(batches.iter_mut().map(|batch| &mut batch.text).chain([text]));
                self.texts(segments.iter_mut().map(|segment| &mut segment.text));
                self.extra(extra);
            }
            ContentBlock::Opaque(Opaque { value, .. }) => self.json(value),
            ContentBlock::ToolUse(call) => self.call(call),
            ContentBlock::ToolResult(ToolResult { tool_use_id, content, extra, .. }) => {
                self.name(tool_use_id);
                content.iter_mut().for_each(|block| self.block(block));
                self.extra(extra);
            }
            ContentBlock::ServerToolUse(ServerToolUse { id, name, input, extra }) => {
                self.name(id);
                self.name(name);
                self.json(input);
                self.extra(extra);
            }
            ContentBlock::ServerToolResult(result) => {
                self.name(&mut result.tool_use_id);
                self.text(&mut result.kind);
                self.json(&mut result.content);
                self.extra(&mut result.extra);
            }
        }
    }

    fn call(&mut self, call: &mut ToolUse) {
        self.name(&mut call.id);
        self.name(&mut call.name);
        match &mut call.input {
            ToolInput::Json(input) => self.json(input),
            ToolInput::Text(input) => self.texts([input]),
        }
        self.extra(&mut call.extra);
    }

    fn source(&self, source: &mut MediaSource) {
        match source {
            MediaSource::Base64 { media_type: text, .. }
            | MediaSource::Url { url: text }
            | MediaSource::File { id: text } => self.texts([text]),
            MediaSource::Text { media_type, text } => self.texts([media_type, text]),
            MediaSource::Opaque { value, .. } => self.json(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Batch, BatchId, Role, ServerToolResult};

    #[derive(Debug)]
    struct Secret;

    impl Redactor for Secret {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            if text.contains("s3cret") { text.replace("s3cret", "*").into() } else { text.into() }
        }
    }

    /// Every kind of block that contains text, with a secret in each.
    fn blocks() -> Vec<ContentBlock> {
        let json = |text: &str| Json::parse(text).unwrap();
        let word = || Text::from("a s3cret b");
        let extra = || Extra::new("codec", [("note", json(r#"["s3cret"]"#))]);
        let url = MediaSource::Url { url: "https://s3cret.example".into() };
        let mut document =
            Document::new(MediaSource::Text { media_type: "text/plain".into(), text: word() });
        (document.title, document.context) = (Some(word()), Some(word()));
        let mut summary = Summary::new(word());
        summary.batches = [Batch::new(BatchId::default(), word())].into();
        let mut call =
            ToolUse::new("t1", "read", json(r#"{"s3cret":1.0,"path":"\u0073\u0033cret"}"#));
        call.extra = extra();
        let mut broken = ToolUse::new("t2", "read", json("{}"));
        broken.input = ToolInput::Text("{\"s3cret".into());
        vec![
            TextBlock { text: word(), extra: extra() }.into(),
            Image::new(url).into(),
            document.into(),
            Thinking::new(word(), Some("sig".into())).into(),
            call.into(),
            broken.into(),
            ToolResult::text("t1", word()).into(),
            ServerToolUse::new("s1", "search", json(r#"{"q":"s3cret"}"#)).into(),
            ServerToolResult::new("s1", "found", json(r#"[{"a":["s3cret"]}]"#)).into(),
            ContentBlock::reminder(word()),
            ContextUpdate::new(vec![word()], word()).into(),
            summary.into(),
            Opaque::new("codec", json(r#"{"a":"s3cret"}"#)).into(),
        ]
    }

    #[test]
    fn no_text_of_any_block_keeps_a_secret_and_the_blocks_stay_in_place() {
        let mut message = Message::new(Role::Assistant, blocks());
        let note = Json::parse(r#""s3cret""#).unwrap();
        message.make_mut().extra = Extra::new("codec", [("note", note)]);
        let clean = message.redacted(&Secret);
        let text = serde_json::to_string(&clean).unwrap();
        assert!(!text.contains("s3cret") && !text.contains("u0073"), "{text}");
        let kinds = |message: &Message| -> Vec<_> {
            message.content.iter().map(ContentBlock::kind).collect()
        };
        assert_eq!(kinds(&clean), kinds(&message));
    }

    #[test]
    fn a_message_without_secrets_keeps_its_bytes_and_signature() {
        let thought = Thinking::new("a thought", Some("sig".into()));
        let call = ToolUse::new("t1", "read", Json::parse(r#"{"z":1.0,"a":1e2}"#).unwrap());
        let encrypted = RedactedThinking::new("s3cret");
        let content = vec![thought.into(), call.into(), encrypted.into()];
        let message = Message::new(Role::Assistant, content);
        assert_eq!(message.redacted(&Secret), message);
    }

    #[test]
    fn changed_reasoning_loses_its_signature() {
        let thought = Thinking::new("the s3cret", Some("sig".into()));
        let message = Message::new(Role::Assistant, vec![thought.into()]);
        let expected = Message::new(Role::Assistant, vec![Thinking::new("the *", None).into()]);
        assert_eq!(message.redacted(&Secret), expected);
    }

    #[test]
    fn json_that_nests_too_deep_to_be_parsed_leaks_no_secret() {
        let deep = format!("{{\"a\":{}\"s3cret\"{}}}", "[".repeat(200), "]".repeat(200));
        let call = ToolUse::new("t1", "read", Json::parse(&deep).unwrap_or_default());
        let message = Message::new(Role::Assistant, vec![call.into()]);
        let text = serde_json::to_string(&message.redacted(&Secret)).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
    }
}
