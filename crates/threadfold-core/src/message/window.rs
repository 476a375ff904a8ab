//! Context windows.
//!
//! The same model has different windows on different routes, so the host sets the window of an
//! agent; the windows that vendors published are only defaults.

use serde::{Deserialize, Serialize};

use super::published::published;

/// How many tokens a request and its answer may have together.
///
/// ```
/// use threadfold::ContextWindow;
///
/// assert_eq!(ContextWindow::for_model("claude-sonnet-4-5"), Some(ContextWindow::new(200_000)));
/// assert_eq!(ContextWindow::for_model("my-own-model"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextWindow {
    tokens: u64,
}

impl ContextWindow {
    /// Returns a window of this many tokens.
    #[must_use]
    pub const fn new(tokens: u64) -> Self {
        Self { tokens }
    }

    /// The window in tokens.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.tokens
    }

    /// Returns the window that the vendor of a model published, or `None` if the model is not in
    /// the table of November 2026. For other names the host has to state the window: nothing is
    /// guessed.
    ///
    /// The table has models of Anthropic, OpenAI, Google, Mistral, DeepSeek, Alibaba (Qwen), Meta
    /// (Llama) and xAI. Gateway prefixes and suffixes (`us.anthropic.claude-...-v1:0`,
    /// `models/gemini-...`, `openrouter/openai/gpt-...`), dates and upper case are ignored.
    ///
    /// Names on local servers have no window here: Ollama runs `llama3.1:8b` with the window of its
    /// configuration, often 4,096 tokens, not with the model's. Names of gateways with lower limits
    /// have no window here either. `wire::window_of` reads the window that a server reports.
    ///
    /// ```
    /// use threadfold::ContextWindow;
    ///
    /// let bedrock = "us.anthropic.claude-opus-4-6-v1:0";
    /// assert_eq!(ContextWindow::for_model(bedrock), Some(ContextWindow::new(1_000_000)));
    /// assert_eq!(ContextWindow::for_model("llama3.1:8b-instruct-q4_K_M"), None);
    /// ```
    #[must_use]
    pub fn for_model(name: &str) -> Option<Self> {
        published(name).map(Self::new)
    }
}

/// Returns the first version number in a model name. A number of more than two digits is a date.
pub fn version(rest: &str) -> Option<(u64, u64)> {
    let mut words = rest.split(['-', '.', '_', '@', ':', '/']).map(|word| {
        let digits = word.strip_prefix('v').unwrap_or(word);
        digits.parse::<u64>().ok().filter(|_| digits.len() <= 2)
    });
    let major = words.find_map(|word| word)?;
    Some((major, words.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_vendors_published() {
        let rows: [(&str, Option<u64>); 32] = [
            ("claude-2.1", Some(100_000)),
            ("anthropic.claude-v2:1", Some(100_000)),
            ("claude-3-7-sonnet-20250219", Some(200_000)),
            ("claude-3.5-sonnet", Some(200_000)),
            ("claude-opus-4-20250514", Some(200_000)),
            ("anthropic.claude-sonnet-4-20250514-v1:0", Some(200_000)),
            ("claude-4-opus", Some(200_000)),
            ("claude-haiku-4-5", Some(200_000)),
            ("anthropic/claude-opus-4.5", Some(200_000)),
            ("claude-opus-4-6", Some(1_000_000)),
            ("Claude-Sonnet-4.8", Some(1_000_000)),
            ("claude-opus-5", Some(1_000_000)),
            ("claude-haiku-5-5-20261001", Some(1_000_000)),
            ("claude-fable-5.1", Some(1_000_000)),
            ("claude-instant-1.2", None),
            ("claude-latest", None),
            ("gpt-5.6-sol", Some(1_050_000)),
            ("gpt-5.5", Some(1_050_000)),
            ("openrouter/openai/gpt-5", Some(400_000)),
            ("gpt-5.2-codex", Some(400_000)),
            ("gpt-5-chat-latest", None),
            ("gpt-4.1-mini", Some(1_047_576)),
            ("gpt-4o-2024-08-06", Some(128_000)),
            ("gpt-4", None),
            ("o3", Some(200_000)),
            ("o4-mini-2025-04-16", Some(200_000)),
            ("o30", None),
            ("models/gemini-2.5-pro", Some(1_048_576)),
            ("gemini-3-flash-preview", Some(1_048_576)),
            ("gemini-3.8-flash", Some(1_000_000)),
            ("gemini-4-carbon", Some(1_048_576)),
            ("grok-4.5", Some(256_000)),
        ];
        for (name, tokens) in rows {
            assert_eq!(ContextWindow::for_model(name), tokens.map(ContextWindow::new), "{name}");
        }
    }
}
