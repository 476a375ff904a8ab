#!/usr/bin/env python3
"""A provider on loopback for tests/proxy.sh: a small window, the providers' rules, a script of answers.

usage: upstream.py WINDOW CHECKER [STEPS]
CHECKER is a file with the rules of the providers (`check` and `*_rules`). Prints its port, then serves.
A call of the tool `read` answers what the user typed, and a text answers the result. With STEPS so many
calls of the agent's own shell come first, and then a text, which ends its task. `GET /seen` tells how
many requests were answered, refused for their length, and illegal.
"""
import importlib.util, json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

window = int(sys.argv[1])
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 0
spec = importlib.util.spec_from_file_location("checker", sys.argv[2])
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
seen = {"answered": 0, "refused": 0, "illegal": [], "largest": 0}
lock = threading.Lock()
KINDS = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/v1/responses": "responses"}


def violations(kind, body, number):
    items = body["input"] if kind == "responses" else body["messages"]
    # The types of the SDKs take a while; the rules of pairs and order do not. Agents send fields that
    # these types do not have.
    if not steps and number % 10 == 0:
        return checker.check(body, kind)[2]
    if isinstance(items, str):
        return []
    rules = getattr(checker, kind + "_rules")(items, False)
    return rules[0] if isinstance(rules, tuple) else rules


def has_result(kind, body):
    if kind == "responses":
        return not isinstance(body["input"], str) and body["input"][-1].get("type") == "function_call_output"
    last = body["messages"][-1]
    if kind == "openai":
        return last["role"] == "tool"
    content = last["content"]
    return not isinstance(content, str) and any(block["type"] == "tool_result" for block in content)


# How the shells of agents are called: the field of the command.
SHELLS = {"bash": "command", "exec_command": "cmd", "shell_command": "command", "run_shell_command": "command"}


def next_call(body, number):
    """The name and the input of the tool that the agent is to run."""
    tools = [tool.get("name") or tool.get("function", {}).get("name") for tool in body.get("tools", [])]
    for shell, field in SHELLS.items():
        if steps and shell in tools:
            return shell, {field: f"seq -f 'step {number}: line %g of a long report about the build' 60"}
    return "read", {"path": f"src/part_{number}.rs"}


def next_text(kind, body, number):
    """The text of the answer; none if it is a call."""
    if steps and number > steps:
        return f"All {steps} steps are done."
    if not steps and has_result(kind, body):
        return f"Part {number} is done. " + "It was read and understood. " * 8
    return None


def answer(kind, number, tool, text):
    """The whole answer, and the events of its stream."""
    name, arguments = tool[0], json.dumps(tool[1])
    call = f"call_{number}"
    if kind == "anthropic":
        block = {"type": "text", "text": text} if text else {
            "type": "tool_use", "id": "toolu_" + call, "name": name, "input": tool[1]}
        reason = "end_turn" if text else "tool_use"
        usage = {"input_tokens": 9, "output_tokens": 9}
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block],
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
             "usage": {"output_tokens": 9}},
            {"type": "message_stop"}]
    if kind == "openai":
        message = {"role": "assistant", "content": text}
        if not text:
            message["tool_calls"] = [{"id": call, "type": "function",
                                      "function": {"name": name, "arguments": arguments}}]
        choice = {"index": 0, "message": message, "finish_reason": "stop" if text else "tool_calls"}
        base = {"id": "c1", "created": 1, "model": "m"}
        delta = json.loads(json.dumps(message))
        for part in delta.get("tool_calls", []):
            part["index"] = 0
        chunks = [{**base, "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": d, "finish_reason": r}]} for d, r in [(delta, None), ({}, choice["finish_reason"])]]
        return {**base, "object": "chat.completion", "choices": [choice]}, chunks
    item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]} if text else {
        "id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": call,
        "name": name, "arguments": arguments}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "status": "completed",
             "output": [item], "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    events = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
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
            number = seen["answered"]
        wrong = violations(kind, body, number)
        if wrong:
            with lock:
                seen["illegal"].append(wrong[0])
            return self.reply(400, "application/json", json.dumps({"error": {"message": wrong[0]}}))
        if tokens > window:
            with lock:
                seen["refused"] += 1
            words = {"anthropic": f"prompt is too long: {tokens} tokens > {window} maximum"}.get(
                kind, f"This model's maximum context length is {window} tokens. "
                      f"However, your messages resulted in {tokens} tokens.")
            error = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": words}
            return self.reply(400, "application/json", json.dumps({"type": "error", "error": error}))
        with lock:
            seen["answered"] += 1
            seen["largest"] = max(seen["largest"], tokens)
            number = seen["answered"]
        text = next_text(kind, body, number)
        whole, events = answer(kind, number, next_call(body, number), text)
        if not body.get("stream"):
            return self.reply(200, "application/json", json.dumps(whole))
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
