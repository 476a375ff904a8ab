//! The options of decoding and encoding a body.

use serde::{Deserialize, Serialize};
use threadfold_core::message::{Text, model_version};

/// Decoding options: which text blocks are read as the block kinds that this crate writes as text,
/// and how large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeOptions {
    /// `<checkpoint:a1b2c3>` as the last block of a user message.
    pub checkpoints: bool,
    /// `<system-reminder>` and `<context-update>` blocks of user messages.
    pub reminders: bool,
    /// `<conversation-summary>` blocks of user messages, wherever they stand: for bodies that only
    /// this crate wrote. [`recognised`](crate::recognised) reads those that a user cannot have forged.
    pub summaries: bool,
    /// The limits of a body.
    pub limits: DecodeLimits,
}

impl Default for DecodeOptions {
    /// Checkpoints only, because a user may have typed the other forms.
    fn default() -> Self {
        Self {
            checkpoints: true,
            reminders: false,
            summaries: false,
            limits: DecodeLimits::DEFAULT,
        }
    }
}

/// The limits of a body that is decoded. Decoding takes time and memory in proportion to the body,
/// so a server that reads the bodies of others should bound them.
///
/// ```
/// use threadfold::wire::{DecodeLimits, DecodeOptions, Dialect, WireError};
///
/// let limits = DecodeLimits { messages: 1, ..DecodeLimits::default() };
/// let options = DecodeOptions { limits, ..DecodeOptions::default() };
/// let body = br#"{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}"#;
/// let refused = Dialect::OpenAiChat.decode_slice(body, &options);
/// assert_eq!(refused, Err(WireError::TooManyMessages { found: 2, limit: 1 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeLimits {
    /// The maximum bytes of the body.
    pub bytes: usize,
    /// The maximum number of messages, contents or items in the body.
    pub messages: usize,
    /// The maximum levels of arrays and objects in the body.
    pub depth: usize,
}

impl DecodeLimits {
    /// 256 MiB and 100,000 messages, which is more than any provider accepts. Levels have no limit,
    /// because no step of decoding and encoding takes more than linear time or recurses.
    pub const DEFAULT: Self =
        Self { bytes: 256 * 1024 * 1024, messages: 100_000, depth: usize::MAX };
}

impl Default for DecodeLimits {
    /// Returns [`DecodeLimits::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Encoding options: the model, and its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncodeOptions {
    /// The model to ask; `None` keeps the model that the request names.
    pub model: Option<Text>,
    /// The model refuses or silently drops reasoning if a message before it was changed (Claude 5.5
    /// and later, Fable and Mythos since 5.1: `preserved thinking`; GPT-6.2 and later). Such
    /// reasoning is left out, and an [`Adjustment`](crate::Adjustment) reports it.
    pub binds_reasoning: bool,
    /// The model refuses `temperature` and `top_p` other than 1 (GPT-6.2 and later). They are left
    /// out, and an [`Adjustment`](crate::Adjustment) reports it.
    pub refuses_sampling: bool,
    /// The last message may be an assistant message (Claude 4.5 and earlier). Only the codecs of
    /// Anthropic Messages, Bedrock Converse and Gemini read this.
    pub accepts_prefill: bool,
    /// System messages may be within the thread (Claude Opus 4.8, Claude 5 and later). Chat
    /// Completions always accepts them.
    pub accepts_inner_system: bool,
    /// The ids of calls must be nine letters and digits (Mistral, Chat Completions).
    pub needs_short_ids: bool,
    /// The version of Anthropic's API that the request's header names.
    pub anthropic_version: AnthropicVersion,
    /// What Anthropic does with reasoning whose messages before it were changed, if the model binds
    /// reasoning and the request configures its thinking; `None` for the provider's default, an
    /// error. It needs the header `anthropic-beta: thinking-binding-controls-2026-08-01` (SDK
    /// anthropic 2.14). The codec leaves reasoning out that it knows to be void, so this matters for
    /// changes that it cannot see: another system prompt, other tools, another account.
    pub prefix_mismatch: Option<PrefixMismatch>,
    /// The server refuses or drops the `name` of a user message (Mistral, Chat Completions). The author
    /// is then written [around the texts](crate#several-people), as in the other dialects.
    pub refuses_names: bool,
    /// The model refuses reasoning in fields beside the content, such as `reasoning_content`
    /// (Mistral, Chat Completions).
    pub refuses_reasoning_fields: bool,
}

impl EncodeOptions {
    /// Returns the options for a model by its name, from the providers' documentation. All flags of
    /// an unknown model are false.
    ///
    /// ```
    /// use threadfold::wire::EncodeOptions;
    ///
    /// assert!(EncodeOptions::for_model("claude-opus-5-5").binds_reasoning);
    /// assert!(EncodeOptions::for_model("gpt-6.2-sol").binds_reasoning);
    /// assert!(EncodeOptions::for_model("claude-sonnet-4-5").accepts_prefill);
    /// assert!(EncodeOptions::for_model("mistral-large-latest").needs_short_ids);
    /// assert!(!EncodeOptions::for_model("unheard-of").accepts_prefill);
    /// ```
    #[must_use]
    pub fn for_model(name: &str) -> Self {
        const MISTRAL: [&str; 7] =
            ["mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral"];
        let model = Some(name.into());
        let name = name.to_ascii_lowercase();
        let is_mistral = MISTRAL.iter().any(|family| name.contains(family));
        let options = Self {
            model,
            needs_short_ids: is_mistral,
            refuses_names: is_mistral,
            refuses_reasoning_fields: is_mistral,
            ..Self::default()
        };
        if let Some((_, rest)) = name.split_once("gpt-") {
            let version = model_version(rest);
            let is_strict = version.is_some_and(|version| version >= (6, 2));
            return Self { binds_reasoning: is_strict, refuses_sampling: is_strict, ..options };
        }
        let Some((_, rest)) = name.split_once("claude") else { return options };
        let binds_early = rest.contains("fable") || rest.contains("mythos");
        let Some(version) = model_version(rest) else { return options };
        Self {
            binds_reasoning: version >= (5, 5) || (binds_early && version >= (5, 1)),
            accepts_prefill: version <= (4, 5),
            accepts_inner_system: version >= (5, 0) || (rest.contains("opus") && version >= (4, 8)),
            ..options
        }
    }
}

/// The version of Anthropic's API, as the header `anthropic-version` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnthropicVersion {
    /// `2023-06-01`, which accepts everything that the codec writes.
    #[default]
    #[serde(rename = "2023-06-01")]
    V2023_06_01,
    /// `2026-10-21` (SDK anthropic 2.0). It refuses `temperature`, `top_p` and `top_k` with any
    /// value, `document` blocks in assistant messages, and `citations` on the texts of user
    /// messages, so the codec leaves these out and reports it.
    #[serde(rename = "2026-10-21")]
    V2026_10_21,
}

impl AnthropicVersion {
    /// The value of the header `anthropic-version`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2023_06_01 => "2023-06-01",
            Self::V2026_10_21 => "2026-10-21",
        }
    }
}

/// What Anthropic does with reasoning that fails the check of the messages before it
/// (`thinking.block_binding.prefix_mismatch_behavior`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixMismatch {
    /// The request is refused.
    Error,
    /// The request is answered without the reasoning, and the answer [reports](
    /// threadfold_core::message::Withheld) it.
    DropBlock,
}

impl PrefixMismatch {
    /// The word of the provider.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::DropBlock => "drop_block",
        }
    }
}
