//! A model that sums up without a model.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::{
    extract::Facts,
    scripted::{Answer, deltas},
};
use crate::{
    message::{
        ContentBlock, Delta, Message, ModelError, Request, Role, StopReason, ToolUse, Turn, Usage,
    },
    model::{self, Model},
    render::read_back,
    tokens::{self, ByteEstimate, TokenCounter},
};

/// Answers a request for a summary with the most telling sentences, paths, commands and errors of
/// the messages before it. Deterministic and offline, so that examples do real work and tests
/// have real summaries.
///
/// The last message is taken for the question. The answer has at most a quarter of the bytes that
/// were asked about, and at most three for each token of [`Request::max_output`]. Asked with the
/// tool `edl`, as a [`CompactionRun`](crate::strategy::CompactionRun) asks, it edits `/summary.md`
/// instead.
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

/// No summary is held to less than this, in bytes.
const MIN: usize = 120;

impl ExtractiveModel {
    fn answer(request: &Request) -> Turn {
        let edits = request.tools.iter().any(|tool| tool.name == "edl");
        let message = if edits { edit(request) } else { Message::assistant(sum_up(request)) };
        let calls = message.tool_uses().next().is_some();
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let counter = ByteEstimate::TRIGGER;
        let usage = Usage::new(counter.request(request), counter.message(&message));
        Turn::new(message, stop_reason, Some(usage))
    }
}

/// The summary of all messages but the last, which asks for it.
fn sum_up(request: &Request) -> String {
    let (_, old) = request.messages.split_last().unzip();
    let old: &[Message] = old.unwrap_or_default();
    let asked = usize::try_from(tokens::text_bytes(old)).unwrap_or(usize::MAX);
    let most = request.max_output.and_then(|tokens| usize::try_from(tokens).ok());
    let most = most.unwrap_or(2_000).saturating_mul(3);
    write(Facts::of(old), most.min((asked / 4).max(MIN)))
}

/// One edit of `/summary.md` for the chunk of a transcript that the first message holds; a word
/// once the results of the edit are there.
fn edit(request: &Request) -> Message {
    if request.messages.iter().any(|message| message.tool_results().next().is_some()) {
        return Message::assistant("Done.");
    }
    let prompt = request.messages.first().and_then(|message| message.content.first());
    let prompt = prompt.and_then(ContentBlock::as_text).map_or("", |text| text.as_str());
    let chunk = prompt.split_once("\nThe new chunk:\n").map_or(prompt, |(_, behind)| behind);
    let number = prompt.split_once("chunk ").and_then(|(_, behind)| behind.split_once(' '));
    let number = number.map_or("", |(number, _)| number);
    let most = (chunk.len() / 8).clamp(MIN, 4_000);
    let body = write(Facts::of(&read_back::messages(chunk)), most).replace("## ", "### ");
    // A line of the body cannot end the text: all of them begin with a mark of Markdown or are
    // blank.
    let script = format!(
        "file /summary.md\nselect eof\ninsert_after <<PART\n## Part {number}\n\n{body}\n\nPART\n"
    );
    let input = serde_json::json!({ "script": script });
    let call = ToolUse::new(format!("edit_{number}"), "edl", input);
    Message::new(Role::Assistant, vec![call.into()])
}

#[async_trait]
impl Model for ExtractiveModel {
    async fn complete(&self, request: Request) -> Result<Turn, ModelError> {
        model::turn_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = stream::once(async move { Answer::from(Self::answer(&request)) });
        answer.map(|answer| stream::iter(deltas(answer))).flatten().boxed()
    }
}

/// Writes the facts as sections within a number of bytes. The sections take turns, so that a long
/// list does not push another out.
fn write(facts: Facts, most: usize) -> String {
    let file = |(path, count, written): (String, usize, bool)| {
        let verb = if written { "changed" } else { "seen" };
        format!("{path} ({verb}, {count}x)")
    };
    let sections = [
        ("Earlier", facts.earlier),
        ("Request", ends(facts.requests, 8)),
        ("Rules", facts.rules),
        ("Files", facts.files.into_iter().take(16).map(file).collect()),
        ("Commands", ends(facts.commands, 12)),
        ("Errors", ends(facts.errors, 12)),
        ("State", facts.statements),
    ];
    let mut taken: Vec<(&str, Vec<String>, usize)> =
        sections.into_iter().map(|(name, items)| (name, items, 0)).collect();
    let mut left = most;
    loop {
        let mut progress = false;
        for (name, items, count) in &mut taken {
            let Some(item) = items.get(*count) else { continue };
            let heading = if *count == 0 { name.len() + 6 } else { 0 };
            let Some(rest) = left.checked_sub(item.len() + 3 + heading) else {
                // What does not fit now never will; a later item may be shorter.
                let room = left.saturating_sub(3 + heading);
                let behind = items.split_off(*count);
                items.extend(behind.into_iter().filter(|item| item.len() <= room));
                progress = items.len() > *count;
                continue;
            };
            left = rest;
            *count += 1;
            progress = true;
        }
        if !progress {
            break;
        }
    }
    let filled = taken.iter().filter(|(_, _, count)| *count > 0);
    let section = |(name, items, count): &(&str, Vec<String>, usize)| {
        let items: Vec<String> =
            items.iter().take(*count).map(|item| format!("- {item}")).collect();
        format!("## {name}\n\n{}", items.join("\n"))
    };
    let text = filled.map(section).collect::<Vec<_>>().join("\n\n");
    if text.is_empty() { "Nothing of note was said.".to_owned() } else { text }
}

/// At most so many items of a list, from both ends: the first, the last, the second, and so on. The
/// middle is what can be missed best.
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
