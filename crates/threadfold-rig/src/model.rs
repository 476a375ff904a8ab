//! A completion model of rig that writes summaries.

use rig_core::{
    DynModel,
    completion::CompletionRequest,
    message::{AssistantContent, Message},
    operation::Completion,
};
use threadfold::{
    Answer, Message as Ours, Model, Request, Usage, async_trait,
    message::{ModelError, ModelErrorKind, StopReason},
};

use crate::convert;

/// A completion model of rig as a model of threadfold. It gets texts, and neither tools nor media.
#[derive(Clone, Debug)]
pub(crate) struct Writer(pub(crate) DynModel<Completion>);

#[async_trait]
impl Model for Writer {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let none = std::collections::HashMap::new();
        let messages = request.system.iter().chain(request.messages.iter());
        let messages = messages.filter_map(|message| convert::write(&spoken(message), &none));
        let mut asked = CompletionRequest::from(Message::user(""));
        asked.chat_history = messages.collect();
        asked.max_tokens = request.max_output;
        asked.temperature = request.temperature;
        let answer = self.0.call(asked).await.map_err(|error| {
            // What rig calls an error may be an overflow or a short trouble; its text decides.
            ModelError::new(ModelErrorKind::Other, error.to_string())
        })?;
        let texts = answer.choice.iter().filter_map(|content| match content {
            AssistantContent::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        let usage = match (answer.usage.input_tokens, answer.usage.output_tokens) {
            (Some(input), Some(output)) => Some(Usage::new(input, output)),
            _ => None,
        };
        Ok(Answer::new(Ours::assistant(text), StopReason::EndTurn, usage))
    }
}

/// The message with its calls and results as texts, because the request has no tools.
fn spoken(message: &Ours) -> Ours {
    use threadfold::{ContentBlock, render};
    let has_tools = message.tool_uses().next().is_some() || message.tool_results().next().is_some();
    if !has_tools {
        return message.clone();
    }
    let text = render::render(std::slice::from_ref(message), &render::RenderOptions::default());
    Ours::new(message.role, vec![ContentBlock::text(text.into_text())])
}
