"""The rules of the providers that the upstream of these tests enforces, each with its source.

`violations(kind, body)` returns sentences, none for a legal body. `refusal(kind, ...)` is the error body
of a request that does not fit. Kinds: `anthropic` (Messages), `openai` (Chat Completions), `responses`.
"""
import json

def tokens(value):
    """What this provider counts: four bytes of JSON are a token."""
    return len(json.dumps(value, ensure_ascii=False).encode()) // 4


def blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def anthropic(body):
    # Anthropic, "Messages" and "Tool use" (API reference, errors as the API states them).
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        yield "messages: first message must use the \"user\" role"
    open_calls, seen, marks = [], set(), json.dumps(body).count('"cache_control"')
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    for at, message in enumerate(messages):
        if message["role"] not in ("user", "assistant", "system"):
            yield f"messages.{at}.role: Input should be 'user' or 'assistant'"
        content = blocks(message["content"])
        if not content and at + 1 < len(messages):
            yield f"messages.{at}: all messages must have non-empty content"
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if message["role"] == "user" or results:
            for call in open_calls:
                if call not in results:
                    yield (f"messages.{at}: `tool_use` ids were found without `tool_result` blocks "
                           f"immediately after: {call}")
            for result in results:
                if result not in open_calls:
                    yield (f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {result}. "
                           "Each `tool_result` block must have a corresponding `tool_use` block in the previous message")
            kinds = [block["type"] == "tool_result" for block in content]
            if results and kinds != sorted(kinds, reverse=True) and open_calls:
                yield f"messages.{at}: `tool_result` blocks must come first"
            open_calls = []
        if message["role"] == "assistant":
            for block in content:
                if block["type"] == "tool_use":
                    if block["id"] in seen:
                        yield f"messages.{at}: `tool_use` ids must be unique: {block['id']}"
                    seen.add(block["id"])
                    open_calls.append(block["id"])
        for block in content:
            if block["type"] == "text" and not block["text"].strip():
                yield f"messages.{at}: text content blocks must contain non-whitespace text"
    if open_calls:
        yield f"messages.{len(messages)}: `tool_use` ids were found without `tool_result` blocks: {open_calls}"


def openai(body):
    # OpenAI, "Chat Completions" (errors as the API states them).
    open_calls = []
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                yield (f"messages.[{at}].role: messages with role 'tool' must be a response to a preceeding "
                       "message with 'tool_calls'.")
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield ("An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                   f"'tool_call_id'. The following tool_call_ids did not have response messages: {open_calls}")
            open_calls = []
        if role not in ("system", "developer", "user", "assistant"):
            yield f"messages.[{at}].role: '{role}' is not one of the roles"
        if role == "assistant":
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
            if not open_calls and not message.get("content"):
                yield f"messages.[{at}].content: expected a string, got null"
        elif not message.get("content"):
            yield f"messages.[{at}].content: expected a string, got an empty value"
    if open_calls:
        yield f"The following tool_call_ids did not have response messages: {open_calls}"


def responses(body):
    # OpenAI, "Responses" (errors as the API states them).
    items = body["input"]
    if isinstance(items, str):
        return
    calls, answered, reasoning = {}, set(), None
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if reasoning and kind not in ("reasoning", "function_call", "custom_tool_call", "message", "local_shell_call"):
            yield f"Item '{reasoning}' of type 'reasoning' was provided without its required following item."
        if reasoning and kind == "message" and item.get("role") != "assistant":
            yield f"Item '{reasoning}' of type 'reasoning' was provided without its required following item."
        reasoning = item.get("id", "?") if kind == "reasoning" else None
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            calls[item["call_id"]] = at
        elif kind.endswith("_call_output"):
            if item["call_id"] not in calls:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            answered.add(item["call_id"])
    for call in calls:
        if call not in answered:
            yield f"No tool output found for function call {call}."


def violations(kind, body):
    return list({"anthropic": anthropic, "openai": openai, "responses": responses}[kind](body))


def refusal(kind, prompt, answer, window, with_sum):
    """The error body for a prompt (or a prompt and its answer) over the window; texts of the providers."""
    if kind == "anthropic":
        # Anthropic, "Errors" and "Context windows": models since Claude 3.7 refuse the sum.
        text = (f"input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, decrease "
                "input length or `max_tokens` and try again" if with_sum and prompt <= window
                else f"prompt is too long: {prompt} tokens > {window} maximum")
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text},
                "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
    if kind == "openai":
        # OpenAI's Chat Completions, and vLLM, which refuses the sum in the same words.
        text = (f"This model's maximum context length is {window} tokens. However, you requested "
                f"{prompt + answer} tokens ({prompt} in the messages, {answer} in the completion). Please reduce "
                "the length of the messages or completion." if with_sum and prompt <= window
                else f"This model's maximum context length is {window} tokens. However, your messages resulted "
                f"in {prompt} tokens. Please reduce the length of the messages.")
        return {"error": {"message": text, "type": "invalid_request_error", "param": "messages",
                          "code": "context_length_exceeded"}}
    # OpenAI's Responses never states the numbers.
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return {"error": {"message": text, "type": "invalid_request_error", "param": "input",
                      "code": "context_length_exceeded"}}


def refusal_events(kind, error):
    """The same refusal inside of a stream whose status was 200."""
    if kind == "anthropic":
        return [{**error, "type": "error"}]
    if kind == "openai":
        return [error]
    inner = {"code": error["error"]["code"], "message": error["error"]["message"]}
    response = {"id": "resp_0", "object": "response", "status": "failed", "error": inner, "output": []}
    return [{"type": "response.created", "sequence_number": 0,
             "response": {**response, "status": "in_progress", "error": None}},
            {"type": "response.failed", "sequence_number": 1, "response": response}]
