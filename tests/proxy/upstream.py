#!/usr/bin/env python3
"""A provider on loopback for the tests of the proxy: a small window, the providers' rules, a script of answers.

usage: upstream.py WINDOW [--steps N] [--sum] [--in-stream] [--checker FILE]
Prints its port, then serves Anthropic's Messages and OpenAI's Chat Completions and Responses. `rules.py` has
the rules. With `--sum` the prompt and the tokens of the answer must fit the window together; with
`--in-stream` a refusal comes inside of a stream of status 200. With `--checker` the types of the official
SDKs judge every tenth body too.

Without `--steps`, a call of the tool `read` answers what the user typed, and a text answers the result. With
it the model is an agent's: it runs N commands of the agent's own shell, whose output it knows, and ends with
a text. If the newest output comes back with lines missing, it runs the same command again, twice at most.
`GET /seen` states what was seen: see `seen` below.
"""
import argparse, importlib.util, json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import rules

parser = argparse.ArgumentParser()
parser.add_argument("window", type=int)
parser.add_argument("--steps", type=int, default=0)
parser.add_argument("--sum", action="store_true")
parser.add_argument("--in-stream", action="store_true")
parser.add_argument("--checker")
options = parser.parse_args()
window, steps = options.window, options.steps
checker = None
if options.checker:
    spec = importlib.util.spec_from_file_location("checker", options.checker)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
seen = {
    # Requests by how they ended, and the tokens of the largest one that was answered.
    "answered": 0, "refused": 0, "illegal": [], "largest": 0,
    # Results that came back with lines missing, although prompt, tools and the newest messages fit; those
    # that were larger than what is left beside prompt and tools; and commands that were run again for it.
    "unread_changed": [], "unread_too_large": 0, "repeated": 0,
    # Answered requests over 80 % of the window: the agent's own request was longer than the trigger.
    "over": 0,
    # Requests of an agent beside its task, such as for the title of a session.
    "beside": 0, "done": False,
}
step = {"number": 0, "tries": 0}
lock = threading.Lock()
KINDS = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/responses": "responses"}
MOST_REPEATS = 2


def violations(kind, body, number):
    # The types of the SDKs take a while. Agents send fields that these types do not have.
    if checker and not steps and number % 10 == 0:
        found = checker.check(body, kind)[2]
        if found:
            return found
    return rules.violations(kind, body)


def limit(body):
    """The tokens of the answer that a request asks for."""
    return next((body[key] for key in ("max_tokens", "max_completion_tokens", "max_output_tokens") if body.get(key)), 0)


def list_of(kind, body):
    items = body["input"] if kind == "responses" else body["messages"]
    return [{"role": "user", "content": items}] if isinstance(items, str) else items


def unread(kind, body):
    """What comes after the last answer of the model."""
    items = list_of(kind, body)
    last = max((at for at, item in enumerate(items) if item.get("role") == "assistant"
                or item.get("type") in ("function_call", "reasoning")), default=-1)
    return items[last + 1:]


def head(kind, body):
    """System prompt and tools."""
    first = [item for item in list_of(kind, body) if item.get("role") in ("system", "developer")]
    return [body.get("system"), body.get("instructions"), body.get("tools"), first]


def has_result(kind, body):
    if kind == "responses":
        return not isinstance(body["input"], str) and body["input"][-1].get("type") == "function_call_output"
    last = body["messages"][-1]
    if kind == "openai":
        return last["role"] == "tool"
    content = last["content"]
    return not isinstance(content, str) and any(block["type"] == "tool_result" for block in content)


# How the shells of agents are called: the field of the command.
SHELLS = {"bash": "command", "Bash": "command", "exec_command": "cmd", "shell_command": "command",
          "run_shell_command": "command", "execute_command": "command"}


def shell(body):
    """The name of the agent's shell and the parameters that it requires; none if it has no shell."""
    for tool in body.get("tools") or []:
        tool = tool.get("function") or tool
        if tool.get("name") in SHELLS:
            schema = tool.get("parameters") or tool.get("input_schema") or {}
            required = {name: schema["properties"][name].get("type") for name in schema.get("required", [])}
            return tool["name"], required
    return None


def lines(number):
    # Every seventh result is three times as long.
    return 180 if number % 7 == 0 else 60


def command(number):
    # Without the wait, an agent's shell may lose what was written just before the end.
    return f"seq -f 'step {number}: line %g of a long report about the build' {lines(number)}; sleep 0.2"


def next_call(body):
    """The name and the input of the tool that the agent is to run."""
    if not steps:
        return "read", {"path": f"src/part_{seen['answered']}.rs"}
    name, required = shell(body)
    values = {"string": "Run the next step", "boolean": False}
    filled = {key: values[kind] for key, kind in required.items() if kind in values}
    return name, {**filled, SHELLS[name]: command(step["number"])}


def read_result(kind, body):
    """Judges the newest result, and decides whether the same command or the next one follows."""
    if not step["number"]:
        step["number"] = 1
        return
    newest = json.dumps(unread(kind, body), ensure_ascii=False)
    count = lines(step["number"])
    missing = [line for line in range(1, count + 1)
               if f"step {step['number']}: line {line} of a long report about the build" not in newest]
    if missing:
        # With 500 tokens for what stands around the lines.
        whole = rules.tokens(head(kind, body)) + count * 12 + 500 + (limit(body) if options.sum else 0)
        if whole <= window:
            seen["unread_changed"].append({"step": step["number"], "missing": len(missing), "of": count,
                                           "request": len(json.dumps(body)) // 4, "would_be": whole})
        else:
            seen["unread_too_large"] += 1
        if step["tries"] < MOST_REPEATS:
            step["tries"] += 1
            seen["repeated"] += 1
            return
    step.update(number=step["number"] + 1, tries=0)


def next_text(kind, body):
    """The text of the answer; none if it is a call."""
    if steps:
        if not shell(body):
            seen["beside"] += 1
            return "Steps of the build"
        read_result(kind, body)
        if step["number"] > steps:
            seen["done"] = True
            return f"All {steps} steps are done."
    elif has_result(kind, body):
        return f"Part {seen['answered']} is done. " + "It was read and understood. " * 8
    return None


def answer(kind, number, tool, text, usage, in_stream):
    """The whole answer with its usage (for a stream of Chat Completions only if it was asked for), and the
    events of its stream."""
    name, arguments = tool[0], json.dumps(tool[1])
    call = f"call_{number}"
    if kind == "anthropic":
        block = {"type": "text", "text": text} if text else {
            "type": "tool_use", "id": "toolu_" + call, "name": name, "input": tool[1]}
        reason = "end_turn" if text else "tool_use"
        whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": [block],
                 "stop_reason": reason, "stop_sequence": None, "usage": usage}
        start = {"type": "text", "text": ""} if text else {**block, "input": {}}
        delta = {"type": "text_delta", "text": text} if text else {
            "type": "input_json_delta", "partial_json": arguments}
        return whole, [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": usage["output_tokens"]}},
            {"type": "message_stop"}]
    if kind == "openai":
        message = {"role": "assistant", "content": text}
        if not text:
            message["tool_calls"] = [{"id": call, "type": "function",
                                      "function": {"name": name, "arguments": arguments}}]
        choice = {"index": 0, "message": message, "finish_reason": "stop" if text else "tool_calls"}
        base = {"id": f"chatcmpl-{number}", "created": 1, "model": "m"}
        delta = json.loads(json.dumps(message))
        for part in delta.get("tool_calls", []):
            part["index"] = 0
        chunks = [{**base, "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": d, "finish_reason": r}]} for d, r in [(delta, None), ({}, choice["finish_reason"])]]
        sums = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"],
                "total_tokens": sum(usage.values())}
        if in_stream:
            chunks.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": sums})
        return {**base, "object": "chat.completion", "choices": [choice], "usage": sums}, chunks
    item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]} if text else {
        "id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": call,
        "name": name, "arguments": arguments}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "status": "completed",
             "output": [item], "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
             "usage": {**usage, "total_tokens": sum(usage.values()), "input_tokens_details": {"cached_tokens": 0},
                       "output_tokens_details": {"reasoning_tokens": 0}}}
    events = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole}]
    return whole, [{**event, "sequence_number": at} for at, event in enumerate(events)]


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without it every answer waits for the acknowledgement of the one before.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body):
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(200, "application/json", json.dumps(seen if self.path == "/seen" else {"data": []}))

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"]))
        kind = KINDS.get(self.path.split("?")[0])
        if not kind:
            return self.reply(404, "application/json", json.dumps({"error": {"message": self.path}}))
        body, tokens = json.loads(raw), len(raw) // 4
        with lock:
            self.respond(kind, body, tokens)

    def respond(self, kind, body, tokens):
        wrong = violations(kind, body, seen["answered"])
        if wrong:
            seen["illegal"].append(wrong[0])
            error = {"type": "invalid_request_error", "message": wrong[0]}
            return self.reply(400, "application/json", json.dumps({"type": "error", "error": error}))
        if tokens + (limit(body) if options.sum else 0) > window:
            seen["refused"] += 1
            error = rules.refusal(kind, tokens, limit(body), window, options.sum)
            if options.in_stream and body.get("stream"):
                return self.stream(kind, rules.refusal_events(kind, error))
            return self.reply(400, "application/json", json.dumps(error))
        seen["answered"] += 1
        seen["largest"] = max(seen["largest"], tokens)
        seen["over"] += tokens > window * 0.8
        text = next_text(kind, body)
        tool = ("", {}) if text else next_call(body)
        usage = {"input_tokens": tokens, "output_tokens": rules.tokens(text or tool[1])}
        in_stream = (body.get("stream_options") or {}).get("include_usage", False)
        whole, events = answer(kind, seen["answered"], tool, text, usage, in_stream)
        if not body.get("stream"):
            return self.reply(200, "application/json", json.dumps(whole))
        self.stream(kind, events)

    def stream(self, kind, events):
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
        end = "data: [DONE]\n\n" if kind == "openai" else ""
        self.reply(200, "text/event-stream", "".join(lines) + end)


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
