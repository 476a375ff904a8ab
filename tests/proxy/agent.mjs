// An agent on the official TypeScript SDKs that sends its whole thread each time.
//
// usage: agent.mjs messages|chat|responses BASE_URL TURNS
// Half of the turns stream. Prints the bytes of its thread; ends with the SDK's own error if one comes.
import { createRequire } from "node:module";
import { join } from "node:path";

// The packages are where the script is run, not where this file is.
const load = createRequire(join(process.cwd(), "package.json"));
const [kind, base, count] = process.argv.slice(2);
const schema = { type: "object", properties: { path: { type: "string" } } };
const thread = [];
const user = (number) => `Go on with part ${number}. ` + "Read it with care. ".repeat(8);
const result = (number) => `src/part_${number}.rs: ` + "fn part() {}\n".repeat(16);

async function messages(client, streams, number) {
  const options = {
    model: "unheard-of", max_tokens: 256, system: "You are careful.", messages: thread,
    tools: [{ name: "read", description: "Reads a file.", input_schema: schema }],
  };
  const answer = streams
    ? await client.messages.stream(options).finalMessage()
    : await client.messages.create(options);
  thread.push({ role: "assistant", content: answer.content });
  const calls = answer.content.filter((block) => block.type === "tool_use");
  if (calls.length > 0) {
    const results = calls.map((call) =>
      ({ type: "tool_result", tool_use_id: call.id, content: result(number) }));
    thread.push({ role: "user", content: results });
  }
  return calls.length > 0;
}

async function chat(client, streams, number) {
  const options = {
    model: "unheard-of", max_completion_tokens: 256, messages: thread,
    tools: [{ type: "function", function: { name: "read", parameters: schema } }],
  };
  const answer = streams
    ? await client.chat.completions.stream(options).finalChatCompletion()
    : await client.chat.completions.create(options);
  const { content, tool_calls: calls } = answer.choices[0].message;
  const bare = (calls ?? []).map(({ id, function: { name, arguments: input } }) =>
    ({ id, type: "function", function: { name, arguments: input } }));
  thread.push(bare.length > 0
    ? { role: "assistant", content, tool_calls: bare } : { role: "assistant", content });
  for (const call of bare) {
    thread.push({ role: "tool", tool_call_id: call.id, content: result(number) });
  }
  return bare.length > 0;
}

async function responses(client, streams, number) {
  const options = {
    model: "unheard-of", max_output_tokens: 256, input: thread, store: false,
    tools: [{ type: "function", name: "read", parameters: schema, strict: false }],
  };
  const answer = streams
    ? await client.responses.stream(options).finalResponse()
    : await client.responses.create(options);
  const calls = [];
  for (const { parsed_arguments: _, ...item } of answer.output) {
    if (item.type === "message") {
      item.content = item.content.map(({ parsed: _, ...part }) => part);
    }
    thread.push(item);
    if (item.type === "function_call") calls.push(item);
  }
  for (const call of calls) {
    thread.push({ type: "function_call_output", call_id: call.call_id, output: result(number) });
  }
  return calls.length > 0;
}

const ask = { messages, chat, responses }[kind];
const name = kind === "messages" ? "@anthropic-ai/sdk" : "openai";
const Client = load(name).default;
const client = new Client({
  baseURL: kind === "messages" ? base : `${base}/v1`, apiKey: "sk-test", maxRetries: 0,
});
for (let number = 0; number < Number(count); number += 1) {
  thread.push({ role: "user", content: user(number) });
  while (await ask(client, number % 2 === 0, number));
}
console.log(JSON.stringify(thread).length);
