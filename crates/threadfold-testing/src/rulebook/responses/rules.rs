//! The rules of OpenAI Responses, with their sources.

use super::super::rule::{
    Rule,
    Source::{Common, Documentation, Report, Sdk},
};

pub(super) static RULES: &[&Rule] = &[
    &FIELDS,
    &ITEMS,
    &OUTPUTS,
    &ORPHANS,
    &ONE_OUTPUT,
    &FOLLOWED,
    &LED,
    &UNIQUE,
    &ID_PREFIX,
    &CALL_ID,
    &ENCRYPTED,
    &FOUND,
    &TRIGGER,
    &TOOLS,
    &LIMIT,
    &SAMPLING,
    &EFFORT,
    &BINDING,
    &STORED,
    &WINDOW,
    &CACHE,
];

pub(super) static FIELDS: Rule = Rule::new(
    "fields",
    "A body for a model of OpenAI has only the fields of the API.",
    Sdk("openai 3.57.0, ResponseCreateParams and ResponseCompactParams"),
);
pub(super) static ITEMS: Rule = Rule::new(
    "items",
    "The input is a text or items of known types; messages have a known role.",
    Sdk("openai 3.57.0, ResponseInputItemParam"),
);
pub(super) static OUTPUTS: Rule = Rule::new(
    "outputs",
    "Every call in reach has an output after it.",
    Report("symgraph/GhidrAssist#78"),
);
pub(super) static ORPHANS: Rule = Rule::new(
    "orphans",
    "The call of an output is before it.",
    Report("continuedev/continue#10092"),
);
pub(super) static ONE_OUTPUT: Rule =
    Rule::new("one-output", "A call has one output. The error text is ours.", Common);
pub(super) static FOLLOWED: Rule = Rule::new(
    "reasoning-followed",
    "Reasoning is followed by what it led to.",
    Report("vercel/ai#7099, openai/openai-agents-js#326"),
);
pub(super) static LED: Rule = Rule::new(
    "reasoning-present",
    "An item that is sent with its id comes with the reasoning that led to it.",
    Common,
);
pub(super) static UNIQUE: Rule = Rule::new("unique-ids", "Ids of items are unique.", Common);
pub(super) static ID_PREFIX: Rule =
    Rule::new("id-prefix", "An id begins as those of its kind: msg, fc, rs, ctc.", Common);
pub(super) static CALL_ID: Rule = Rule::new("call-id", "A call_id has 1 to 64 characters.", Common);
pub(super) static ENCRYPTED: Rule = Rule::new(
    "encrypted-content",
    "Encrypted content comes back as the API made it.",
    Report("openai/codex#8119, LibreChat-AI/agents#422"),
);
pub(super) static FOUND: Rule = Rule::new(
    "stored-items",
    "An item that is sent by its id alone was stored.",
    Report("openai/openai-agents-python#2020"),
);
pub(super) static TRIGGER: Rule = Rule::new(
    "compaction-trigger",
    "A trigger of a compaction is the last item.",
    Sdk("openai 3.57.0, ResponseInputItemParam"),
);
pub(super) static TOOLS: Rule =
    Rule::new("tools", "Names of functions are unique, 1 to 64 letters, digits, _ and -.", Common);
pub(super) static LIMIT: Rule =
    Rule::new("max-output-tokens", "The limit of an answer is at least 16 tokens.", Common);
pub(super) static SAMPLING: Rule = Rule::new(
    "no-sampling-parameters",
    "Since GPT-6.2 temperature and top_p other than 1 are errors.",
    Report("RouterBase's probes of 19 November 2026, and OpenAI's guide Using GPT-6.2"),
);
pub(super) static EFFORT: Rule = Rule::new(
    "effort",
    "Since GPT-6.2 the effort of reasoning cannot be none.",
    Report("RouterBase's probes of 19 November 2026, and OpenAI's guide Using GPT-6.2"),
);
pub(super) static BINDING: Rule = Rule::new(
    "binding",
    "Since GPT-6.2 reasoning is dropped if tools, text.format or items before it changed, or if \
     another model made it, and reported in input_transformations. A compaction of OpenAI stands for \
     what it replaced, wherever it is.",
    Documentation("Keep the prefix unchanged; openai 3.57.0, Response.input_transformations"),
);
pub(super) static STORED: Rule = Rule::new(
    "stored-responses",
    "An answer is stored for 30 days unless `store` is false, and can be continued by its id.",
    Report("maximhq/bifrost#2441, bigduu/Bamboo-agent#513"),
);
pub(super) static WINDOW: Rule = Rule::new(
    "window",
    "The prompt fits the window. The refusal states no numbers.",
    Documentation("Conversation state, managing the context window"),
);
pub(super) static CACHE: Rule = Rule::new(
    "cache",
    "Prefixes of 1,024 tokens and more are cached without a mark. Since GPT-5.6 for 30 minutes at \
     least, and writing costs 1.25 times; before, 5 to 10 minutes, and writing is free. Reading costs \
     0.1 times since GPT-5; 0.5 times before.",
    Documentation("Prompt caching; openai 3.57.0, PromptCacheOptions"),
);
