//! Command-line arguments that name a model.

use std::env;

use threadfold::{
    ContextWindow,
    message::{InvalidValue, ModelError, ModelErrorKind},
};

use crate::{dialect::Dialect, key::Key, model::HttpModel, options::HttpOptions};

/// The arguments about the model.
#[derive(Clone, Debug, Default)]
pub struct ModelArguments {
    dialect: Option<Dialect>,
    base_url: Option<String>,
    model: Option<String>,
    window: Option<u64>,
    max_output: Option<u64>,
}

/// A model, and what a session needs to know about it.
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// The model.
    pub model: HttpModel,
    /// Its name.
    pub name: String,
    /// Its window: the argument, or the one that a local server states, or the one that the vendor
    /// published.
    pub window: ContextWindow,
    /// The maximum tokens of an answer.
    pub max_output: u64,
}

impl ModelArguments {
    /// The arguments, for the usage line of a program.
    pub const USAGE: &str = "--model NAME [--dialect \
        anthropic|openai|responses|gemini|bedrock|compatible] [--base-url URL] [--window TOKENS] \
        [--max-output TOKENS]";

    /// Whether an argument of this name is about the model.
    #[must_use]
    pub fn has(name: &str) -> bool {
        matches!(name, "dialect" | "base-url" | "model" | "window" | "max-output")
    }

    /// Takes an argument, without its dashes. Others are ignored.
    ///
    /// ```
    /// use threadfold_http::ModelArguments;
    ///
    /// let mut arguments = ModelArguments::default();
    /// arguments.set("model", "claude-haiku-4-5")?;
    /// let error = arguments.set("window", "much").unwrap_err();
    /// assert!(error.to_string().contains("much"), "{error}");
    /// # Ok::<(), threadfold::message::InvalidValue>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] for a dialect that there is not, or for a text in place of a number.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidValue> {
        let number = || {
            let parsed = value.parse::<u64>();
            parsed.map_err(|_| InvalidValue::new("an option", "expected a number of tokens", value))
        };
        match name {
            "dialect" => self.dialect = Some(value.parse()?),
            "base-url" => self.base_url = Some(value.to_owned()),
            "model" => self.model = Some(value.to_owned()),
            "window" => self.window = Some(number()?),
            "max-output" => self.max_output = Some(number()?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the model, or `None` if none was named. A local server is asked for its window. The
    /// key is read from the usual environment variable of the dialect. The future may be dropped.
    ///
    /// # Errors
    ///
    /// [`ModelError`] if the address or the window is missing, or the address or the key cannot be
    /// used.
    pub async fn open(self) -> Result<Option<NamedModel>, ModelError> {
        let Some(name) = self.model else { return Ok(None) };
        let missing = |words| ModelError::new(ModelErrorKind::Other, words);
        let dialect = self.dialect.unwrap_or(Dialect::Anthropic);
        let vendor_url = dialect.vendor_url().map(str::to_owned);
        let mut options = HttpOptions {
            base_url: self.base_url.or(vendor_url).ok_or_else(|| missing("give --base-url"))?,
            window: self.window.map(ContextWindow::new),
            key: env::var(dialect.key_variable()).ok().as_deref().and_then(Key::new),
            ..HttpOptions::new(dialect, name.as_str())
        };
        if options.window.is_none() {
            options.window = HttpModel::new(options.clone())?.window_of_server().await;
        }
        let window = options.window.or_else(|| ContextWindow::for_model(&name));
        let window = window
            .ok_or_else(|| missing("the window of this model is not known: name it in tokens"))?;
        options.max_output = self.max_output.unwrap_or((window.tokens() / 4).min(4_096));
        let max_output = options.max_output;
        Ok(Some(NamedModel { model: HttpModel::new(options)?, name, window, max_output }))
    }
}
