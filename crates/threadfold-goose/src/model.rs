//! A provider of goose as a model of threadfold.

use std::{fmt, sync::Arc};

use goose_provider_types::{
    base::Provider, conversation::token_usage, errors::ProviderError, model::ModelConfig,
};
use threadfold::{
    Answer, ContentBlock, Message, Model, Request, Role, Usage, async_trait,
    message::StopReason,
    model::{ModelError, ModelErrorKind},
};

use crate::from_ours;

/// A provider of goose with one of its models, as a model that writes summaries.
#[derive(Clone)]
pub struct GooseModel {
    provider: Arc<dyn Provider>,
    config: ModelConfig,
}

impl GooseModel {
    /// Returns the model.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, config: ModelConfig) -> Self {
        Self { provider, config }
    }
}

impl fmt::Debug for GooseModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GooseModel").field("config", &self.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for GooseModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let system = from_ours::system(&request.system);
        let messages = from_ours::messages(&request.messages);
        let most = request.max_output.and_then(|most| i32::try_from(most).ok());
        let config = self.config.clone().with_max_tokens(most.or(self.config.max_tokens));
        // A summary calls no tools.
        let answered = self.provider.complete(&config, &system, &messages, &[]).await;
        let (message, reported) = answered.map_err(|error| refusal(&error))?;
        let texts = message.content.iter().filter_map(|content| content.as_text());
        let stop = match message.metadata.output_token_limit_reached {
            true => StopReason::MaxTokens,
            false => StopReason::EndTurn,
        };
        let message = Message::new(Role::Assistant, texts.map(ContentBlock::text).collect());
        Ok(Answer::new(message, stop, usage(&reported.usage)))
    }
}

fn usage(usage: &token_usage::Usage) -> Option<Usage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    Some(Usage::new(count(usage.input_tokens)?, count(usage.output_tokens).unwrap_or_default()))
}

fn refusal(error: &ProviderError) -> ModelError {
    let kind = match error {
        ProviderError::ContextLengthExceeded(_) => {
            ModelErrorKind::Overflow { limit: None, found: None, output: None }
        }
        ProviderError::RateLimitExceeded { retry_delay, .. } => {
            ModelErrorKind::Retryable { after: *retry_delay }
        }
        ProviderError::ServerError(_) | ProviderError::NetworkError(_) => {
            ModelErrorKind::Retryable { after: None }
        }
        _ => ModelErrorKind::Other,
    };
    ModelError::new(kind, error.to_string())
}
