#!/usr/bin/env python3
"""An agent on the official Python SDKs that sends its whole thread each time.

usage: agent.py messages|chat|responses BASE_URL TURNS
Half of the turns stream. Prints the bytes of its thread; ends with the SDK's own error if one comes.
"""
import json, sys

kind, base, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
thread = []


def user(number):
    return f"Go on with part {number}. " + "Read it with care. " * 8


def result(number):
    return f"src/part_{number}.rs: " + "fn part() {}\n" * 16


def messages(client, streams):
    options = dict(model="unheard-of", max_tokens=256, system="You are careful.", messages=thread,
                   tools=[{"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}])
    if streams:
        with client.messages.stream(**options) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**options)
    thread.append({"role": "assistant", "content": [block.model_dump(exclude_none=True, include={
        "type", "text", "id", "name", "input"}) for block in answer.content]})
    calls = [block for block in answer.content if block.type == "tool_use"]
    return calls, lambda number: thread.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": result(number)} for call in calls]})


def chat(client, streams):
    options = dict(model="unheard-of", max_completion_tokens=256, messages=thread, tools=[
        {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}])
    if streams:
        with client.chat.completions.stream(**options) as stream:
            answer = stream.get_final_completion().choices[0].message
    else:
        answer = client.chat.completions.create(**options).choices[0].message
    message = {"role": "assistant", "content": answer.content}
    calls = answer.tool_calls or []
    if calls:
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": {
            "name": call.function.name, "arguments": call.function.arguments}} for call in calls]
    thread.append(message)
    return calls, lambda number: thread.extend(
        {"role": "tool", "tool_call_id": call.id, "content": result(number)} for call in calls)


def responses(client, streams):
    options = dict(model="unheard-of", max_output_tokens=256, input=thread, store=False, tools=[
        {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}])
    if streams:
        with client.responses.stream(**options) as stream:
            answer = stream.get_final_response()
    else:
        answer = client.responses.create(**options)
    kept = {"type", "id", "role", "status", "content", "call_id", "name", "arguments"}
    thread.extend(item.model_dump(exclude_none=True, include=kept) for item in answer.output)
    calls = [item for item in answer.output if item.type == "function_call"]
    return calls, lambda number: thread.extend(
        {"type": "function_call_output", "call_id": call.call_id, "output": result(number)} for call in calls)


if kind == "messages":
    import anthropic
    client, ask = anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0), messages
else:
    import openai
    client = openai.OpenAI(base_url=base + "/v1", api_key="sk-test", max_retries=0)
    ask = chat if kind == "chat" else responses
for number in range(turns):
    thread.append({"role": "user", "content": user(number)})
    while True:
        calls, answer_calls = ask(client, number % 2 == 0)
        if not calls:
            break
        answer_calls(number)
print(len(json.dumps(thread)))
