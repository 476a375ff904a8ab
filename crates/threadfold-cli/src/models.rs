//! The model that writes summaries: one of a provider, or the extractive one that is offline.

use adapter::ModelArguments;
use clap::Args;
use threadfold::{Model, testing::ExtractiveModel};

use crate::error::Failure;

/// The arguments that name the model. Without them summaries are extracts, and nothing is sent.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Summaries")]
pub(crate) struct ModelOptions {
    /// The model that writes summaries; without it they are extracts, made offline
    ///
    /// The key comes from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or
    /// AWS_BEARER_TOKEN_BEDROCK. A local server needs none.
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What its server speaks: anthropic, openai, responses, gemini, bedrock or compatible
    #[arg(long, value_name = "DIALECT", requires = "name")]
    pub(crate) dialect: Option<String>,
    /// The address of its server, as the provider's own clients take it
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,
    /// Its window in tokens, where neither the server nor a table knows it
    #[arg(long, value_name = "TOKENS", requires = "name")]
    pub(crate) model_window: Option<u64>,
}

impl ModelOptions {
    /// The model that was named, or the extractive one.
    pub(crate) async fn open(&self) -> Result<Box<dyn Model>, Failure> {
        let named = self.open_named().await?;
        Ok(named.unwrap_or_else(|| Box::new(ExtractiveModel)))
    }

    /// The model that was named, if one was.
    pub(crate) async fn open_named(&self) -> Result<Option<Box<dyn Model>>, Failure> {
        let mut arguments = ModelArguments::default();
        let window = self.model_window.map(|window| window.to_string());
        let named = [
            ("model", &self.name),
            ("dialect", &self.dialect),
            ("base-url", &self.base_url),
            ("window", &window),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                arguments.set(name, value.into())?;
            }
        }
        let named = arguments.open().await?;
        Ok(named.map(|named| -> Box<dyn Model> { Box::new(named.model) }))
    }
}

/// Runs a future to its end on a runtime of one thread, which the adapter needs.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
