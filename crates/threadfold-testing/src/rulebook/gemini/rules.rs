//! The rules of Gemini, with their sources.

use super::super::rule::rules;

rules! {
    FIELDS "fields": "A body has only the fields of the API, in camel or snake case.",
        Sdk("google-genai 3.6.1, GenerateContentParameters as sent");
    NON_EMPTY "non-empty": "There is a content, and each has a part.",
        Report("envoyproxy/ai-gateway#2686");
    PARTS "parts": "A part has one kind of data, and a text without a signature is not empty.",
        Report("BerriAI/litellm#20569");
    ALTERNATE "alternate": "User and model take turns. The error text is ours.", Common;
    CALL_TURN "call-turn": "A turn with calls comes right after the user's or after responses.",
        Report("google-gemini/gemini-cli#26486");
    RESPONSE_TURN "response-turn": "Responses come right after the turn with their calls.",
        Report("GoogleCloudPlatform/generative-ai#368");
    RESPONSES "responses": "There are as many responses as calls, with the names and ids of the calls.",
        Report("google-gemini/gemini-cli#3814");
    LAST "last": "The last content is the user's, or holds responses.",
        Report("songquanpeng/one-api#836");
    SIGNED "signed-calls": "Since Gemini 3 the first call of each step after the user's newest \
        text has its signature.",
        Documentation("Thought signatures; text: lbjlaq/Antigravity-Manager#139");
    SIGNATURES "signatures": "A signature is one of the API's, or \
        skip_thought_signature_validator. The error text is ours.",
        Documentation("Thought signatures");
    TOOLS "tools": "Names of functions begin with a letter or _, and have up to 64 letters, \
        digits, _ . : and -.",
        Common;
    WINDOW "window": "The prompt fits the window.", Documentation("Long context");
    CACHE "cache": "Prefixes of 4,096 tokens and more are cached without a mark, and reading them \
        costs 0.1 times. How long they live is not stated: five minutes here.",
        Documentation("Context caching, implicit caching");
}
