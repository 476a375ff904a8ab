//! A model of rig as a model of threadfold.

use rig_core::{
    DynModel,
    completion::{CompletionRequest, CompletionResponse, FinishReason, ToolDefinition},
    error::ProviderError,
    message::{AssistantContent, ToolName},
    operation::Completion,
};
use threadfold::{
    Answer, ContentBlock, Message, Model, Request, Role, Usage, async_trait,
    auto::Refusal,
    message::StopReason,
    model::{ModelError, ModelErrorKind},
    wire,
};

use crate::from_ours;

/// A completion model of rig, as a model that writes summaries.
///
/// ```
/// use rig_core::test_utils::MockCompletionModel;
/// use threadfold_rig::RigModel;
///
/// let model = RigModel::new(MockCompletionModel::text("They talked."));
/// ```
#[derive(Clone, Debug)]
pub struct RigModel(DynModel<Completion>);

impl RigModel {
    /// Returns the model.
    pub fn new(model: impl Into<DynModel<Completion>>) -> Self {
        Self(model.into())
    }
}

#[async_trait]
impl Model for RigModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        self.0.call(converted(&request)?).await.map(answer).map_err(|error| refusal(&error))
    }
}

fn converted(request: &Request) -> Result<CompletionRequest, ModelError> {
    let mut messages = from_ours::messages(&request.system);
    messages.extend(from_ours::messages(&request.messages));
    let Some(prompt) = messages.pop() else {
        return Err(ModelError::new(ModelErrorKind::Other, "the request has no messages"));
    };
    let tools = request.tools.iter().filter_map(|tool| {
        let name = ToolName::new(tool.name.to_string()).ok()?;
        let schema = tool.input_schema.to_value().ok()?;
        Some(ToolDefinition::new(name, tool.description.to_string(), schema))
    });
    let mut converted = CompletionRequest::new(prompt.clone());
    converted.chat_history = messages;
    converted.chat_history.push(prompt);
    Ok(converted.tools(tools.collect()).max_tokens(request.max_output))
}

fn answer(response: CompletionResponse) -> Answer {
    let blocks = response.choice.iter().filter_map(|content| match content {
        AssistantContent::Text(text) => Some(ContentBlock::text(text.text.as_str())),
        _ => None,
    });
    let message = Message::new(Role::Assistant, blocks.collect());
    let stop = match response.finish_reason() {
        Some(FinishReason::Length) => StopReason::MaxTokens,
        _ => StopReason::EndTurn,
    };
    Answer::new(message, stop, usage(&response.usage))
}

/// The usage of an answer, if the provider reported it.
pub(crate) fn usage(usage: &rig_core::completion::Usage) -> Option<Usage> {
    let input = usage.input_tokens?;
    Some(Usage::new(input, usage.output_tokens.unwrap_or_default()))
}

/// What a failed call means. The body of the provider's answer decides, if there is one.
fn refusal(error: &ProviderError) -> ModelError {
    let status = error.provider_response_status().map_or(0, |status| status.as_u16());
    if let Some(body) = error.provider_response_body() {
        return wire::classify_error(status, body.as_bytes());
    }
    match error.is_retryable() {
        true => ModelError::new(ModelErrorKind::Retryable { after: None }, error.to_string()),
        false => classified(&error.to_string()),
    }
}

/// What an error states, if its text says that the request was too long for the model.
pub(crate) fn refusal_of(error: &str) -> Option<Refusal> {
    Refusal::of(&classified(error).kind)
}

/// The error of a refused request of which only the text is known.
fn classified(error: &str) -> ModelError {
    wire::classify_error(400, error.as_bytes())
}
