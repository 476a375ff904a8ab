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
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::Responses];
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "Anthropic Messages",
            Self::Responses => "OpenAI Responses",
        })
    }
}
