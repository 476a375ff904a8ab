//! The rules of OpenAI Responses, with their sources.

use super::super::rule::rules;

rules! {
    FIELDS "fields": "A body for a model of OpenAI has only the fields of the API.",
        Sdk("openai 3.57.0, ResponseCreateParams and ResponseCompactParams");
    ITEMS "items": "The input is a text or items of known types; messages have a known role.",
        Sdk("openai 3.57.0, ResponseInputItemParam");
    OUTPUTS "outputs": "Every call in reach has an output after it.",
        Report("symgraph/GhidrAssist#78");
    ORPHANS "orphans": "The call of an output is before it.", Report("continuedev/continue#10092");
    ONE_OUTPUT "one-output": "A call has one output. The error text is ours.", Common;
    FOLLOWED "reasoning-followed": "Reasoning is followed by what it led to.",
        Report("vercel/ai#7099, openai/openai-agents-js#326");
    LED "reasoning-present": "An item that is sent with its id comes with the reasoning that led to it.",
        Common;
    UNIQUE "unique-ids": "Ids of items are unique.", Common;
    ID_PREFIX "id-prefix": "An id begins as those of its kind: msg, fc, rs, ctc.", Common;
    CALL_ID "call-id": "A call_id has 1 to 64 characters.", Common;
    ENCRYPTED "encrypted-content": "Encrypted content comes back as the API made it.",
        Report("openai/codex#8119, LibreChat-AI/agents#422");
    FOUND "stored-items": "An item that is sent by its id alone was stored.",
        Report("openai/openai-agents-python#2020");
    TRIGGER "compaction-trigger": "A trigger of a compaction is the last item.",
        Sdk("openai 3.57.0, ResponseInputItemParam");
    TOOLS "tools": "Names of functions are unique, 1 to 64 letters, digits, _ and -.", Common;
    LIMIT "max-output-tokens": "The limit of an answer is at least 16 tokens.", Common;
    SAMPLING "no-sampling-parameters": "Since GPT-6.2 temperature and top_p other than 1 are errors.",
        Report("RouterBase's probes of 19 November 2026, and OpenAI's guide Using GPT-6.2");
    EFFORT "effort": "Since GPT-6.2 the effort of reasoning cannot be none.",
        Report("RouterBase's probes of 19 November 2026, and OpenAI's guide Using GPT-6.2");
    BINDING "binding": "Since GPT-6.2 reasoning is dropped if tools, text.format or items before \
        it changed, or if another model made it, and reported in input_transformations. A \
        compaction of OpenAI stands for what it replaced, wherever it is.",
        Documentation("Keep the prefix unchanged; openai 3.57.0, Response.input_transformations");
    STORED "stored-responses": "An answer is stored for 30 days unless `store` is false, and can \
        be continued by its id.",
        Report("maximhq/bifrost#2441, bigduu/Bamboo-agent#513");
    WINDOW "window": "The prompt fits the window. The refusal states no numbers.",
        Documentation("Conversation state, managing the context window");
    CACHE "cache": "Prefixes of 1,024 tokens and more are cached without a mark. Since GPT-5.6 for \
        30 minutes at least, and writing costs 1.25 times; before, 5 to 10 minutes, and writing is \
        free. Reading costs 0.1 times since GPT-5; 0.5 times before.",
        Documentation("Prompt caching; openai 3.57.0, PromptCacheOptions");
}
