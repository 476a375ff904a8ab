//! The rules of Gemini, with their sources.

use super::super::rule::{
    Rule,
    Source::{Common, Documentation, Report, Sdk},
};

pub(super) static RULES: &[&Rule] = &[
    &FIELDS,
    &NON_EMPTY,
    &PARTS,
    &ALTERNATE,
    &CALL_TURN,
    &RESPONSE_TURN,
    &RESPONSES,
    &LAST,
    &SIGNED,
    &SIGNATURES,
    &TOOLS,
    &WINDOW,
    &CACHE,
];

pub(super) static FIELDS: Rule = Rule::new(
    "fields",
    "A body has only the fields of the API, in camel or snake case.",
    Sdk("google-genai 3.6.1, GenerateContentParameters as sent"),
);
pub(super) static NON_EMPTY: Rule = Rule::new(
    "non-empty",
    "There is a content, and each has a part.",
    Report("envoyproxy/ai-gateway#2686"),
);
pub(super) static PARTS: Rule = Rule::new(
    "parts",
    "A part has one kind of data, and a text without a signature is not empty.",
    Report("BerriAI/litellm#20569"),
);
pub(super) static ALTERNATE: Rule =
    Rule::new("alternate", "User and model take turns. The error text is ours.", Common);
pub(super) static CALL_TURN: Rule = Rule::new(
    "call-turn",
    "A turn with calls comes right after the user's or after responses.",
    Report("google-gemini/gemini-cli#26486"),
);
pub(super) static RESPONSE_TURN: Rule = Rule::new(
    "response-turn",
    "Responses come right after the turn with their calls.",
    Report("GoogleCloudPlatform/generative-ai#368"),
);
pub(super) static RESPONSES: Rule = Rule::new(
    "responses",
    "There are as many responses as calls, with the names and ids of the calls.",
    Report("google-gemini/gemini-cli#3814"),
);
pub(super) static LAST: Rule = Rule::new(
    "last",
    "The last content is the user's, or holds responses.",
    Report("songquanpeng/one-api#836"),
);
pub(super) static SIGNED: Rule = Rule::new(
    "signed-calls",
    "Since Gemini 3 the first call of each step after the user's newest text has its signature.",
    Documentation("Thought signatures; text: lbjlaq/Antigravity-Manager#139"),
);
pub(super) static SIGNATURES: Rule = Rule::new(
    "signatures",
    "A signature is one of the API's, or skip_thought_signature_validator. The error text is ours.",
    Documentation("Thought signatures"),
);
pub(super) static TOOLS: Rule = Rule::new(
    "tools",
    "Names of functions begin with a letter or _, and have up to 64 letters, digits, _ . : and -.",
    Common,
);
pub(super) static WINDOW: Rule =
    Rule::new("window", "The prompt fits the window.", Documentation("Long context"));
pub(super) static CACHE: Rule = Rule::new(
    "cache",
    "Prefixes of 4,096 tokens and more are cached without a mark, and reading them costs 0.1 times. \
     How long they live is not stated: five minutes here.",
    Documentation("Context caching, implicit caching"),
);
