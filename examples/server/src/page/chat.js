"use strict";

// The thread of this browser. Its name is as good as a password here: nobody can guess it.
const thread = localStorage.getItem("thread") ?? crypto.randomUUID();
localStorage.setItem("thread", thread);
const place = `/threads/${encodeURIComponent(thread)}`;

const list = document.getElementById("thread");
const form = document.getElementById("form");
const input = document.getElementById("text");
const meter = document.getElementById("meter");
const again = document.getElementById("again");
const stop = document.getElementById("stop");

// Texts are only ever set as text, never as markup.
function add(kind, text) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  list.append(line);
  list.scrollTop = list.scrollHeight;
  return line;
}

// The messages so far. While a turn of another page runs, they are asked for again.
async function load() {
  const answer = await fetch(place);
  if (!answer.ok) return add("note failed", await answer.text());
  const { messages, busy, unfinished, answer: begun, usage } = await answer.json();
  list.replaceChildren();
  for (const { from, text } of messages) add(from, text);
  stop.disabled = !busy;
  again.hidden = !unfinished;
  fill(usage);
  if (busy) {
    add("assistant", `${begun ?? ""} …`);
    setTimeout(load, 1000);
  }
}

// How full the window is.
function fill(usage) {
  if (!usage?.contextLimit) return;
  meter.max = usage.contextLimit;
  meter.value = usage.contextTokens;
  meter.title = `${usage.contextTokens} of ${usage.contextLimit} tokens`;
}

// Sends a text, or goes on with a turn that broke off.
async function send(text) {
  const answer = await fetch(text ? `${place}/turns` : `${place}/continue`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: text && JSON.stringify({ text }),
  });
  if (answer.status === 202) return text && add("note", `Queued: ${text}`);
  if (!answer.ok) return add("note failed", await answer.text());
  if (text) add("user", text);
  stop.disabled = false;
  again.hidden = true;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const show = turn();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data: "));
        if (data.length) show(JSON.parse(data.map((line) => line.slice(6)).join("\n")));
      }
    }
  } catch (error) {
    add("note failed", `The connection broke: ${error.message}`);
  }
  stop.disabled = true;
  const after = await fetch(place);
  if (!after.ok) return;
  const { unfinished, usage } = await after.json();
  again.hidden = !unfinished;
  fill(usage);
}

// What one turn shows, event by event.
function turn() {
  let line = null;
  return (event) => {
    switch (event.type) {
      case "text_delta":
        line ??= add("assistant", "");
        line.textContent += event.text;
        list.scrollTop = list.scrollHeight;
        break;
      case "answer_discarded":
        line?.remove();
        line = null;
        break;
      case "tool_started":
        line = null;
        add("tool", `${event.name} ${event.input}`);
        break;
      case "queued_message":
        line = null;
        add("user", event.text);
        break;
      case "compaction":
        if (event.status === "started") add("note", `The thread is being compacted (${event.reason.type}) …`);
        if (event.status === "completed") {
          const { before, after } = event.report;
          add("note", `${before.messages} messages became ${after.messages}: about ${before.tokens} tokens became ${after.tokens}.`);
        }
        if (event.status === "failed") add("note failed", event.error);
        line = null;
        break;
      case "nothing_compacted":
        add("note", event.why);
        break;
      case "aborted":
        add("note", "Stopped.");
        break;
      case "failed":
        add("note failed", event.text);
        break;
    }
  };
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = input.value.trim();
  input.value = "";
  if (text) send(text);
});
stop.addEventListener("click", () => fetch(`${place}/abort`, { method: "POST" }));
again.addEventListener("click", () => send());
load();
