// Fills a proxy with threads: a provider that answers anything, a proxy in front of it, and clients
// whose threads grow beyond the window.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

const ANSWER = JSON.stringify({
  id: "m", type: "message", role: "assistant", model: "m", stop_reason: "end_turn",
  content: [{ type: "text", text: "Done." }], usage: { input_tokens: 0, output_tokens: 0 },
});

/** A provider that accepts whatever it gets; returns its address. */
export async function provider() {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(ANSWER);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** A proxy in front of a provider, with a small window; returns its address. */
export async function proxy(program, upstream, folder) {
  const options = ["--anthropic", upstream, "--openai", upstream, "--folder", folder];
  const started = spawn(program, ["proxy", "--listen", "127.0.0.1:0", "--window", "6000", ...options]);
  let said = "";
  const url = await new Promise((resolve, reject) => {
    started.stderr.on("data", (piece) => {
      said += piece;
      const found = said.match(/listening on (\S+),/);
      if (found) resolve(found[1]);
    });
    started.on("exit", () => reject(new Error(`the proxy ended: ${said}`)));
  });
  return { url, close: () => started.kill("SIGKILL") };
}

/** Sends a thread that grows by a call of a tool with each step. */
export async function thread(url, { client, model, words, steps }) {
  const messages = [{ role: "user", content: words }];
  for (let step = 0; step < steps; step++) {
    const body = JSON.stringify({ model, max_tokens: 500, messages });
    const headers = { "content-type": "application/json", "user-agent": client };
    const answer = await fetch(`${url}/v1/messages`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    const id = `toolu_${step}`;
    const input = { path: `src/part_${step}.rs`, of: "a/long/path/without/any/blank/".repeat(3) };
    const text = `error[E0425]: cannot find value \`part_${step}\` in src/part_${step}.rs:${step}\n`.repeat(20);
    messages.push(
      { role: "assistant", content: [
        { type: "text", text: `I look at part ${step}, and remember port ${8000 + step}.` },
        { type: "tool_use", id, name: "read", input }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
    );
  }
}
