//! Taking out of a message what must not leave the thread.
//!
//! Every text of a message is looked at, in calls, results and unknown wire fields too, and the
//! blocks stay where they are: a plan that was made for what is left fits the message itself.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::{
    compaction::CompactionReason,
    content::{
        ContentBlock, ContextUpdate, Opaque, Summary, SystemReminder, TextBlock, Thinking,
        ToolResult,
    },
    extra::Extra,
    json::Json,
    media::{Document, Image, MediaSource},
    message::Message,
    steps,
    text::Text,
    tool::{ServerToolResult, ServerToolUse, ToolInput, ToolUse},
};

/// Takes out of a text what must not leave the thread: keys, names, addresses.
///
/// What a compaction hands on passes it: the requests to a model that sums up, what goes to the
/// archive, summaries, notices and errors. The thread itself, its log and the conversation with its
/// own model are not changed.
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
        let blocks = self.content.iter().map(|block| redacted_block(block, redactor));
        let mut redacted = self.with_content(blocks.collect());
        redacted.change(|parts| parts.extra = redacted_extra(&self.extra, redactor));
        redacted
    }
}

impl CompactionReason {
    /// Returns the reason without what the redactor takes out of its focus.
    pub(crate) fn redacted(&self, redactor: &dyn Redactor) -> Self {
        let Self::Manual { focus: Some(focus) } = self else { return self.clone() };
        Self::Manual { focus: Some(redacted_text(focus, redactor)) }
    }
}

/// Returns the text without what the redactor takes out; the same handle where nothing goes.
pub(crate) fn redacted_text(text: &Text, redactor: &dyn Redactor) -> Text {
    match redactor.redact(steps::through(text)) {
        same if *same == **text => text.clone(),
        other => other.into_owned().into(),
    }
}

fn redacted_block(block: &ContentBlock, redactor: &dyn Redactor) -> ContentBlock {
    let text = |text: &Text| redacted_text(text, redactor);
    let json = |json: &Json| redacted_json(json, redactor);
    let extra = |extra: &Extra| redacted_extra(extra, redactor);
    let source = |source: &MediaSource| redacted_source(source, redactor);
    match block {
        ContentBlock::Text(block) => {
            TextBlock { text: text(&block.text), extra: extra(&block.extra) }.into()
        }
        ContentBlock::Image(image) => {
            Image { source: source(&image.source), extra: extra(&image.extra) }.into()
        }
        ContentBlock::Document(document) => {
            let (title, context) = (document.title.as_ref(), document.context.as_ref());
            let (title, context) = (title.map(text), context.map(text));
            let (source, extra) = (source(&document.source), extra(&document.extra));
            Document { source, title, context, extra }.into()
        }
        ContentBlock::Thinking(thought) => redacted_thought(thought, redactor).into(),
        ContentBlock::ToolUse(call) => {
            let input = redacted_input(&call.input, redactor);
            ToolUse { input, extra: extra(&call.extra), ..call.clone() }.into()
        }
        ContentBlock::ToolResult(result) => {
            let content = result.content.iter().map(|block| redacted_block(block, redactor));
            let content = content.collect();
            ToolResult { content, extra: extra(&result.extra), ..result.clone() }.into()
        }
        ContentBlock::ServerToolUse(call) => {
            let input = json(&call.input);
            ServerToolUse { input, extra: extra(&call.extra), ..call.clone() }.into()
        }
        ContentBlock::ServerToolResult(result) => {
            let content = json(&result.content);
            ServerToolResult { content, extra: extra(&result.extra), ..result.clone() }.into()
        }
        ContentBlock::SystemReminder(block) => {
            SystemReminder { text: text(&block.text), extra: extra(&block.extra) }.into()
        }
        ContentBlock::ContextUpdate(update) => ContextUpdate {
            paths: update.paths.iter().map(text).collect(),
            text: text(&update.text),
            extra: extra(&update.extra),
        }
        .into(),
        ContentBlock::Summary(summary) => redacted_summary(summary, redactor).into(),
        ContentBlock::Opaque(opaque) => {
            Opaque { value: json(&opaque.value), ..opaque.clone() }.into()
        }
        ContentBlock::RedactedThinking(_) | ContentBlock::Checkpoint(_) => block.clone(),
    }
}

fn redacted_input(input: &ToolInput, redactor: &dyn Redactor) -> ToolInput {
    match input {
        ToolInput::Json(input) => ToolInput::Json(redacted_json(input, redactor)),
        ToolInput::Text(input) => ToolInput::Text(redacted_text(input, redactor)),
    }
}

fn redacted_thought(thought: &Thinking, redactor: &dyn Redactor) -> Thinking {
    let text = redacted_text(&thought.text, redactor);
    let signature = thought.signature.clone().filter(|_| text == thought.text);
    Thinking { text, signature, extra: redacted_extra(&thought.extra, redactor) }
}

fn redacted_summary(summary: &Summary, redactor: &dyn Redactor) -> Summary {
    let mut batches = summary.batches.clone();
    for batch in &mut batches {
        batch.text = redacted_text(&batch.text, redactor);
    }
    Summary {
        text: redacted_text(&summary.text, redactor),
        batches,
        extra: redacted_extra(&summary.extra, redactor),
        ..summary.clone()
    }
}

fn redacted_source(source: &MediaSource, redactor: &dyn Redactor) -> MediaSource {
    match source {
        MediaSource::Url { url } => MediaSource::Url { url: redacted_text(url, redactor) },
        MediaSource::Text { media_type, text } => MediaSource::Text {
            media_type: media_type.clone(),
            text: redacted_text(text, redactor),
        },
        MediaSource::Opaque { codec, value } => {
            MediaSource::Opaque { codec: codec.clone(), value: redacted_json(value, redactor) }
        }
        MediaSource::Base64 { .. } | MediaSource::File { .. } => source.clone(),
    }
}

fn redacted_extra(extra: &Extra, redactor: &dyn Redactor) -> Extra {
    let Some(codec) = extra.codec() else { return Extra::default() };
    let fields = extra.fields().map(|(key, json)| (key, redacted_json(json, redactor)));
    Extra::new(codec, fields)
}

/// Looks at the texts in a JSON value as they are read, so that no escape hides what they hold.
fn redacted_json(json: &Json, redactor: &dyn Redactor) -> Json {
    // What nests too deep to be looked at does not leave at all.
    let Ok(mut value) = json.to_value() else { return Json::default() };
    if redact_value(&mut value, redactor) { Json::from(value) } else { json.clone() }
}

/// Returns whether anything was taken out. The depth is that of JSON that was read, at most 128.
fn redact_value(value: &mut Value, redactor: &dyn Redactor) -> bool {
    let redact = |text: &mut String| {
        let left = redactor.redact(steps::through(text));
        let changed = *left != **text;
        if changed {
            *text = left.into_owned();
        }
        changed
    };
    match value {
        Value::String(text) => redact(text),
        Value::Array(items) => {
            items.iter_mut().fold(false, |changed, item| redact_value(item, redactor) | changed)
        }
        Value::Object(fields) => {
            let mut changed = false;
            let old = std::mem::take(fields);
            for (mut key, mut value) in old {
                changed |= redact(&mut key) | redact_value(&mut value, redactor);
                fields.insert(key, value);
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Batch, BatchId, RedactedThinking, Role};

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
