//! The model of the request, and the rules of its family.

use super::forms::NAME;
use crate::kit::*;

/// The model of the request, and its family.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) target: Target,
    pub(super) family: Family,
}

impl Model {
    pub(super) fn new(request: &Request, options: &EncodeOptions) -> Self {
        let target = Target::new((NAME, MODEL), request, options);
        let family = target.name.as_ref().map_or(Family::OTHER, |name| Family::of(name));
        Self { target, family }
    }
}

/// The models of one maker, which have the same rules. The provider offers models of many makers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Words in the names of its models.
    words: &'static [&'static str],
    /// Reasoning without a signature is refused, and so is reasoning in the beginning of an answer
    /// if thinking is off.
    pub(super) is_claude: bool,
    /// The thread may begin with an answer.
    pub(super) begins_with_answer: bool,
    /// A result may have a status.
    pub(super) accepts_status: bool,
    /// The keys of blocks that may not be beside results, but may be within them.
    pub(super) never_beside_results: &'static [&'static str],
    /// Whether requested cache points are placed after thread and system prompt, and after the
    /// tools.
    pub(super) caches: (bool, bool),
}

impl Family {
    /// For any other model, for a profile that does not name its model, and for a body without a
    /// name: over HTTP the name is in the address.
    const OTHER: Self = Self {
        words: &[],
        is_claude: false,
        begins_with_answer: false,
        accepts_status: true,
        never_beside_results: &[],
        caches: (true, true),
    };
    const CLAUDE: Self = Self {
        words: &["claude"],
        is_claude: true,
        begins_with_answer: true,
        never_beside_results: &["document", "video"],
        ..Self::OTHER
    };
    const NOVA: Self = Self { words: &["nova"], caches: (true, false), ..Self::OTHER };
    const QWEN: Self =
        Self { words: &["qwen"], begins_with_answer: true, caches: (false, false), ..Self::OTHER };
    const LLAMA_AND_MISTRAL: Self = Self {
        words: &["llama", "mistral.", "mixtral", "pixtral"],
        never_beside_results: &["text", "image", "document", "video", "searchResult"],
        caches: (false, false),
        ..Self::OTHER
    };
    const WRITER: Self = Self {
        words: &["writer.", "palmyra"],
        accepts_status: false,
        caches: (false, false),
        ..Self::OTHER
    };

    fn of(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let families =
            [Self::CLAUDE, Self::NOVA, Self::QWEN, Self::LLAMA_AND_MISTRAL, Self::WRITER];
        let mut families = families.into_iter();
        families.find(|it| it.words.iter().any(|word| name.contains(word))).unwrap_or(Self::OTHER)
    }
}

/// The key under which a body names its model, if it does.
pub(super) const MODEL: &str = "modelId";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_by_the_names_of_their_models() {
        let rows = [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Family::CLAUDE),
            ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", Family::NOVA),
            ("meta.llama3-1-70b-instruct-v1:0", Family::LLAMA_AND_MISTRAL),
            ("mistral.mistral-large-2407-v1:0", Family::LLAMA_AND_MISTRAL),
            ("qwen.qwen3-32b-v1:0", Family::QWEN),
            ("us.writer.palmyra-x5-v1:0", Family::WRITER),
            ("openai.gpt-oss-120b-1:0", Family::OTHER),
        ];
        for (name, family) in rows {
            assert_eq!(Family::of(name), family, "{name}");
        }
    }
}
