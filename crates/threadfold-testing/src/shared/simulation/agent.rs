//! The agent of a simulation: what its model says, and its tool.

use async_trait::async_trait;
use futures::FutureExt;
use serde_json::{Value, json};
use threadfold::{
    ContentBlock, Message, Model, Request,
    message::{ToolResult, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
    testing::ExtractiveModel,
};

use super::numbers::Numbers;
use crate::rulebook::{Part, Said};

/// An answer of the agent: mostly with reasoning, often with calls. Results have up to the first
/// number of bytes, and one in thirty calls up to the second.
pub fn worked(numbers: &Numbers, number: u64, sizes: [u64; 2], always_reasons: bool) -> Said {
    let [usual, large] = sizes;
    let mut parts = vec![Part::Text(format!("[answer {number}] {}", numbers.words(8)))];
    let calls = numbers.below(3);
    parts.extend((0..calls).map(|call| {
        let size = numbers.below(if numbers.once_in(30) { large } else { usual });
        let path = format!("src/part_{number}_{call}.rs");
        Part::Call { name: "read".into(), input: json!({"path": path, "size": size}) }
    }));
    let said = Said { parts };
    if !always_reasons && numbers.once_in(4) {
        return said;
    }
    said.after(format!("Thought {number} about it."))
}

/// A summary, or the edits of one, as an offline model writes them.
pub fn extracted(request: &Request) -> Said {
    let answer = ExtractiveModel.complete(request.clone()).now_or_never();
    let Some(Ok(answer)) = answer else { return Said::text("They worked.") };
    let parts = answer.message.content.iter().filter_map(|block| {
        if let ContentBlock::ToolUse(call) = block {
            let input = call.input.json().ok()?.to_value().ok()?;
            return Some(Part::Call { name: call.name.to_string(), input });
        }
        block.as_text().map(|text| Part::Text(text.to_string()))
    });
    Said { parts: parts.collect() }
}

/// The agent's tool: results of any size.
#[derive(Debug)]
pub struct Read;

impl Read {
    /// The results of the calls of an answer.
    pub fn results(answer: &Message) -> Vec<ContentBlock> {
        let results = answer.tool_uses().map(|call| {
            let text = Self::result(call).unwrap_or_else(|error| error.to_string());
            ToolResult::text(call.id.clone(), text).into()
        });
        results.collect()
    }

    /// The result of a call; an error if its input names no file or no size.
    fn result(call: &ToolUse) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let input: Value = call.input.json()?.to_value()?;
        let path = input.get("path").and_then(Value::as_str).ok_or("which file?")?;
        let size = input.get("size").and_then(Value::as_u64).ok_or("how much?")?;
        Ok((1..=size / 40 + 1).map(|line| format!("fn of_{line}() {{}} // in {path}\n")).collect())
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {
            "path": {"type": "string"}, "size": {"type": "integer"}}});
        ToolSpec::new("read", "Reads a file.", schema)
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        Ok(ToolOutput::from(Self::result(call)?))
    }
}
