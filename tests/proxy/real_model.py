#!/usr/bin/env python3
"""Talks to a small real model with the official Python SDKs until the thread exceeds its window.

usage: real_model.py messages|chat BASE_URL TURNS
Half of the turns stream, every third one calls a tool. Prints the bytes of its thread; ends with the
SDK's own error if one comes.
"""
import json, sys

kind, base, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "enum": ["a.rs", "b.rs"]}},
          "required": ["path"]}
thread = []


def messages(client, streams, calls):
    options = dict(model="smollm2", max_tokens=32, messages=thread)
    if calls:
        tool = {"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}
        options.update(tools=[tool], tool_choice={"type": "tool", "name": "read"})
    if streams:
        with client.messages.stream(**options) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**options)
    thread.append({"role": "assistant", "content": [block.model_dump(exclude_none=True, include={
        "type", "text", "id", "name", "input"}) for block in answer.content]})
    for block in answer.content:
        if block.type == "tool_use":
            thread.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": block.id, "content": "fn part() {}\n" * 12}]})


def chat(client, streams, calls):
    options = dict(model="smollm2", max_tokens=32, messages=thread)
    if calls:
        function = {"name": "read", "parameters": SCHEMA}
        options.update(tools=[{"type": "function", "function": function}],
                       tool_choice={"type": "function", "function": {"name": "read"}})
    if streams:
        # The SDK's own reader of streams takes an answer at its limit for an error.
        pieces = client.chat.completions.create(stream=True, **options)
        text = "".join(choice.delta.content or "" for piece in pieces for choice in piece.choices)
        thread.append({"role": "assistant", "content": text or "(nothing)"})
        return
    answer = client.chat.completions.create(**options).choices[0].message
    message = {"role": "assistant", "content": answer.content}
    if answer.tool_calls:
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": {
            "name": call.function.name, "arguments": call.function.arguments}} for call in answer.tool_calls]
    thread.append(message)
    for call in answer.tool_calls or []:
        thread.append({"role": "tool", "tool_call_id": call.id, "content": "fn part() {}\n" * 12})


if kind == "messages":
    import anthropic
    client, ask = anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0, timeout=120), messages
else:
    import openai
    client, ask = openai.OpenAI(base_url=base + "/v1", api_key="sk-test", max_retries=0, timeout=120), chat
for number in range(turns):
    thread.append({"role": "user", "content": f"What is part {number} of a tide station? " + "Be short. " * 20})
    if number % 3 == 2:
        ask(client, False, True)
    ask(client, number % 2 == 0, False)
print(len(json.dumps(thread)))
