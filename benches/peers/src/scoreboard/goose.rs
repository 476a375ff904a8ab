//! `goose-context-management`: one summary of everything.

use futures::executor::block_on;
use goose_context_management::{CompactionModel, Templates, summarize};
use goose_provider_types::{
    conversation::{
        message::Message as Theirs,
        token_usage::{ProviderUsage, Usage},
    },
    errors::ProviderError,
};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock as Content};
use threadfold::{ContentBlock, Message, Role, async_trait};

use yardstick::thread;

use super::case::{Case, Compacted, size, summary, timed};

/// Answers with the summary of the system prompt, which has the conversation.
#[derive(Debug)]
struct Extracts;

pub(super) fn compact(case: &Case, target: u64) -> Option<Compacted> {
    let given: Vec<Theirs> = case.past().iter().map(converted).collect();
    let done = timed(|| {
        let done = block_on(summarize(&Extracts, None, &Templates::default(), &given)).ok()?;
        Some(vec![Message::user(done.message.as_concat_text())])
    });
    done.filter(|done| size(&done.messages) <= target)
}

fn converted(message: &Message) -> Theirs {
    let mut converted =
        if message.role == Role::Assistant { Theirs::assistant() } else { Theirs::user() };
    for block in &message.content {
        converted = match block {
            ContentBlock::ToolUse(call) => {
                let mut params = CallToolRequestParams::new(call.name.to_string());
                params.arguments = serde_json::from_str(call.input.as_str()).ok();
                converted.with_tool_request(call.id.to_string(), Ok(params))
            }
            ContentBlock::ToolResult(result) => {
                let text: String = result.content.iter().flat_map(thread::texts).collect();
                let result_of = CallToolResult::success(vec![Content::text(text)]);
                converted.with_tool_response(result.tool_use_id.to_string(), Ok(result_of))
            }
            _ => match thread::texts(block).into_iter().next() {
                Some(text) => converted.with_text(text),
                None => converted,
            },
        };
    }
    converted
}

#[async_trait]
impl CompactionModel for Extracts {
    async fn complete(
        &self,
        system: &str,
        _: &[Theirs],
    ) -> Result<(Theirs, ProviderUsage), ProviderError> {
        let answer = Theirs::assistant().with_text(summary(vec![Message::user(system)]));
        Ok((answer, ProviderUsage::new("extracts".to_owned(), Usage::default())))
    }
}
