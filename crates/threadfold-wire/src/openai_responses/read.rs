//! Reading request bodies and answers: from items to messages.

use super::{kinds::Label, marks::*, params, read_content::said_text, read_items::*};
use crate::kit::*;

/// Reads a request body.
pub(super) fn request(mut fields: Fields<'_>, options: &DecodeOptions) -> Result<Request> {
    let mut reader = Reader { recognise: *options, ..Reader::default() };
    reader.context.is_chained = params::CHAINS.iter().any(|(key, _)| fields.value(key).is_some());
    reader.instructions(&mut fields);
    let path = Path::Field(&Path::Body, "input");
    const EXPECTED: &str = "a string or an array of items";
    match fields.take("input") {
        Some(raw) if raw.is_text() => {
            let extra = Extra::default().with(CODEC, mark::INPUT, Json::text("string"));
            reader.said(MessageParts { extra, ..MessageParts::new(Role::User, said_text(raw)) });
        }
        Some(raw) => {
            let items = raw.items().ok_or_else(|| path.mismatch(EXPECTED, raw))?;
            for item in reader.context.read_all(&items, path)? {
                reader.item(item);
            }
        }
        // The body continues something that the provider stored.
        None if reader.context.is_chained || fields.value("prompt").is_some() => {
            fields.add_word(mark::INPUT, "absent");
        }
        None => return Err(path.missing(EXPECTED)),
    }
    Ok(params::read(fields, reader.system, reader.thread))
}

/// The messages read so far.
#[derive(Default)]
struct Reader {
    recognise: DecodeOptions,
    context: Context,
    system: Vec<Message>,
    thread: Vec<Message>,
}

impl Reader {
    fn instructions(&mut self, fields: &mut Fields<'_>) {
        let text = fields.take_as("instructions", |raw| raw.text().filter(|text| !text.is_blank()));
        let Some(text) = text else { return };
        let extra = Extra::default().with(CODEC, mark::AS, Json::text("instructions"));
        let message = MessageParts::new(Role::System, vec![ContentBlock::text(text)]);
        self.system.push(MessageParts { extra, ..message }.into());
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Said(message) => self.said(message),
            Item::Answered(blocks) => self.join(Role::Assistant, blocks),
            Item::Result(block) => self.join(Role::User, vec![block]),
            Item::Kept(block) => self.thread.push(Message::new(Role::User, vec![block])),
        }
    }

    fn said(&mut self, mut message: MessageParts) {
        if message.role == Role::System && self.thread.is_empty() {
            message.extra = message.extra.with(CODEC, mark::AS, Json::text("item"));
            self.system.push(message.into());
            return;
        }
        if message.role == Role::User {
            recognise(CODEC, &mut message.content, self.recognise);
            message.content.iter_mut().for_each(mark_summary);
        }
        self.thread.push(message.into());
    }

    /// Adds items of the model to the last message if that is an answer, and a result if it ends
    /// with one; otherwise begins a message.
    fn join(&mut self, role: Role, blocks: Vec<ContentBlock>) {
        let last = self.thread.last_mut().filter(|last| {
            last.role == role
                && (role == Role::Assistant || last.content.last().is_some_and(is_result))
        });
        match last {
            Some(last) => last.make_mut().content.extend(blocks),
            None => self.thread.push(Message::new(role, blocks)),
        }
    }
}

/// Marks a summary that was read as text: it is no compaction of this thread.
fn mark_summary(block: &mut ContentBlock) {
    if let ContentBlock::Summary(Summary { extra, .. }) = block {
        *extra = extra.with(CODEC, mark::AS, Json::text("text"));
    }
}

/// The response fields that repeat the request. They may be long, and the host has them.
const ECHOES: &str = "background include instructions max_output_tokens max_tool_calls \
    parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning safety_identifier \
    store temperature text tool_choice tools top_logprobs top_p truncation user";

/// Reads a `response` body.
pub(super) fn answer(mut fields: Fields<'_>) -> Result<Answer> {
    let output = fields.take_items("output", Path::Body, "an array of items")?;
    let content = blocks(&output, Path::Field(&Path::Body, "output"))?;
    let stop_reason = stop_reason(&fields, &content);
    let usage = fields.get("usage").and_then(|raw| USAGE.read(raw));
    let origin = Some(Origin::new(CODEC, fields.text("model")));
    // The other fields of the body are kept with the message and never sent back.
    for key in ECHOES.split(' ') {
        fields.take(key);
    }
    let withheld = fields.items("input_transformations").unwrap_or_default();
    let withheld = withheld.into_iter().filter_map(Fields::of).filter_map(withheld_item).collect();
    let extra = Extra::default().with(CODEC, mark::RESPONSE, fields.json());
    let parts = MessageParts { origin, extra, ..MessageParts::new(Role::Assistant, content) };
    let mut answer = Answer::new(parts.into(), stop_reason, usage);
    answer.withheld = withheld;
    Ok(answer)
}

/// Reads an entry of `input_transformations`; `None` for one that is not about reasoning.
fn withheld_item(entry: Fields<'_>) -> Option<Withheld> {
    let is_removal = entry.word("type")? == "reasoning" && entry.word("action")? == "removed";
    let reason = WithheldReason::from(entry.text("reason")?.as_str());
    is_removal.then(|| Withheld { at: entry.text("id").unwrap_or_default(), reason, shown: false })
}

/// Reads the items. Calls that the provider answered in the same response are not for the host.
fn blocks(output: &[Raw<'_>], path: Path<'_>) -> Result<Vec<ContentBlock>> {
    let answers = output.iter().map(|raw| Label::read(*raw)).filter(Label::is_output);
    let mut context = Context::default();
    context.settled = answers.filter_map(|label| label.call_id).collect();
    let items = context.read_all(output, path)?.into_iter().zip(output);
    let blocks = items.flat_map(|(item, raw)| match item {
        Item::Answered(blocks) => blocks,
        Item::Said(_) | Item::Result(_) | Item::Kept(_) => vec![opaque_item(*raw, None)],
    });
    Ok(blocks.collect())
}

/// The stop reason. The dialect has none for waiting on results.
fn stop_reason(body: &Fields<'_>, content: &[ContentBlock]) -> StopReason {
    let reason = body.object("incomplete_details").and_then(|details| details.text("reason"));
    match (body.text_or_empty("status").as_str(), reason.as_deref()) {
        ("completed" | "", _) => messages::ended(CODEC, content),
        ("incomplete", Some("max_output_tokens")) => StopReason::MaxTokens,
        ("incomplete", Some("content_filter")) => StopReason::Refusal,
        ("cancelled", _) => StopReason::Aborted,
        ("incomplete", Some(other)) | (other, _) => StopReason::Other(other.into()),
    }
}

/// The fields of the usage.
pub(super) const USAGE: Counts = Counts {
    input: &["input_tokens"],
    output: &["output_tokens"],
    cache_read: &["input_tokens_details.cached_tokens"],
    cache_write: "input_tokens_details.cache_write_tokens",
    reasoning: "output_tokens_details.reasoning_tokens",
};
