// Elements made from text alone: nothing that came from outside is ever read as markup.

/** An element with attributes, properties of `on` as listeners, and children (texts stay texts). */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Text for people who see no picture. */
export const hidden = (text) => el("span", { class: "unseen" }, text);

// What would not be seen, or would change how its neighbours are read: controls, line ends, marks of direction, zero width.
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const visible = (text) =>
  text.replace(UNSEEN, (mark) => (mark < " " ? String.fromCodePoint(0x2400 + mark.codePointAt(0)) : "\ufffd"));

const letters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** At most `length` characters as a reader counts them, and few marks on each. */
export function cut(text, length) {
  let short = "";
  let count = 0;
  for (const { segment } of letters.segment(text.slice(0, length * 16))) {
    if (++count > length) return `${short.trimEnd()}…`;
    short += segment.length > 16 ? segment.slice(0, 16) : segment;
  }
  return text.length > length * 16 ? `${short}…` : short;
}

/** An item as somebody typed it: isolated from its surroundings, cut, nothing invisible, the whole of it on hover. */
export function itemElement(item, length = 48) {
  const text = visible(String(item));
  if (text.trim() === "") return el("bdi", { class: "item blank" }, text === "" ? "(empty)" : "(blanks)");
  const short = cut(text, length);
  return el("bdi", { class: "item", dir: "auto", title: short === text ? null : cut(text, 400) }, short);
}

/** The same as plain text, for labels that are read aloud. */
export const itemText = (item, length = 48) => cut(visible(String(item)), length) || "(empty)";
