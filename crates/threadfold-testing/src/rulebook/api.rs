//! The APIs that have a rulebook.

use std::fmt;

/// An API of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// Anthropic Messages. The header `anthropic-version` of a request says which version holds:
    /// 2023-06-01 or 2026-10-21.
    Anthropic,
    /// OpenAI Responses. The model of a request says whether reasoning is bound: since GPT-6.2.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini `generateContent`. The model of a request says whether calls need their signatures:
    /// since Gemini 3.
    Gemini,
    /// Bedrock Converse. The model of a request says whose rules hold beside those of the API.
    Converse,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini, Self::Converse];
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "Anthropic Messages",
            Self::Responses => "OpenAI Responses",
            Self::Chat => "OpenAI Chat Completions",
            Self::Gemini => "Gemini",
            Self::Converse => "Bedrock Converse",
        })
    }
}
