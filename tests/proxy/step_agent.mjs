// An agent of a few lines with a library from npm: AI SDK or LangGraph, with one tool and their defaults.
//
// usage: step_agent.mjs ai-sdk|langgraph DIALECT BASE_URL FOLDER TASK
// FOLDER is where the libraries are installed.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, dialect, base, folder, task] = process.argv.slice(2);
const require = createRequire(folder + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { z } = await load("zod");
const run = ({ command }) => execFileSync("bash", ["-c", command]).toString();
const description = "Runs a command in bash and returns its output.";
const schema = z.object({ command: z.string() });

if (library === "ai-sdk") {
  const { generateText, tool, stepCountIs } = await load("ai");
  let model;
  if (dialect === "messages") {
    const { createAnthropic } = await load("@ai-sdk/anthropic");
    model = createAnthropic({ baseURL: base + "/v1", apiKey: "sk-test" })("claude-sonnet-4-5");
  } else {
    const { createOpenAI } = await load("@ai-sdk/openai");
    model = createOpenAI({ baseURL: base + "/v1", apiKey: "sk-test" }).responses("unheard-of");
  }
  const bash = tool({ description, inputSchema: schema, execute: async (input) => run(input) });
  const { text } = await generateText({
    model, tools: { bash }, stopWhen: stepCountIs(1000), maxRetries: 0, prompt: task,
  });
  console.log(text);
} else {
  const { createReactAgent } = await load("@langchain/langgraph/prebuilt");
  const { ChatOpenAI } = await load("@langchain/openai");
  const { tool } = await load("@langchain/core/tools");
  const llm = new ChatOpenAI({
    model: "unheard-of", apiKey: "sk-test", maxRetries: 0, configuration: { baseURL: base + "/v1" },
  });
  const bash = tool(run, { name: "bash", description, schema });
  const agent = createReactAgent({ llm, tools: [bash] });
  const end = await agent.invoke({ messages: [{ role: "user", content: task }] }, { recursionLimit: 1000 });
  console.log(end.messages.at(-1).content);
}
