//! The option of a proxy for quiet agents.

use clap::ValueEnum;

/// What a proxy does while an agent is quiet, shortly before the provider's prompt cache dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WhenQuiet {
    /// Nothing
    #[default]
    Nothing,
    /// Compact the thread in the background if that costs less than writing its prompt anew
    Compact,
    /// Also send the last request again for an answer of 16 tokens, with the agent's own key; each
    /// time is billed by the provider
    KeepAlive,
}
