//! The rules of Anthropic Messages, with their sources.

use super::super::rule::rules;

rules! {
    VERSION "version": "A request names the API version 2023-06-01 or 2026-10-21 in the header \
        `anthropic-version`.",
        Documentation("Claude API, Versions");
    FIELDS "fields": "A body has only the fields of the API.",
        Sdk("anthropic 2.14.0, MessageCreateParams of the beta API");
    SAMPLING "no-sampling-parameters": "Since 2026-10-21 temperature, top_p and top_k are errors, \
        at their defaults too.",
        Documentation("Claude API, Versions; the text from requests in a report of Synthorai");
    LIMIT "max-tokens": "A request limits the tokens of its answer.",
        Sdk("anthropic 2.14.0, max_tokens is required");
    NON_EMPTY "non-empty": "There is a message, and all messages but a final one of the assistant \
        have content.",
        Common;
    ROLES "roles": "Roles are user, assistant and, on some models, system.", Common;
    FIRST_ROLE "first-role": "The first message is the user's, or a compaction of the API.",
        Documentation("Compaction on demand");
    INNER_SYSTEM "inner-system": "A system message may follow the user's on Opus 4.8, Claude 5 and \
        later; not elsewhere.",
        Documentation("Messages, system messages in a conversation");
    PREFILL "prefill": "Since Claude 4.6 the last message is not the assistant's.",
        Report("vybestack/llxprt-code#3695");
    TEXT "text": "Texts have more than white space.",
        Report("anthropics/claude-code#59812, #23369");
    PAIRS "pairs": "All calls of a message are answered in the next one.",
        Report("anthropics/claude-code#2697, #5989");
    ORPHANS "orphans": "The call of a result is in the message before it.",
        Report("anthropics/claude-code#13460, #18947");
    UNIQUE "unique-ids": "Ids of calls are unique.", Report("anthropics/claude-code#28515");
    SINGLE_RESULT "single-result": "A call has one result.", Report("QwenLM/qwen-code#8163");
    RESULTS_FIRST "results-first": "Results stand before all other blocks of their message.",
        Documentation("Handle tool calls");
    IDS "id-characters": "Ids of calls consist of letters, digits, _ and -.", Common;
    TOOLS "tools": "Names of tools are unique, 1 to 128 letters, digits, _ and -; schemas are of \
        type object.",
        Common;
    CHOICE "tool-choice": "A choice among tools needs tools, and names one of them.", Common;
    FORCED_CHOICE "forced-choice": "No tool can be forced with a manual budget for thinking.",
        Documentation("Extended thinking, limitations");
    MARKS "cache-marks": "At most four cache marks; none on thinking or empty text; those of an \
        hour come first.",
        Report("continuedev/continue#6937, anthropics/claude-code#54039");
    ASSISTANT_DOCUMENTS "assistant-documents": "Since 2026-10-21 a document in a message of the \
        assistant is an error. The error text is ours.",
        Documentation("Claude API, Versions");
    USER_CITATIONS "user-citations": "Since 2026-10-21 citations on a text of the user are an \
        error. The error text is ours.",
        Documentation("Claude API, Versions");
    SIGNATURES "signatures": "Thinking comes back as it was signed.",
        Documentation("Preserved thinking");
    LATEST_THINKING "latest-thinking": "Of the thinking of the latest assistant message nothing \
        may be missing or changed.",
        Report("anthropics/claude-code#63284");
    LEADING_THINKING "leading-thinking": "With a manual budget, the message that begins the last \
        run of calls begins with thinking.",
        Report("anomalyco/opencode#3077");
    BINDING "binding": "System, tools and messages before thinking are unchanged, and no thinking \
        between others is missing: Fable and Mythos since 5.1, all models since 5.5, accounts \
        since 31 August 2026.",
        Documentation("Prefix checks on thinking blocks; Fix a thinking block bound to a different \
            conversation");
    BINDING_CONTROLS "binding-controls": "`block_binding` needs the beta \
        thinking-binding-controls-2026-08-01.",
        Report("anomalyco/opencode#48637");
    COMPACTION_BLOCK "compaction-block": "A signed compaction needs the beta compact-2026-09-04, \
        is first, unchanged, and the only one. The error texts are ours.",
        Documentation("Compaction on demand");
    COMPACTION_REQUEST "compaction-request": "A request for a compaction has no context \
        management, stop sequences, output format or forced tool, and its messages leave no call \
        open. The error texts are ours.",
        Documentation("Compaction on demand; anthropic 2.14.0, BetaCompactionConfigParam");
    THREADS "threads": "A thread on the server (beta message-threads-2026-08-12) is continued once \
        from each answer, without other system, tools or model, within 5 minutes.",
        Documentation("Message threads; error classes of anthropic 2.14.0");
    WINDOW "window": "The prompt fits the window.", Documentation("Context windows");
    SUM "window-sum": "Older models: the prompt and the limit of the answer fit the window together.",
        Documentation("Context windows");
    CACHE "cache": "Marked prefixes of a least length live 5 or 60 minutes after their last use; a \
        mark finds an entry up to 20 blocks before it; writing costs 1.25 or 2 times, reading 0.1 \
        times (0.05 for Sonnet 5.5 since 7 October 2026).",
        Documentation("Prompt caching; prices of Sonnet 5.5 in kurofune/claudit 1.9.2");
}
