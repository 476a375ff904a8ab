//! The model that a body goes to, and what its family accepts.

use super::forms::NAME;
use crate::kit::*;

/// The model that a body goes to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) family: Family,
    /// Whether it is the one that the request was written for.
    pub(super) is_same: bool,
    pub(super) traits: ModelTraits,
}

/// Models that share their rules. The provider hands requests on to many makers' models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// No model is named: over HTTP its name stands in the address.
    Unknown,
    Claude,
    Nova,
    Qwen,
    /// Llama and Mistral.
    ResultsAlone,
    Writer,
    /// Another one, or a profile that does not say.
    Other,
}

impl Target {
    pub(super) fn new(request: &Request, options: &EncodeOptions) -> Self {
        let own = own_model(request);
        let name = options.model.as_ref().or(own.as_ref());
        Self {
            family: name.map_or(Family::Unknown, |name| Family::of(name)),
            is_same: options.model.is_none() || options.model == own,
            traits: options.traits,
        }
    }

    /// Whether an answer may stand first.
    pub(super) fn may_begin_with_answer(&self) -> bool {
        match self.family {
            Family::Claude | Family::Qwen => true,
            Family::Unknown
            | Family::Nova
            | Family::ResultsAlone
            | Family::Writer
            | Family::Other => false,
        }
    }

    /// Whether reasoning is refused without a signature.
    pub(super) fn signs_reasoning(&self) -> bool {
        self.family == Family::Claude
    }

    /// Whether a result may say that it is an error.
    pub(super) fn accepts_status(&self) -> bool {
        self.family != Family::Writer
    }

    /// Whether a block with this key may stand beside results. One that may not is put into them.
    pub(super) fn accepts_beside_results(&self, key: &str) -> bool {
        match self.family {
            Family::ResultsAlone => {
                !matches!(key, "text" | "image" | "document" | "video" | "searchResult")
            }
            Family::Claude => !matches!(key, "document" | "video"),
            Family::Unknown | Family::Nova | Family::Qwen | Family::Writer | Family::Other => true,
        }
    }

    /// Whether the host's wish for cache points is followed: after the thread and the system
    /// prompt, and after the tools.
    pub(super) fn caches(&self) -> (bool, bool) {
        match self.family {
            Family::Unknown | Family::Claude | Family::Other => (true, true),
            Family::Nova => (true, false),
            Family::Qwen | Family::ResultsAlone | Family::Writer => (false, false),
        }
    }
}

impl Family {
    fn of(model: &str) -> Self {
        const WORDS: [(&str, Family); 9] = [
            ("claude", Family::Claude),
            ("nova", Family::Nova),
            ("qwen", Family::Qwen),
            ("llama", Family::ResultsAlone),
            ("mistral.", Family::ResultsAlone),
            ("mixtral", Family::ResultsAlone),
            ("pixtral", Family::ResultsAlone),
            ("writer.", Family::Writer),
            ("palmyra", Family::Writer),
        ];
        let name = model.to_ascii_lowercase();
        let found = WORDS.into_iter().find(|(word, _)| name.contains(word));
        found.map_or(Self::Other, |(_, family)| family)
    }
}

/// The model that the body of the request named.
pub(super) fn own_model(request: &Request) -> Option<Text> {
    serde_json::from_str(request.extra.get(NAME, MODEL)?.as_str()).ok()
}

/// Under which key bodies name their model, if they do.
pub(super) const MODEL: &str = "modelId";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_by_the_names_of_their_models() {
        let rows = [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Family::Claude),
            ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", Family::Nova),
            ("meta.llama3-1-70b-instruct-v1:0", Family::ResultsAlone),
            ("mistral.mistral-large-2407-v1:0", Family::ResultsAlone),
            ("qwen.qwen3-32b-v1:0", Family::Qwen),
            ("us.writer.palmyra-x5-v1:0", Family::Writer),
            ("openai.gpt-oss-120b-1:0", Family::Other),
        ];
        for (name, family) in rows {
            assert_eq!(Family::of(name), family, "{name}");
        }
    }
}
