//! The options of a rulebook.

/// The account and the model of a rulebook, as far as requests do not say them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookOptions {
    /// The window of the model, in tokens. Four bytes of a JSON body count as a token.
    pub window: u64,
    /// How prompt and answer share the window.
    pub fit: Fit,
    /// How a request that does not fit is refused.
    pub refusal: Refusal,
    /// What Anthropic does with reasoning whose prefix changed, if the request does not say it.
    pub account: Account,
    /// The seed of ids and signatures.
    pub seed: u64,
}

/// How prompt and answer share the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The prompt alone must fit. An answer ends where the window does.
    Prompt,
    /// The prompt and the limit of the answer must fit together: Claude 3.7 to 4 (Anthropic,
    /// "Context windows"), vLLM and others that speak OpenAI's Chat Completions.
    Sum,
}

/// How a request that does not fit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// With an error status.
    Status,
    /// A stream begins with status 200, and the refusal is an event of it.
    InStream,
}

/// An account of Anthropic. Documentation: "Prefix checks on thinking blocks".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// From before 31 August 2026: void reasoning is shown to the model all the same.
    Old,
    /// Since 31 August 2026: void reasoning is an error, or is dropped if the request asks for it.
    New,
}

impl Default for BookOptions {
    /// 200,000 tokens for the prompt, refusals by status, a new account, seed 0.
    fn default() -> Self {
        Self {
            window: 200_000,
            fit: Fit::Prompt,
            refusal: Refusal::Status,
            account: Account::New,
            seed: 0,
        }
    }
}
