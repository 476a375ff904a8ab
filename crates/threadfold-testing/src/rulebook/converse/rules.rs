//! The rules of Bedrock Converse, with their sources.

use super::super::rule::rules;

rules! {
    FIELDS "fields": "A body has only the fields of the API.",
        Sdk("botocore 1.44.8, bedrock-runtime, ConverseRequest");
    BLOCKS "blocks": "A block has one key, and roles are user and assistant.",
        Sdk("botocore 1.44.8, bedrock-runtime, ContentBlock");
    NON_EMPTY "non-empty": "There is a message, and each has content.", Common;
    FIRST_ROLE "first-role": "The first message is the user's, but for Claude and Qwen.",
        Report("langgenius/dify#12340");
    ALTERNATE "alternate": "User and assistant take turns.",
        Report("langchain-ai/langchain-aws#130");
    PAIRS "pairs": "All calls of a message are answered in the next one.",
        Report("NousResearch/hermes-agent#108585");
    TOO_MANY "too-many-results": "There are no more results than calls.",
        Report("Just-Curieous/Curie#16");
    ALONE "results-alone": "Llama and Mistral: nothing else stands beside results.",
        Report("strands-agents/harness-sdk#1223");
    TOOL_CONFIG "tool-config": "A thread with calls or results comes with its tools.",
        Report("vxcontrol/pentagi#196");
    TEXT "text": "Texts have more than white space, in results too.",
        Report("NousResearch/hermes-agent#55092");
    IDS "ids": "Ids of calls have 1 to 64 letters, digits, _ . : and -; names of tools 1 to 64 \
        letters, digits, _ and -.",
        Sdk("botocore 1.44.8, bedrock-runtime, ToolUseId and ToolName");
    DOCUMENTS "documents": "A text stands beside a document.",
        Sdk("botocore 1.44.8, bedrock-runtime, ContentBlock");
    MARKS "cache-points": "A cache point is not the first block, and not after another one; at \
        most four. The error text is ours.",
        Common;
    PREFILL "prefill": "Since Claude 4.6 the last message is not the assistant's.",
        Report("vybestack/llxprt-code#3695");
    SIGNATURES "signatures": "Reasoning comes back as it was signed.",
        Documentation("Bedrock, Preserved thinking");
    BINDING "binding": "Claude binds reasoning to its prefix as in the Messages API; a change is \
        an error, or drops the reasoning if thinking.block_binding in the fields of the model asks \
        for that.",
        Documentation("Bedrock, Preserved thinking");
    WINDOW "window": "The prompt fits the window. The refusal states no numbers.", Common;
    CACHE "cache": "Cache points live 5 or 60 minutes after their last use; prices and lengths are \
        those of the Messages API for Claude.",
        Documentation("Bedrock, Prompt caching");
}
