//! The capabilities of genai's adapters.

use genai::adapter::AdapterKind;
use threadfold::{message::Text, wire::EncodeOptions};

/// A model that one of genai's adapters reaches, with the capabilities of that adapter.
///
/// ```
/// use genai::adapter::AdapterKind;
/// use threadfold_genai::Target;
///
/// let target = Target::new(AdapterKind::Anthropic, "claude-opus-4-6");
/// assert_eq!((target.provider(), target.model()), ("anthropic-messages", "claude-opus-4-6"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(crate) dialect: Dialect,
    provider: Text,
    model: Text,
}

/// The families of adapters with equal capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Anthropic Messages. Blocks that genai has no type for are sent unchanged.
    Anthropic,
    /// Chat Completions, also of compatible servers.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini: user and assistant messages alternate, and every system message moves to the front.
    Gemini,
    /// Bedrock Converse: like Gemini, and images must be sent as bytes.
    Bedrock,
    /// Ollama: one result in each message, and no media except images.
    Ollama,
    /// All other adapters: only text, calls and results, which every adapter supports.
    Text,
}

impl Target {
    /// Returns the target of a model that this adapter reaches.
    #[must_use]
    pub fn new(adapter: AdapterKind, model: impl Into<Text>) -> Self {
        let model = model.into();
        let dialect = dialect(adapter, &model);
        let provider = match dialect {
            Dialect::Anthropic => "anthropic-messages".into(),
            Dialect::Chat => "openai-chat".into(),
            Dialect::Responses => "openai-responses".into(),
            Dialect::Gemini => "gemini".into(),
            Dialect::Bedrock => "bedrock-converse".into(),
            Dialect::Ollama | Dialect::Text => Text::from(adapter.as_lower_str()),
        };
        Self { dialect, provider, model }
    }

    /// The provider name of answers. It is the codec name of the same dialect if there is one, so
    /// that a thread can continue with or without genai.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The name of the model.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The encoding options of the model. System messages within the thread are not allowed,
    /// because no adapter of genai keeps their position.
    pub(crate) fn options(&self) -> EncodeOptions {
        // genai's messages have no names.
        EncodeOptions {
            accepts_inner_system: false,
            refuses_names: true,
            ..EncodeOptions::for_model(&self.model)
        }
    }
}

impl Dialect {
    /// Whether request parameters that genai does not know are sent under their own names.
    pub(crate) fn takes_parameters(self) -> bool {
        matches!(self, Self::Anthropic | Self::Chat)
    }

    /// Whether user and assistant messages must alternate.
    pub(crate) fn alternates(self) -> bool {
        matches!(self, Self::Gemini | Self::Bedrock)
    }
}

fn dialect(adapter: AdapterKind, model: &str) -> Dialect {
    use AdapterKind as Kind;
    // Adapters that speak several protocols, and untested adapters.
    const TEXT: [Kind; 5] =
        [Kind::Baidu, Kind::Cohere, Kind::GeminiIx, Kind::GithubCopilot, Kind::OpenCodeGo];
    let claude = adapter == Kind::Vertex && model.contains("claude");
    if adapter == Kind::Anthropic || claude {
        Dialect::Anthropic
    } else if adapter == Kind::OpenAIResp {
        Dialect::Responses
    } else if [Kind::Gemini, Kind::Vertex].contains(&adapter) {
        Dialect::Gemini
    } else if [Kind::Ollama, Kind::OllamaCloud].contains(&adapter) {
        Dialect::Ollama
    } else if TEXT.contains(&adapter) {
        Dialect::Text
    } else if adapter.as_lower_str().starts_with("bedrock") {
        // One of its two variants exists only with a feature of genai.
        Dialect::Bedrock
    } else {
        Dialect::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_on_vertex_depends_on_the_model() {
        let dialect = |model: &str| Target::new(AdapterKind::Vertex, model).dialect;
        assert_eq!(dialect("claude-opus-4-6"), Dialect::Anthropic);
        assert_eq!(dialect("gemini-3-pro"), Dialect::Gemini);
    }

    #[test]
    fn servers_that_speak_chat_completions_are_one_dialect() {
        for adapter in [AdapterKind::OpenAI, AdapterKind::Groq, AdapterKind::DeepSeek] {
            assert_eq!(Target::new(adapter, "x").provider(), "openai-chat");
        }
    }
}
