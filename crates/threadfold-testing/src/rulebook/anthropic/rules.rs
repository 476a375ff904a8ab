//! The rules of Anthropic Messages, with their sources.

use super::super::rule::{
    Rule,
    Source::{Common, Documentation, Report, Sdk},
};

pub(super) static RULES: &[&Rule] = &[
    &VERSION,
    &FIELDS,
    &SAMPLING,
    &LIMIT,
    &NON_EMPTY,
    &ROLES,
    &FIRST_ROLE,
    &INNER_SYSTEM,
    &PREFILL,
    &TEXT,
    &PAIRS,
    &ORPHANS,
    &UNIQUE,
    &SINGLE_RESULT,
    &RESULTS_FIRST,
    &IDS,
    &TOOLS,
    &CHOICE,
    &FORCED_CHOICE,
    &MARKS,
    &ASSISTANT_DOCUMENTS,
    &USER_CITATIONS,
    &SIGNATURES,
    &LATEST_THINKING,
    &LEADING_THINKING,
    &BINDING,
    &BINDING_CONTROLS,
    &COMPACTION_BLOCK,
    &COMPACTION_REQUEST,
    &THREADS,
    &WINDOW,
    &SUM,
    &CACHE,
];

pub(super) static VERSION: Rule = Rule::new(
    "version",
    "A request names the API version 2023-06-01 or 2026-10-21 in the header `anthropic-version`.",
    Documentation("Claude API, Versions"),
);
pub(super) static FIELDS: Rule = Rule::new(
    "fields",
    "A body has only the fields of the API.",
    Sdk("anthropic 2.14.0, MessageCreateParams of the beta API"),
);
pub(super) static SAMPLING: Rule = Rule::new(
    "no-sampling-parameters",
    "Since 2026-10-21 temperature, top_p and top_k are errors, at their defaults too.",
    Documentation("Claude API, Versions; the text from requests in a report of Synthorai"),
);
pub(super) static LIMIT: Rule = Rule::new(
    "max-tokens",
    "A request limits the tokens of its answer.",
    Sdk("anthropic 2.14.0, max_tokens is required"),
);
pub(super) static NON_EMPTY: Rule = Rule::new(
    "non-empty",
    "There is a message, and all messages but a final one of the assistant have content.",
    Common,
);
pub(super) static ROLES: Rule =
    Rule::new("roles", "Roles are user, assistant and, on some models, system.", Common);
pub(super) static FIRST_ROLE: Rule = Rule::new(
    "first-role",
    "The first message is the user's, or a compaction of the API.",
    Documentation("Compaction on demand"),
);
pub(super) static INNER_SYSTEM: Rule = Rule::new(
    "inner-system",
    "A system message may follow the user's on Opus 4.8, Claude 5 and later; not elsewhere.",
    Documentation("Messages, system messages in a conversation"),
);
pub(super) static PREFILL: Rule = Rule::new(
    "prefill",
    "Since Claude 4.6 the last message is not the assistant's.",
    Report("vybestack/llxprt-code#3695"),
);
pub(super) static TEXT: Rule = Rule::new(
    "text",
    "Texts have more than white space.",
    Report("anthropics/claude-code#59812, #23369"),
);
pub(super) static PAIRS: Rule = Rule::new(
    "pairs",
    "All calls of a message are answered in the next one.",
    Report("anthropics/claude-code#2697, #5989"),
);
pub(super) static ORPHANS: Rule = Rule::new(
    "orphans",
    "The call of a result is in the message before it.",
    Report("anthropics/claude-code#13460, #18947"),
);
pub(super) static UNIQUE: Rule =
    Rule::new("unique-ids", "Ids of calls are unique.", Report("anthropics/claude-code#28515"));
pub(super) static SINGLE_RESULT: Rule =
    Rule::new("single-result", "A call has one result.", Report("QwenLM/qwen-code#8163"));
pub(super) static RESULTS_FIRST: Rule = Rule::new(
    "results-first",
    "Results stand before all other blocks of their message.",
    Documentation("Handle tool calls"),
);
pub(super) static IDS: Rule =
    Rule::new("id-characters", "Ids of calls consist of letters, digits, _ and -.", Common);
pub(super) static TOOLS: Rule = Rule::new(
    "tools",
    "Names of tools are unique, 1 to 128 letters, digits, _ and -; schemas are of type object.",
    Common,
);
pub(super) static CHOICE: Rule =
    Rule::new("tool-choice", "A choice among tools needs tools, and names one of them.", Common);
pub(super) static FORCED_CHOICE: Rule = Rule::new(
    "forced-choice",
    "No tool can be forced with a manual budget for thinking.",
    Documentation("Extended thinking, limitations"),
);
pub(super) static MARKS: Rule = Rule::new(
    "cache-marks",
    "At most four cache marks; none on thinking or empty text; those of an hour come first.",
    Report("continuedev/continue#6937, anthropics/claude-code#54039"),
);
pub(super) static ASSISTANT_DOCUMENTS: Rule = Rule::new(
    "assistant-documents",
    "Since 2026-10-21 a document in a message of the assistant is an error. The error text is ours.",
    Documentation("Claude API, Versions"),
);
pub(super) static USER_CITATIONS: Rule = Rule::new(
    "user-citations",
    "Since 2026-10-21 citations on a text of the user are an error. The error text is ours.",
    Documentation("Claude API, Versions"),
);
pub(super) static SIGNATURES: Rule = Rule::new(
    "signatures",
    "Thinking comes back as it was signed.",
    Documentation("Preserved thinking"),
);
pub(super) static LATEST_THINKING: Rule = Rule::new(
    "latest-thinking",
    "Of the thinking of the latest assistant message nothing may be missing or changed.",
    Report("anthropics/claude-code#63284"),
);
pub(super) static LEADING_THINKING: Rule = Rule::new(
    "leading-thinking",
    "With a manual budget, the message that begins the last run of calls begins with thinking.",
    Report("anomalyco/opencode#3077"),
);
pub(super) static BINDING: Rule = Rule::new(
    "binding",
    "System, tools and messages before thinking are unchanged, and no thinking between others is \
     missing: Fable and Mythos since 5.1, all models since 5.5, accounts since 31 August 2026.",
    Documentation(
        "Prefix checks on thinking blocks; Fix a thinking block bound to a different \
                   conversation",
    ),
);
pub(super) static BINDING_CONTROLS: Rule = Rule::new(
    "binding-controls",
    "`block_binding` needs the beta thinking-binding-controls-2026-08-01.",
    Report("anomalyco/opencode#48637"),
);
pub(super) static COMPACTION_BLOCK: Rule = Rule::new(
    "compaction-block",
    "A signed compaction needs the beta compact-2026-09-04, is first, unchanged, and the only one. \
     The error texts are ours.",
    Documentation("Compaction on demand"),
);
pub(super) static COMPACTION_REQUEST: Rule = Rule::new(
    "compaction-request",
    "A request for a compaction has no context management, stop sequences, output format or forced \
     tool, and its messages leave no call open. The error texts are ours.",
    Documentation("Compaction on demand; anthropic 2.14.0, BetaCompactionConfigParam"),
);
pub(super) static THREADS: Rule = Rule::new(
    "threads",
    "A thread on the server (beta message-threads-2026-08-12) is continued once from each answer, \
     without other system, tools or model, within 5 minutes.",
    Documentation("Message threads; error classes of anthropic 2.14.0"),
);
pub(super) static WINDOW: Rule =
    Rule::new("window", "The prompt fits the window.", Documentation("Context windows"));
pub(super) static SUM: Rule = Rule::new(
    "window-sum",
    "Older models: the prompt and the limit of the answer fit the window together.",
    Documentation("Context windows"),
);
pub(super) static CACHE: Rule = Rule::new(
    "cache",
    "Marked prefixes of a least length live 5 or 60 minutes after their last use; a mark finds an \
     entry up to 20 blocks before it; writing costs 1.25 or 2 times, reading 0.1 times (0.05 for \
     Sonnet 5.5 since 7 October 2026).",
    Documentation("Prompt caching; prices of Sonnet 5.5 in kurofune/claudit 1.9.2"),
);
