// Opens each page at two widths and in two themes, and judges it. See tests/pages.sh.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

import { focused, judged, unreached } from "./judge.mjs";
import { provider, proxy, thread } from "./threads.mjs";

const [browser, program, folder, root, pictures] = process.argv.slice(2);
const WIDTHS = [1280, 390];
const THEMES = ["light", "dark"];
/** The least size of a text, in pixels. */
const LEAST = 9.5;
/** A thread that `hindsight` is quick with. */
const SHORT = "testdata/threads/openai-chat/german-backup-server.json";

const THREADS = [
  { client: "claude-cli/2.1.0 (external, cli)", model: "claude-haiku-4-5", steps: 40,
    words: "Read every part of the build, say which are missing, and do not change anything in the folder vendor." },
  { client: "codex_cli_rs/0.98.0", model: "gpt-5.2", steps: 14,
    words: "<environment_context><cwd>/home</cwd></environment_context>" },
  { client: "", model: "a-model-of-my-own-with-a-very-long-name:8b", steps: 14,
    words: `<script>alert(1)</script> ${"averylongwordwithoutanyblank".repeat(8)}` },
];

async function main() {
  const upstream = await provider();
  const [empty, full] = await Promise.all(
    ["empty", "full"].map((name) => proxy(program, upstream.url, join(folder, name))));
  for (const one of THREADS) await thread(full.url, one);
  const pages = [["none", `${empty.url}/threadfold`], ["list", `${full.url}/threadfold`],
    ["missing", `${full.url}/threadfold/no`]];
  const list = await (await fetch(`${full.url}/threadfold`)).text();
  const links = [...list.matchAll(/href="(\/threadfold\/threads\/[^"]+)"/g)].map((found) => found[1]);
  if (links.length !== THREADS.length) throw new Error(`${links.length} threads are listed`);
  links.forEach((link, at) => pages.push([`thread-${at}`, full.url + link]));
  pages.push(...made());

  const opened = await chromium.launchPersistentContext(join(folder, "profile"), {
    executablePath: browser,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const complaints = [];
  try {
    for (const [name, url] of pages) {
      for (const width of WIDTHS) {
        for (const theme of THEMES) {
          const found = await look(opened, url, width, theme, `${name}-${width}-${theme}`);
          complaints.push(...found.map((one) => `${name}, ${width} pixels, ${theme}: ${one}`));
        }
      }
    }
  } finally {
    await opened.close();
    for (const server of [empty, full, upstream]) server.close();
  }
  if (complaints.length > 0) {
    console.log([...new Set(complaints)].slice(0, 60).join("\n"));
    process.exit(1);
  }
  console.log(`${pages.length} pages at ${WIDTHS.join(" and ")} pixels, light and dark: no overflow, contrast AA, ` +
    "every link reached by keyboard");
}

/** The pages that commands write to files, and the picture of the README. */
function made() {
  const run = (...all) => execFileSync(program, all, { stdio: ["ignore", "ignore", "inherit"] });
  const file = (name) => join(folder, `${name}.html`);
  const short = join(root, SHORT);
  run("hindsight", "--page", file("hindsight"), short);
  const pi = join(root, "crates/threadfold-cli/testdata/pi-session.jsonl");
  run("import", pi, "-o", join(folder, "log.jsonl"));
  run("report", join(folder, "log.jsonl"), "-o", file("report"));
  const urls = ["hindsight", "report"].map((name) => [name, pathToFileURL(file(name)).href]);
  return [...urls, ["picture", null]];
}

async function look(opened, url, width, theme, name) {
  const page = await opened.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: theme });
  if (url) {
    await page.goto(url);
  } else {
    // As wide as a README is on this screen.
    const picture = readFileSync(join(root, "docs/session.svg"), "utf8");
    await page.setContent(`<!DOCTYPE html><html lang="en"><title>Picture</title><body style="margin:16px">
      <main style="max-width:830px;margin:auto">${picture}</main></body></html>`);
  }
  const complaints = await page.evaluate(judged, LEAST);
  if (pictures) {
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  }
  for (let presses = 0; presses < 2_000; presses++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(focused);
    if (at === null) break;
    if (!at.isSeen) complaints.push(`the focus is not seen: ${at.name}`);
  }
  complaints.push(...(await page.evaluate(unreached)));
  await page.close();
  return complaints;
}

await main();
