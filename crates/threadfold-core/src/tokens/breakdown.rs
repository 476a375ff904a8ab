//! How the tokens of a request are distributed over its parts.

use std::{collections::HashMap, fmt};

use serde::Serialize;

use super::counter::TokenCounter;
use crate::message::{ContentBlock, Message, Request, Role, Text};

/// One part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BreakdownPart {
    /// The kind of the part.
    pub kind: PartKind,
    /// The name of the tool; `None` for all other parts.
    pub tool: Option<Text>,
    /// The number of its blocks; for [`PartKind::Framing`], of messages.
    pub count: usize,
    /// Its tokens.
    pub tokens: u64,
}

/// The kind of a part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartKind {
    /// The system prompt.
    System,
    /// The description of a tool.
    Tool,
    /// Text, images and documents that the user typed or attached.
    Typed,
    /// User messages that were not typed, reminders and context updates.
    Host,
    /// The texts of answers.
    Answer,
    /// Reasoning.
    Reasoning,
    /// Calls of a tool.
    ToolCall,
    /// Results of a tool.
    ToolResult,
    /// Summaries.
    Summary,
    /// Images and documents.
    Media,
    /// Checkpoints and opaque blocks.
    Other,
    /// The framing of each message, in addition to its blocks.
    Framing,
}

type Key = (PartKind, Option<Text>);

/// The tokens of each part while they are counted.
#[derive(Default)]
struct Parts(HashMap<Key, (usize, u64)>);

impl Parts {
    fn add(&mut self, kind: PartKind, tool: Option<&Text>, tokens: u64) {
        let part = self.0.entry((kind, tool.cloned())).or_default();
        *part = (part.0 + 1, part.1.saturating_add(tokens));
    }
}

/// Returns the parts of a request with their tokens, in the order of [`PartKind`], and the largest
/// first within a kind. Parts without tokens are left out. The tokens add up to the count of the
/// whole request. Each block is read once.
///
/// ```
/// use threadfold::{Message, Request, TokenCounter, tokens::{ByteEstimate, PartKind, breakdown}};
///
/// let request = Request::new(vec![Message::user("Where is it?"), Message::assistant("Here.")]);
/// let parts = breakdown(&request.with_system("Be brief."), &ByteEstimate::TRIGGER);
/// let kinds: Vec<_> = parts.iter().map(|part| (part.kind, part.tokens)).collect();
/// let expected = [
///     (PartKind::System, 3),
///     (PartKind::Typed, 4),
///     (PartKind::Answer, 2),
///     (PartKind::Framing, 12),
/// ];
/// assert_eq!(kinds, expected);
/// ```
#[must_use]
pub fn breakdown(request: &Request, counter: &dyn TokenCounter) -> Vec<BreakdownPart> {
    let mut parts = Parts::default();
    for tool in request.tools.iter() {
        let tokens = counter.tools(std::slice::from_ref(tool));
        parts.add(PartKind::Tool, Some(&tool.name), tokens);
    }
    let messages = request.system.iter().chain(request.messages.iter());
    let calls = messages.clone().flat_map(|message| message.tool_uses());
    let names: HashMap<&Text, &Text> = calls.map(|call| (&call.id, &call.name)).collect();
    for message in messages {
        let blocks = message.content.iter().map(|block| {
            let tokens = counter.block(block);
            count_block(&mut parts, message, block, tokens, &names, counter);
            tokens
        });
        let blocks = blocks.fold(0, u64::saturating_add);
        let framing = counter.message(message).saturating_sub(blocks);
        parts.add(PartKind::Framing, None, framing);
    }
    let parts = parts.0.into_iter().filter(|(_, (_, tokens))| *tokens > 0);
    let mut parts: Vec<BreakdownPart> = parts
        .map(|((kind, tool), (count, tokens))| BreakdownPart { kind, tool, count, tokens })
        .collect();
    parts.sort_by(|one, other| {
        let (kind, tokens) = (one.kind.cmp(&other.kind), other.tokens.cmp(&one.tokens));
        kind.then(tokens).then_with(|| one.tool.cmp(&other.tool))
    });
    // A counter may count a message differently from the sum of its blocks.
    scaled_to(parts, counter.request(request))
}

/// Scales the tokens of the parts, in the same proportions, so that they add up to `total`, such as
/// the count of a provider. An empty list stays empty.
///
/// ```
/// use threadfold::{Message, Request, tokens::{self, ByteEstimate}};
///
/// let request = Request::new(vec![Message::user("Where is it?")]);
/// let parts = tokens::breakdown(&request, &ByteEstimate::TRIGGER);
/// let scaled = tokens::scaled_to(parts, 1_001);
/// assert_eq!(scaled.iter().map(|part| part.tokens).sum::<u64>(), 1_001);
/// ```
#[must_use]
pub fn scaled_to(mut parts: Vec<BreakdownPart>, total: u64) -> Vec<BreakdownPart> {
    let sum: u128 = parts.iter().map(|part| u128::from(part.tokens)).sum();
    if sum == 0 || sum == u128::from(total) {
        return parts;
    }
    let mut remainders = Vec::with_capacity(parts.len());
    let mut rest = total;
    for (index, part) in parts.iter_mut().enumerate() {
        let share = u128::from(part.tokens) * u128::from(total);
        part.tokens = u64::try_from(share / sum).unwrap_or(total);
        rest = rest.saturating_sub(part.tokens);
        remainders.push((share % sum, index));
    }
    // The rest is less than one token per part. It goes to the parts with the largest remainders.
    remainders.sort_unstable_by(|one, other| other.cmp(one));
    let rest = usize::try_from(rest).unwrap_or(usize::MAX);
    for (_, index) in remainders.into_iter().take(rest) {
        if let Some(part) = parts.get_mut(index) {
            part.tokens += 1;
        }
    }
    parts
}

fn count_block(
    parts: &mut Parts,
    message: &Message,
    block: &ContentBlock,
    tokens: u64,
    names: &HashMap<&Text, &Text>,
    counter: &dyn TokenCounter,
) {
    let (kind, tool) = match block {
        ContentBlock::Text(_) => (text_kind(message), None),
        ContentBlock::Image(_) | ContentBlock::Document(_) => (PartKind::Media, None),
        ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => {
            (PartKind::Reasoning, None)
        }
        ContentBlock::ToolUse(call) => (PartKind::ToolCall, Some(&call.name)),
        ContentBlock::ServerToolUse(call) => (PartKind::ToolCall, Some(&call.name)),
        ContentBlock::ToolResult(result) => {
            let media = result.content.iter().filter(|block| is_media(block));
            let media: Vec<u64> = media.map(|block| counter.block(block)).collect();
            media.iter().for_each(|tokens| parts.add(PartKind::Media, None, *tokens));
            let media = media.into_iter().fold(0, u64::saturating_add);
            let name = names.get(&result.tool_use_id).copied();
            return parts.add(PartKind::ToolResult, name, tokens.saturating_sub(media));
        }
        ContentBlock::ServerToolResult(result) => (PartKind::ToolResult, Some(&result.kind)),
        ContentBlock::SystemReminder(_) | ContentBlock::ContextUpdate(_) => (PartKind::Host, None),
        ContentBlock::Summary(_) => (PartKind::Summary, None),
        ContentBlock::Checkpoint(_) | ContentBlock::Opaque(_) => (PartKind::Other, None),
    };
    parts.add(kind, tool, tokens);
}

fn is_media(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Document(_))
}

fn text_kind(message: &Message) -> PartKind {
    match message.role {
        Role::System => PartKind::System,
        Role::Assistant => PartKind::Answer,
        Role::User if message.untyped => PartKind::Host,
        Role::User => PartKind::Typed,
    }
}

/// Writes a line for the part: its tokens, its name and its count.
impl fmt::Display for BreakdownPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
        write!(f, "{:>9}  {}{tool} ({})", self.tokens, self.kind.label(), self.count)
    }
}

impl PartKind {
    /// The name of the kind as displayed to people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::System => "system prompt",
            Self::Tool => "tool",
            Self::Typed => "typed text",
            Self::Host => "host text",
            Self::Answer => "answers",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "calls of",
            Self::ToolResult => "results of",
            Self::Summary => "summaries",
            Self::Media => "media",
            Self::Other => "marks and opaque blocks",
            Self::Framing => "messages",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Image, MediaSource, Summary, Thinking, ToolResult, ToolSpec, ToolUse},
        tokens::ByteEstimate,
    };

    /// A counter whose count of a message is not the sum of its blocks.
    #[derive(Debug)]
    struct Odd;

    impl TokenCounter for Odd {
        fn text(&self, text: &str) -> u64 {
            text.len() as u64
        }

        fn message(&self, _: &Message) -> u64 {
            7
        }
    }

    fn request() -> Request {
        let call = |id: &str, name: &str| ToolUse::new(id, name, serde_json::json!({})).into();
        let url = MediaSource::Url { url: "https://example.org/cat.png".into() };
        let picture =
            ToolResult::new("b", vec![ContentBlock::text("a cat"), Image::new(url).into()]);
        let messages = vec![
            Message::summary(Role::User, Summary::new("They talked.")),
            Message::user("Read both."),
            Message::new(
                Role::Assistant,
                vec![Thinking::new("Hm.", None).into(), call("a", "read"), call("b", "look")],
            ),
            Message::new(
                Role::User,
                vec![ToolResult::text("a", "x".repeat(300)).into(), picture.into()],
            ),
            Message::assistant("Done."),
        ];
        let spec = ToolSpec::new("read", "Reads.", serde_json::json!({}));
        Request { tools: vec![spec].into(), ..Request::new(messages).with_system("Be brief.") }
    }

    fn sum(parts: &[BreakdownPart]) -> u64 {
        parts.iter().map(|part| part.tokens).sum()
    }

    #[test]
    fn the_parts_of_a_request_add_up_to_its_count() {
        for counter in [&ByteEstimate::TRIGGER as &dyn TokenCounter, &ByteEstimate::CHUNK, &Odd] {
            let parts = breakdown(&request(), counter);
            assert_eq!(sum(&parts), counter.request(&request()), "{parts:?}");
            for total in [0, 1, 7, 1_000, u64::MAX] {
                assert_eq!(sum(&scaled_to(parts.clone(), total)), total);
            }
        }
    }

    #[test]
    fn calls_and_results_are_listed_by_tool_and_media_by_themselves() {
        let parts = breakdown(&request(), &ByteEstimate::TRIGGER);
        let names = parts.iter().map(|part| (part.kind, part.tool.as_deref()));
        let expected = [
            (PartKind::System, None),
            (PartKind::Tool, Some("read")),
            (PartKind::Typed, None),
            (PartKind::Answer, None),
            (PartKind::Reasoning, None),
            (PartKind::ToolCall, Some("look")),
            (PartKind::ToolCall, Some("read")),
            (PartKind::ToolResult, Some("read")),
            (PartKind::ToolResult, Some("look")),
            (PartKind::Summary, None),
            (PartKind::Media, None),
            (PartKind::Framing, None),
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        let lines: Vec<String> = parts.iter().map(ToString::to_string).collect();
        assert!(lines.iter().any(|line| line.ends_with("  results of read (1)")), "{lines:?}");
    }

    #[test]
    fn an_empty_request_has_no_parts() {
        let parts = breakdown(&Request::default(), &ByteEstimate::TRIGGER);
        assert_eq!((parts.len(), scaled_to(parts, 9)), (0, Vec::new()));
    }
}
