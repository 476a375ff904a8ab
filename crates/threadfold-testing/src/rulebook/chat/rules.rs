//! The rules of OpenAI Chat Completions, with their sources.

use super::super::rule::rules;

rules! {
    FIELDS "fields": "A body for a model of OpenAI has only the fields of the API.",
        Sdk("openai 3.57.0, CompletionCreateParams");
    ROLES "roles": "There is a message, and roles are system, developer, user, assistant and tool.",
        Sdk("openai 3.57.0, ChatCompletionMessageParam");
    CONTENT "content": "A message has content; the assistant's may be null beside calls or a refusal.",
        Sdk("openai 3.57.0, ChatCompletionAssistantMessageParam");
    PARTS "parts": "Pictures, audio and files stand in messages of the user only.",
        Sdk("openai 3.57.0, ChatCompletionToolMessageParam");
    PAIRS "pairs": "Messages with the results of all calls follow at once, one for each.",
        Report("BerriAI/litellm#10083");
    ORPHANS "orphans": "A result belongs to a call of the message before it.",
        Report("BerriAI/litellm#4931, microsoft/semantic-kernel#12708");
    CALLS "calls": "A list of calls is not empty; ids have at most 40 characters; inputs are texts.",
        Common;
    TOOLS "tools": "Names of functions have 1 to 64 letters, digits, _ and -.",
        Sdk("openai 3.57.0, FunctionDefinition");
    NO_TOOLS "no-functions": "Since GPT-6 function tools need the Responses API. The error text is ours.",
        Documentation("Using GPT-6.2, tool calling");
    SAMPLING "no-sampling-parameters": "Since GPT-6.2 temperature and top_p other than 1 are errors.",
        Report("RouterBase's probes of 19 November 2026");
    WINDOW "window": "The prompt fits the window.", Documentation("Error codes");
    SUM "window-sum": "Some servers of this dialect, such as vLLM: prompt and answer fit the \
        window together.",
        Common;
    CACHE "cache": "Prefixes of 1,024 tokens and more are cached without a mark, with the lives \
        and prices of the Responses API.",
        Documentation("Prompt caching");
}
