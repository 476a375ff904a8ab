//! The tool of the simulated agent.

use std::sync::Arc;

use serde_json::{Value, json};
use threadfold::{
    ContentBlock, async_trait,
    message::{Image, MediaSource, ToolSpec, ToolUse},
    model::{Tool, ToolContext, ToolOutput},
};

use threadfold_testing::shared::simulation::Numbers;

/// Returns a result of the requested size, an error, nothing, or a picture.
#[derive(Debug)]
pub(super) struct Write(pub(super) Arc<Numbers>);

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("write", "Writes.", json!({"type": "object"}))
    }

    async fn call(
        &self,
        call: &ToolUse,
        _: &ToolContext<'_>,
    ) -> Result<ToolOutput, Box<dyn std::error::Error + Send + Sync>> {
        let input: Value = call.input.json()?.to_value()?;
        self.0.nap().await;
        let size = input.get("size").and_then(Value::as_u64).ok_or("how much?")?;
        let mut output = ToolOutput::from("a line of it\n".repeat(size as usize / 13));
        match self.0.below(40) {
            0 => return Err("it failed".into()),
            1 => output.content.clear(),
            2 => output.content.push(ContentBlock::text(" ")),
            3 => {
                let (media_type, data) = ("image/png".into(), "iVBORw0KGgo=".into());
                let source = MediaSource::Base64 { media_type, data };
                output.content.push(ContentBlock::Image(Image::new(source)));
            }
            _ => {}
        }
        Ok(output)
    }
}
