//! Command-line arguments that name a model.

use std::{env, error::Error, ffi::OsString, time::Duration};

use lexopt::ValueExt;
use threadfold::{ContextWindow, model::AnswerLimits};

use crate::adapter::{Dialect, HttpModel, HttpOptions, Key};

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

    /// Takes an argument.
    ///
    /// # Errors
    ///
    /// An error that names an invalid value.
    pub fn set(&mut self, name: &str, value: OsString) -> Result<(), lexopt::Error> {
        match name {
            "dialect" => self.dialect = Some(value.parse()?),
            "base-url" => self.base_url = Some(value.string()?),
            "model" => self.model = Some(value.string()?),
            "window" => self.window = Some(value.parse()?),
            "max-output" => self.max_output = Some(value.parse()?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the model, or `None` if none was named. A local server is asked for its window.
    ///
    /// # Errors
    ///
    /// An error if the address, the key or the window is missing or cannot be used.
    pub async fn open(self) -> Result<Option<NamedModel>, Box<dyn Error>> {
        let Some(name) = self.model else { return Ok(None) };
        let dialect = self.dialect.unwrap_or(Dialect::Anthropic);
        let vendor_url = dialect.vendor_url().map(str::to_owned);
        let mut options = HttpOptions {
            dialect,
            base_url: self.base_url.or(vendor_url).ok_or("give --base-url")?,
            model: name.clone(),
            window: self.window.map(ContextWindow::new),
            key: env::var(dialect.key_variable()).ok().as_deref().and_then(Key::new),
            max_output: 0,
            tries: 4,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            silence: Duration::from_secs(300),
            limits: AnswerLimits::default(),
        };
        if options.window.is_none() {
            options.window = HttpModel::new(options.clone())?.window_of_server().await;
        }
        let window = options.window.or_else(|| ContextWindow::for_model(&name));
        let window = window.ok_or("the window of this model is not known: give --window")?;
        options.max_output = self.max_output.unwrap_or((window.tokens() / 4).min(4_096));
        let max_output = options.max_output;
        Ok(Some(NamedModel { model: HttpModel::new(options)?, name, window, max_output }))
    }
}
