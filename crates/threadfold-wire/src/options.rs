//! The options of decoding and encoding a body.

use serde::{Deserialize, Serialize};
use threadfold_core::message::Text;

/// Decoding options: which text blocks are read as the block kinds that this crate writes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecodeOptions {
    /// `<checkpoint:a1b2c3>` as the last block of a user message.
    pub checkpoints: bool,
    /// `<system-reminder>` and `<context-update>` blocks of user messages.
    pub reminders: bool,
    /// `<conversation-summary>` blocks of user messages.
    pub summaries: bool,
}

impl Default for DecodeOptions {
    /// Checkpoints only, because a user may have typed the other forms.
    fn default() -> Self {
        Self { checkpoints: true, reminders: false, summaries: false }
    }
}

/// Encoding options: the model, and its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncodeOptions {
    /// The model to ask; `None` keeps the model that the request names.
    pub model: Option<Text>,
    /// The model refuses reasoning if a message before it was changed (Claude 5.1 and later,
    /// `preserved thinking`).
    pub binds_reasoning: bool,
    /// The last message may be an assistant message (Claude 4.5 and earlier, Chat Completions).
    pub accepts_prefill: bool,
    /// System messages may be within the thread (Claude Opus 4.8 and later). Chat Completions
    /// always accepts them.
    pub accepts_inner_system: bool,
}

impl EncodeOptions {
    /// Returns the options for a model by its name, from the providers' documentation. All flags of
    /// an unknown model are false.
    ///
    /// ```
    /// use threadfold::wire::EncodeOptions;
    ///
    /// assert!(EncodeOptions::for_model("claude-opus-5-5").binds_reasoning);
    /// assert!(EncodeOptions::for_model("claude-sonnet-4-5").accepts_prefill);
    /// assert!(!EncodeOptions::for_model("unheard-of").accepts_prefill);
    /// ```
    #[must_use]
    pub fn for_model(name: &str) -> Self {
        let options = Self { model: Some(name.into()), ..Self::default() };
        let name = name.to_ascii_lowercase();
        let Some((_, rest)) = name.split_once("claude") else { return options };
        let named = rest.contains("fable") || rest.contains("mythos");
        let Some(version) = threadfold_core::message::model_version(rest) else { return options };
        Self {
            binds_reasoning: version >= (5, 5) || (named && version >= (5, 1)),
            accepts_prefill: version <= (4, 5),
            accepts_inner_system: version >= (5, 0) || (rest.contains("opus") && version >= (4, 8)),
            ..options
        }
    }
}
