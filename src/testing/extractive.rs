//! A model that summarises offline, by extraction.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::{
    extract::Findings,
    scripted::{Answer, deltas, estimated, turn_of},
};
use crate::{
    message::{ContentBlock, Delta, Message, ModelError, Opaque, Request, Role, ToolUse, Turn},
    model::{self, Model},
    render::read_back,
    tokens,
};

/// Answers a request for a summary with the most informative sentences, paths, commands and errors
/// of the messages. Deterministic and offline, so that examples and tests get real summaries.
///
/// The last message is regarded as the question and not summarised. The answer has at most a
/// quarter of the bytes of the other messages (but up to 120 in any case), and at most three bytes
/// per token of [`Request::max_output`]. Asked to compact [natively](Model::compact_natively), it
/// summarises all messages in an opaque block of its own. If the request has the tool `edl`, as
/// those of a [`CompactionRun`](crate::strategy::CompactionRun), it edits `/summary.md` instead.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Request, model::Model, testing::ExtractiveModel};
///
/// let request = Request::new(vec![
///     Message::user("Fix src/parser.rs. Never touch the lexer, whatever happens to it."),
///     Message::assistant("I read src/parser.rs and found that it parses nothing at all yet."),
///     Message::user("Sum it up."),
/// ]);
/// let turn = block_on(ExtractiveModel.complete(request))?;
/// assert!(turn.text().contains("Never touch the lexer"), "{}", turn.text());
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveModel;

/// Lower bound for the size limit of a summary, in bytes.
const MIN: usize = 120;

impl ExtractiveModel {
    fn answer(request: &Request) -> Turn {
        let edits = request.tools.iter().any(|tool| tool.name == "edl");
        let old = request.messages.split_last().map_or(&[][..], |(_, old)| old);
        let message =
            if edits { edit(request) } else { Message::assistant(sum_up(old, request.max_output)) };
        estimated(request, turn_of(message))
    }
}

/// The summary of these messages.
fn sum_up(old: &[Message], most: Option<u64>) -> String {
    let bytes = usize::try_from(tokens::text_bytes(old)).unwrap_or(usize::MAX);
    let most = most.and_then(|tokens| usize::try_from(tokens).ok());
    let most = most.unwrap_or(2_000).saturating_mul(3);
    write(Findings::of(old), most.min((bytes / 4).max(MIN)))
}

/// An edit of `/summary.md` for the chunk of a transcript in the first message; plain text once the
/// results of the edit have arrived.
fn edit(request: &Request) -> Message {
    if request.messages.iter().any(|message| message.tool_results().next().is_some()) {
        return Message::assistant("Done.");
    }
    let prompt = request.messages.first().and_then(|message| message.content.first());
    let prompt = prompt.and_then(ContentBlock::as_text).map_or("", |text| text.as_str());
    let chunk = prompt.split_once("\nThe new chunk:\n").map_or(prompt, |(_, chunk)| chunk);
    let number = prompt.split_once("chunk ").and_then(|(_, rest)| rest.split_once(' '));
    let number = number.map_or("", |(number, _)| number);
    let most = (chunk.len() / 8).clamp(MIN, 4_000);
    let body = write(Findings::of(&read_back::messages(chunk)), most).replace("## ", "### ");
    // No line of the body can end the heredoc: each begins with a Markdown mark or is blank.
    let script = format!(
        "file /summary.md\nselect eof\ninsert_after <<PART\n## Part {number}\n\n{body}\n\nPART\n"
    );
    let input = serde_json::json!({ "script": script });
    let call = ToolUse::new(format!("edit_{number}"), "edl", input);
    Message::new(Role::Assistant, vec![ContentBlock::text("DONE"), call.into()])
}

#[async_trait]
impl Model for ExtractiveModel {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
    }

    async fn compact_natively(&self, request: Request) -> Result<Option<Turn>, ModelError> {
        let text = sum_up(&request.messages, request.max_output);
        let value = serde_json::json!({"type": "compaction", "content": text});
        let message = Message::new(Role::Assistant, vec![Opaque::new("extractive", value).into()]);
        Ok(Some(estimated(&request, turn_of(message))))
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = stream::once(async move { Answer::from(Self::answer(&request)) });
        answer.map(|answer| stream::iter(deltas(answer))).flatten().boxed()
    }
}

/// Writes the findings as sections in at most `most` bytes. The sections take turns, so that a long
/// list does not displace another.
fn write(findings: Findings, most: usize) -> String {
    let (files, statements) = (findings.files().take(16).collect(), findings.statements());
    let mut sections = [
        ("Earlier", findings.earlier),
        ("Request", ends(findings.requests.items, 8)),
        ("Rules", findings.rules.items),
        ("Files", files),
        ("Commands", ends(findings.commands.items, 12)),
        ("Errors", ends(findings.errors.items, 12)),
        ("State", statements),
    ]
    .map(|(name, items)| Section { name, waiting: items.into(), lines: Vec::new() });
    let mut left = most;
    loop {
        let mut progress = false;
        for section in &mut sections {
            progress |= section.add_next(&mut left);
        }
        if !progress {
            break;
        }
    }
    let filled = sections.iter().filter(|section| !section.lines.is_empty());
    let texts =
        filled.map(|section| format!("## {}\n\n{}", section.name, section.lines.join("\n")));
    let text = texts.collect::<Vec<_>>().join("\n\n");
    if text.is_empty() { "Nothing of note was said.".to_owned() } else { text }
}

struct Section {
    name: &'static str,
    waiting: VecDeque<String>,
    lines: Vec<String>,
}

impl Section {
    /// Moves the next item to the lines if it fits the remaining bytes, else drops all items that
    /// do not fit. Returns whether the section moved an item or has one left.
    fn add_next(&mut self, left: &mut usize) -> bool {
        let frame = 3 + if self.lines.is_empty() { self.name.len() + 6 } else { 0 };
        let Some(item) = self.waiting.front() else { return false };
        if let Some(rest) = left.checked_sub(item.len() + frame) {
            *left = rest;
            self.lines.extend(self.waiting.pop_front().map(|item| format!("- {item}")));
            return true;
        }
        let room = left.saturating_sub(frame);
        self.waiting.retain(|item| item.len() <= room);
        !self.waiting.is_empty()
    }
}

/// At most `most` items of a list, from both ends: the first, the last, the second, and so on. The
/// middle usually matters least.
fn ends(items: Vec<String>, most: usize) -> Vec<String> {
    let mut items = VecDeque::from(items);
    let mut from_both = Vec::with_capacity(most);
    while let Some(first) = items.pop_front().filter(|_| from_both.len() < most) {
        from_both.push(first);
        from_both.extend(items.pop_back());
    }
    from_both.truncate(most);
    from_both
}
