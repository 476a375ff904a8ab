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
    message::{Delta, Message, ModelError, Request, StopReason, Turn, Usage},
    model::{self, Model},
    tokens::{self, ByteEstimate, TokenCounter},
};

/// Answers a request for a summary with the most telling sentences, paths, commands and errors of
/// the messages before it. Deterministic and offline, so that examples do real work and tests
/// have real summaries.
///
/// The last message is taken for the question. The answer has at most a quarter of the bytes that
/// were asked about, and at most three for each token of [`Request::max_output`].
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
const LEAST: usize = 120;

impl ExtractiveModel {
    fn answer(request: &Request) -> Turn {
        let (_, old) = request.messages.split_last().unzip();
        let old: &[Message] = old.unwrap_or_default();
        let asked = usize::try_from(tokens::text_bytes(old)).unwrap_or(usize::MAX);
        let most = request.max_output.and_then(|tokens| usize::try_from(tokens).ok());
        let most = most.unwrap_or(2_000).saturating_mul(3);
        let text = write(Facts::of(old), most.min((asked / 4).max(LEAST)));
        let message = Message::assistant(text);
        let counter = ByteEstimate::TRIGGER;
        let usage = Usage::new(counter.request(request), counter.message(&message));
        Turn::new(message, StopReason::EndTurn, Some(usage))
    }
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
                // What does not fit now never will; the next item may be shorter.
                items.remove(*count);
                progress = true;
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
