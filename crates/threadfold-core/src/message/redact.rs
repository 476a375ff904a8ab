//! Taking out of a message what must not leave the thread.
//!
//! Every text of a message is looked at as it reads: names and ids of calls, numbers and escaped texts
//! in their inputs, unknown wire fields. Only what is encrypted, signatures and bytes are not. The
//! blocks stay where they are: a plan that was made for what is left fits the message itself.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
};

use super::{
    compaction::CompactionReason,
    content::{
        Checkpoint, ContentBlock, ContextUpdate, Opaque, RedactedThinking, Summary, SystemReminder,
        TextBlock, Thinking, ToolResult,
    },
    extra::Extra,
    json::Json,
    media::{Document, Image, MediaSource},
    message::Message,
    parts::StopReason,
    redact_json, steps,
    text::Text,
    tool::{ServerToolResult, ServerToolUse, ToolInput, ToolSpec, ToolUse},
};

/// Takes out of a text what must not leave the thread: keys, names, addresses.
///
/// What a compaction hands on passes it: the requests to a model that sums up, what goes to the
/// archive, summaries, notices, records and errors, with the names of tools and the ids of calls. It
/// sees texts as they read, without the escapes of JSON, and numbers in JSON as they are written. What
/// is encoded otherwise, as in Base64, it does not see. The thread itself, its log and the
/// conversation with its own model are not changed.
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
    /// Returns the text without what must not leave; the text itself where it may.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

impl Message {
    /// Returns the message without what the redactor takes out. It has as many blocks, of the same
    /// kinds. Reasoning that is changed loses its signature, which would not fit it any more; what
    /// is encrypted, or bytes, is left as it is.
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
    /// Returns the reason without what the redactor takes out of its focus.
    #[doc(hidden)]
    pub fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let Self::Manual { focus: Some(focus) } = self else { return self.clone() };
        Self::Manual { focus: Some(redacted_text(focus, redactor)) }
    }
}

/// Returns the text without what the redactor takes out; the same handle where nothing goes.
#[doc(hidden)]
pub fn redacted_text(text: &Text, redactor: &dyn Redactor) -> Text {
    left(text, redactor).map_or_else(|| text.clone(), Text::from)
}

/// How often a text may be escaped in a text that is escaped itself.
const ESCAPED: usize = 3;

/// What is left of a text, if the redactor takes anything out. It sees the text as it stands, and as
/// it reads without the escapes of JSON, which tools write into their output and models into texts.
fn left(text: &str, redactor: &dyn Redactor) -> Option<String> {
    let mut left = changed(text, redactor);
    let mut read = left.clone().map_or(Cow::Borrowed(text), Cow::Owned);
    for _ in 0..ESCAPED {
        if !read.contains('\\') {
            break;
        }
        read = redact_json::read(&read).into_owned().into();
        if let Some(found) = changed(&read, redactor) {
            left = Some(found.clone());
            read = found.into();
        }
    }
    left
}

fn changed(text: &str, redactor: &dyn Redactor) -> Option<String> {
    match redactor.redact(steps::through(text)) {
        same if *same == *text => None,
        other => Some(other.into_owned()),
    }
}

/// One pass of a redactor over messages that belong together.
///
/// A name or an id that holds what must not leave gets a stand-in, the same one wherever it stands
/// and no other's, so that calls and results still belong to each other.
#[doc(hidden)]
#[derive(Debug)]
pub struct Redaction<'r> {
    redactor: &'r dyn Redactor,
    /// The stand-in of each word.
    words: HashMap<Text, Text>,
    taken: HashSet<Text>,
}

impl<'r> Redaction<'r> {
    #[doc(hidden)]
    pub fn of(redactor: &'r dyn Redactor) -> Self {
        Self { redactor, words: HashMap::new(), taken: HashSet::new() }
    }

    #[doc(hidden)]
    pub fn message(&mut self, message: &Message) -> Message {
        let blocks = message.content.iter().map(|block| self.block(block)).collect();
        let mut redacted = message.with_content(blocks);
        let parts = redacted.make_mut();
        parts.extra = self.extra(&parts.extra);
        if let Some(StopReason::Other(reason)) = &parts.stop_reason {
            parts.stop_reason = Some(StopReason::Other(self.text(reason)));
        }
        if let Some(origin) = &mut parts.origin {
            origin.provider = self.text(&origin.provider);
            origin.model = origin.model.as_ref().map(|model| self.text(model));
        }
        redacted
    }

    #[doc(hidden)]
    pub fn tool(&mut self, tool: &ToolSpec) -> ToolSpec {
        ToolSpec {
            name: self.word(&tool.name),
            description: self.text(&tool.description),
            input_schema: self.json(&tool.input_schema),
            extra: self.extra(&tool.extra),
        }
    }

    fn text(&self, text: &Text) -> Text {
        redacted_text(text, self.redactor)
    }

    /// A name or an id.
    fn word(&mut self, word: &Text) -> Text {
        if let Some(known) = self.words.get(word) {
            return known.clone();
        }
        let Some(left) = left(word, self.redactor) else { return word.clone() };
        let mut stand_in = Text::from(left.as_str());
        for number in 2.. {
            if self.taken.insert(stand_in.clone()) {
                break;
            }
            stand_in = format!("{left}-{number}").into();
        }
        self.words.insert(word.clone(), stand_in.clone());
        stand_in
    }

    /// Looks at the texts and numbers in a JSON value as they are read, so that no escape hides what
    /// they hold.
    fn json(&self, json: &Json) -> Json {
        redact_json::redacted(json, &mut |text| left(text, self.redactor))
    }

    fn extra(&self, extra: &Extra) -> Extra {
        let Some(codec) = extra.codec() else { return Extra::default() };
        let key = |key: &str| left(key, self.redactor).unwrap_or_else(|| key.to_owned());
        Extra::new(codec, extra.fields().map(|(name, json)| (key(name), self.json(json))))
    }

    fn block(&mut self, block: &ContentBlock) -> ContentBlock {
        match block {
            ContentBlock::Text(block) => {
                TextBlock { text: self.text(&block.text), extra: self.extra(&block.extra) }.into()
            }
            ContentBlock::Image(image) => {
                let (source, extra) = (self.source(&image.source), self.extra(&image.extra));
                Image { source, extra }.into()
            }
            ContentBlock::Document(document) => Document {
                source: self.source(&document.source),
                title: document.title.as_ref().map(|title| self.text(title)),
                context: document.context.as_ref().map(|context| self.text(context)),
                extra: self.extra(&document.extra),
            }
            .into(),
            ContentBlock::Thinking(thought) => self.thought(thought).into(),
            ContentBlock::RedactedThinking(thought) => {
                RedactedThinking { extra: self.extra(&thought.extra), ..thought.clone() }.into()
            }
            ContentBlock::SystemReminder(block) => {
                SystemReminder { text: self.text(&block.text), extra: self.extra(&block.extra) }
                    .into()
            }
            ContentBlock::ContextUpdate(update) => ContextUpdate {
                paths: update.paths.iter().map(|path| self.text(path)).collect(),
                text: self.text(&update.text),
                extra: self.extra(&update.extra),
            }
            .into(),
            ContentBlock::Checkpoint(mark) => {
                Checkpoint { extra: self.extra(&mark.extra), ..mark.clone() }.into()
            }
            ContentBlock::Summary(summary) => self.summary(summary).into(),
            ContentBlock::Opaque(opaque) => {
                Opaque { value: self.json(&opaque.value), ..opaque.clone() }.into()
            }
            ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::ServerToolUse(_)
            | ContentBlock::ServerToolResult(_) => self.call(block),
        }
    }

    /// A call or a result.
    fn call(&mut self, block: &ContentBlock) -> ContentBlock {
        match block {
            ContentBlock::ToolUse(call) => ToolUse {
                id: self.word(&call.id),
                name: self.word(&call.name),
                input: self.input(&call.input),
                extra: self.extra(&call.extra),
            }
            .into(),
            ContentBlock::ToolResult(result) => ToolResult {
                tool_use_id: self.word(&result.tool_use_id),
                content: result.content.iter().map(|block| self.block(block)).collect(),
                extra: self.extra(&result.extra),
                ..result.clone()
            }
            .into(),
            ContentBlock::ServerToolUse(call) => ServerToolUse {
                id: self.word(&call.id),
                name: self.word(&call.name),
                input: self.json(&call.input),
                extra: self.extra(&call.extra),
            }
            .into(),
            ContentBlock::ServerToolResult(result) => ServerToolResult {
                tool_use_id: self.word(&result.tool_use_id),
                kind: self.text(&result.kind),
                content: self.json(&result.content),
                extra: self.extra(&result.extra),
            }
            .into(),
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::RedactedThinking(_)
            | ContentBlock::SystemReminder(_)
            | ContentBlock::ContextUpdate(_)
            | ContentBlock::Checkpoint(_)
            | ContentBlock::Summary(_)
            | ContentBlock::Opaque(_) => block.clone(),
        }
    }

    fn input(&self, input: &ToolInput) -> ToolInput {
        match input {
            ToolInput::Json(input) => ToolInput::Json(self.json(input)),
            ToolInput::Text(input) => ToolInput::Text(self.text(input)),
        }
    }

    fn thought(&self, thought: &Thinking) -> Thinking {
        let text = self.text(&thought.text);
        let signature = thought.signature.clone().filter(|_| text == thought.text);
        Thinking { text, signature, extra: self.extra(&thought.extra) }
    }

    fn summary(&self, summary: &Summary) -> Summary {
        let mut batches = summary.batches.clone();
        for batch in &mut batches {
            batch.text = self.text(&batch.text);
        }
        let (text, extra) = (self.text(&summary.text), self.extra(&summary.extra));
        Summary { text, batches, extra, ..summary.clone() }
    }

    fn source(&self, source: &MediaSource) -> MediaSource {
        match source {
            MediaSource::Base64 { media_type, data } => {
                MediaSource::Base64 { media_type: self.text(media_type), data: data.clone() }
            }
            MediaSource::Url { url } => MediaSource::Url { url: self.text(url) },
            MediaSource::File { id } => MediaSource::File { id: self.text(id) },
            MediaSource::Text { media_type, text } => {
                MediaSource::Text { media_type: self.text(media_type), text: self.text(text) }
            }
            MediaSource::Opaque { codec, value } => {
                MediaSource::Opaque { codec: codec.clone(), value: self.json(value) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Batch, BatchId, Role};

    #[derive(Debug)]
    struct Secret;

    impl Redactor for Secret {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            if text.contains("s3cret") { text.replace("s3cret", "*").into() } else { text.into() }
        }
    }

    /// Every kind of block that holds text, with a secret in each.
    fn blocks() -> Vec<ContentBlock> {
        let json = |text: &str| Json::parse(text).unwrap();
        let word = || Text::from("a s3cret b");
        let extra = || Extra::new("codec", [("note", json(r#"["s3cret"]"#))]);
        let url = MediaSource::Url { url: "https://s3cret.example".into() };
        let mut document =
            Document::new(MediaSource::Text { media_type: "text/plain".into(), text: word() });
        (document.title, document.context) = (Some(word()), Some(word()));
        let mut summary = Summary::new(word());
        summary.batches.push(Batch::new(BatchId::default(), word()));
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
            SystemReminder::new(word()).into(),
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
    fn what_holds_no_secret_is_what_it_was_signed_and_byte_for_byte() {
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
    fn json_that_nests_too_deep_to_be_read_does_not_leave() {
        let deep = format!("{{\"a\":{}\"s3cret\"{}}}", "[".repeat(200), "]".repeat(200));
        let call = ToolUse::new("t1", "read", Json::parse(&deep).unwrap_or_default());
        let message = Message::new(Role::Assistant, vec![call.into()]);
        let text = serde_json::to_string(&message.redacted(&Secret)).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
    }
}
