// What a page must have, judged inside the browser. Each function returns a list of complaints.

/** Nothing is wider than the screen but what scrolls by itself, every text can be read, and the page has
 * a language and a title. */
export function judged(least) {
  const complaints = [];
  const say = (what, element) => {
    const text = (element?.textContent ?? "").trim().slice(0, 40);
    complaints.push(element ? `${what}: <${element.tagName.toLowerCase()}> ${text}` : what);
  };
  const root = document.documentElement;
  if (root.lang === "") say("the page has no language");
  if (document.title === "") say("the page has no title");
  if (root.scrollWidth > root.clientWidth) say(`the page scrolls: ${root.scrollWidth} of ${root.clientWidth}`);

  const rgba = (color) => {
    const numbers = (color.match(/[\d.]+/g) ?? []).map(Number);
    return { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 };
  };
  const over = (one, below) => one.rgb.map((part, at) => part * one.alpha + below[at] * (1 - one.alpha));
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color.alpha > 0) layers.push(color);
      if (color.alpha === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const scrolls = (element) => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || seen.has(element)) continue;
    seen.add(element);
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (box.width === 0 || style.visibility === "hidden" || element.closest("title, style")) continue;
    const isDrawn = element instanceof SVGElement;
    const scale = isDrawn ? element.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < least) say(`${size.toFixed(1)} pixels`, element);
    const color = rgba(isDrawn ? style.fill : style.color);
    const below = background(isDrawn ? element.ownerSVGElement : element);
    const found = contrast(over(color, below), below);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (found < (isLarge ? 3 : 4.5)) say(`contrast ${found.toFixed(2)}`, element);
    if ((box.right > root.clientWidth + 1 || box.left < -1) && !scrolls(element)) say("beyond the screen", element);
  }
  for (const tiles of document.querySelectorAll(".tiles")) {
    const rows = new Map();
    for (const tile of tiles.children) {
      const box = tile.getBoundingClientRect();
      rows.set(Math.round(box.top), Math.max(rows.get(Math.round(box.top)) ?? 0, box.right));
    }
    const edge = tiles.getBoundingClientRect().right - 2;
    for (const right of rows.values()) if (right < edge) say("an empty tile", tiles);
  }
  if (/\b0\s*% of 0\b|NaN|undefined|\bof 0 in all/.test(document.body.innerText)) say("an empty figure");
  return complaints;
}

/** The element that has the focus: a mark of its own, and whether a person sees that it has it. */
export function focused() {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const style = getComputedStyle(element);
  const mark = element.querySelector(".mark");
  const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const isDrawn = mark !== null && parseFloat(getComputedStyle(mark).strokeWidth) >= 3;
  element.dataset.reached = "yes";
  return { name: element.outerHTML.slice(0, 80), isSeen: isOutlined || isDrawn };
}

/** What can have the focus and was not reached. */
export function unreached() {
  const all = [...document.querySelectorAll("a[href], summary, [tabindex]")];
  const shown = all.filter((element) => element.getBoundingClientRect().width > 0);
  const missed = shown.filter((element) => element.dataset.reached !== "yes");
  return missed.map((element) => `not reached by keyboard: ${element.outerHTML.slice(0, 80)}`);
}
