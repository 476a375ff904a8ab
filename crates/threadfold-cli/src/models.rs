//! The model of a provider that writes summaries, if one is named.

use clap::Args;
use threadfold::{Model, drive::Models};
use threadfold_http::ModelArguments;

use crate::error::{Ended, Failure};

/// The arguments that name the model. Without them no data is sent, and strategies that need a model end
/// with this reason.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Summaries")]
pub(crate) struct ModelOptions {
    /// Model that writes summaries; without it nothing is sent, and only strategies that need none work
    ///
    /// The key is read from ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or
    /// AWS_BEARER_TOKEN_BEDROCK. A local server needs none.
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Dialect of its server: anthropic, openai, responses, gemini, bedrock or compatible
    #[arg(long, value_name = "DIALECT", requires = "name")]
    pub(crate) dialect: Option<String>,
    /// Address of its server, in the form that the provider's own clients use
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,
    /// Its window in tokens, if neither the server nor the built-in table has it
    #[arg(long, value_name = "TOKENS", requires = "name")]
    pub(crate) model_window: Option<u64>,
}

impl ModelOptions {
    /// Carries out a command with the named model, if there is one. The runtime has a single thread,
    /// because only the adapter uses it.
    pub(crate) fn run(
        &self,
        command: impl AsyncFnOnce(Models<'_>) -> Result<Ended, Failure>,
    ) -> Result<Ended, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let named = self.open_named().await?;
            command(named.as_deref().map_or_else(Models::default, Models::one)).await
        })
    }

    /// Returns the named model, if there is one.
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
                arguments.set(name, value)?;
            }
        }
        let named = arguments.open().await?;
        Ok(named.map(|named| -> Box<dyn Model> { Box::new(named.model) }))
    }
}
