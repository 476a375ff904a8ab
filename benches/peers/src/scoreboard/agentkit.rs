//! `agentkit-compaction`: the newest items, with a summary of the others or without.

use agentkit_compaction::{
    CompactionBackend, CompactionContext, CompactionError, CompactionReason, CompactionRequest,
    CompactionStrategy, KeepRecentStrategy, SummarizeOlderStrategy, SummaryRequest, SummaryResult,
};
use agentkit_core::{
    Item, ItemKind, Part, ToolCallPart, ToolOutput, ToolResultPart, TurnCancellation,
};
use futures::executor::block_on;
use threadfold::{ContentBlock, Message, Role, async_trait};

use yardstick::thread;

use super::case::{Case, Compacted, back, largest, summary};

/// Summarises the items.
#[derive(Debug)]
struct Extracts;

pub(super) fn summarise(case: &Case, target: u64) -> Option<Compacted> {
    by(case, target, |keep| Box::new(SummarizeOlderStrategy::new(keep)))
}

pub(super) fn keep_recent(case: &Case, target: u64) -> Option<Compacted> {
    by(case, target, |keep| Box::new(KeepRecentStrategy::new(keep)))
}

fn by(
    case: &Case,
    target: u64,
    strategy: impl Fn(usize) -> Box<dyn CompactionStrategy>,
) -> Option<Compacted> {
    let given: Vec<Item> = case.past().iter().map(item).collect();
    largest(given.len(), target, |keep| {
        let request = CompactionRequest::new(given.clone(), CompactionReason::Manual);
        let mut context = CompactionContext::new().with_backend(&Extracts);
        let done = block_on(strategy(keep).apply(request, &mut context)).ok()?;
        Some(back(case.past(), &given, &done.transcript, text))
    })
}

fn item(message: &Message) -> Item {
    let is_result = message.tool_results().next().is_some();
    let kind = match message.role {
        Role::Assistant => ItemKind::Assistant,
        Role::System => ItemKind::System,
        Role::User if is_result => ItemKind::Tool,
        Role::User => ItemKind::User,
    };
    Item::new(kind, message.content.iter().filter_map(part).collect())
}

fn part(block: &ContentBlock) -> Option<Part> {
    Some(match block {
        ContentBlock::ToolUse(call) => {
            let input = serde_json::from_str(call.input.as_str()).unwrap_or_default();
            Part::ToolCall(ToolCallPart::new(call.id.as_str(), call.name.as_str(), input))
        }
        ContentBlock::ToolResult(result) => {
            let text = result.content.iter().flat_map(thread::texts).collect::<String>();
            let output = ToolOutput::Text(text);
            Part::ToolResult(ToolResultPart::success(result.tool_use_id.as_str(), output))
        }
        _ => Part::text(thread::texts(block).into_iter().next()?),
    })
}

fn text(item: &Item) -> String {
    let texts = item.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        Part::ToolResult(ToolResultPart { output: ToolOutput::Text(text), .. }) => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[async_trait]
impl CompactionBackend for Extracts {
    async fn summarize(
        &self,
        request: SummaryRequest,
        _: Option<TurnCancellation>,
    ) -> Result<SummaryResult, CompactionError> {
        let old = request.items.iter().map(|item| match item.kind {
            ItemKind::Assistant => Message::assistant(text(item)),
            _ => Message::user(text(item)),
        });
        let summary = summary(old.collect());
        Ok(SummaryResult::new(vec![Item::new(ItemKind::User, vec![Part::text(summary)])]))
    }
}
