//! The rules of Bedrock Converse, with their sources.

use super::super::rule::{
    Rule,
    Source::{Common, Documentation, Report, Sdk},
};

pub(super) static RULES: &[&Rule] = &[
    &FIELDS,
    &BLOCKS,
    &NON_EMPTY,
    &FIRST_ROLE,
    &ALTERNATE,
    &PAIRS,
    &TOO_MANY,
    &ALONE,
    &TOOL_CONFIG,
    &TEXT,
    &IDS,
    &DOCUMENTS,
    &MARKS,
    &PREFILL,
    &SIGNATURES,
    &BINDING,
    &WINDOW,
    &CACHE,
];

pub(super) static FIELDS: Rule = Rule::new(
    "fields",
    "A body has only the fields of the API.",
    Sdk("botocore 1.44.8, bedrock-runtime, ConverseRequest"),
);
pub(super) static BLOCKS: Rule = Rule::new(
    "blocks",
    "A block has one key, and roles are user and assistant.",
    Sdk("botocore 1.44.8, bedrock-runtime, ContentBlock"),
);
pub(super) static NON_EMPTY: Rule =
    Rule::new("non-empty", "There is a message, and each has content.", Common);
pub(super) static FIRST_ROLE: Rule = Rule::new(
    "first-role",
    "The first message is the user's, but for Claude and Qwen.",
    Report("langgenius/dify#12340"),
);
pub(super) static ALTERNATE: Rule = Rule::new(
    "alternate",
    "User and assistant take turns.",
    Report("langchain-ai/langchain-aws#130"),
);
pub(super) static PAIRS: Rule = Rule::new(
    "pairs",
    "All calls of a message are answered in the next one.",
    Report("NousResearch/hermes-agent#108585"),
);
pub(super) static TOO_MANY: Rule = Rule::new(
    "too-many-results",
    "There are no more results than calls.",
    Report("Just-Curieous/Curie#16"),
);
pub(super) static ALONE: Rule = Rule::new(
    "results-alone",
    "Llama and Mistral: nothing else stands beside results.",
    Report("strands-agents/harness-sdk#1223"),
);
pub(super) static TOOL_CONFIG: Rule = Rule::new(
    "tool-config",
    "A thread with calls or results comes with its tools.",
    Report("vxcontrol/pentagi#196"),
);
pub(super) static TEXT: Rule = Rule::new(
    "text",
    "Texts have more than white space, in results too.",
    Report("NousResearch/hermes-agent#55092"),
);
pub(super) static IDS: Rule = Rule::new(
    "ids",
    "Ids of calls have 1 to 64 letters, digits, _ . : and -; names of tools 1 to 64 letters, digits, \
     _ and -.",
    Sdk("botocore 1.44.8, bedrock-runtime, ToolUseId and ToolName"),
);
pub(super) static DOCUMENTS: Rule = Rule::new(
    "documents",
    "A text stands beside a document.",
    Sdk("botocore 1.44.8, bedrock-runtime, ContentBlock"),
);
pub(super) static MARKS: Rule = Rule::new(
    "cache-points",
    "A cache point is not the first block, and not after another one; at most four. The error text is ours.",
    Common,
);
pub(super) static PREFILL: Rule = Rule::new(
    "prefill",
    "Since Claude 4.6 the last message is not the assistant's.",
    Report("vybestack/llxprt-code#3695"),
);
pub(super) static SIGNATURES: Rule = Rule::new(
    "signatures",
    "Reasoning comes back as it was signed.",
    Documentation("Bedrock, Preserved thinking"),
);
pub(super) static BINDING: Rule = Rule::new(
    "binding",
    "Claude binds reasoning to its prefix as in the Messages API; a change is an error, or drops the \
     reasoning if thinking.block_binding in the fields of the model asks for that.",
    Documentation("Bedrock, Preserved thinking"),
);
pub(super) static WINDOW: Rule =
    Rule::new("window", "The prompt fits the window. The refusal states no numbers.", Common);
pub(super) static CACHE: Rule = Rule::new(
    "cache",
    "Cache points live 5 or 60 minutes after their last use; prices and lengths are those of the \
     Messages API for Claude.",
    Documentation("Bedrock, Prompt caching"),
);
