// The front page: a card for each stream. It asks once after every tick, by the clock, and keeps no connection open.

import { warnings } from "./about.js";
import { Refused, releases, streams } from "./api.js";
import { Chart } from "./chart.js";
import { byId, el, hidden, itemElement, itemText } from "./dom.js";
import { clock, duration, end, number } from "./format.js";
import { line, rows, single, times, withGaps } from "./numbers.js";
import { operator } from "./operator.js";
import * as words from "./words.js";

const TICKS = 60; // of a card's line
const DAYS = 30; // the same of days
const cards = new Map();
let timer = null;

class Card {
  constructor(stream) {
    this.history = [];
    this.days = []; // the last of every day, of a stream that begins anew
    this.run = 0;
    this.name = stream.name;
    this.head = el("h2", {}, el("a", { href: `/streams/${encodeURIComponent(stream.name)}` }, words.title(stream)));
    this.number = el("div", { class: "headline" });
    this.warnings = el("div", {});
    this.picture = el("div", { class: "spark", role: "img" });
    this.picture.hidden = true; // until there is something to draw, and to say of it
    this.facts = el("dl", { class: "small-facts" });
    this.chart = new Chart(this.picture, { small: true });
    this.node = el("article", { class: `card kind-${stream.kind}`, "data-stream": stream.name },
      this.head, this.number, this.warnings, this.picture, this.facts);
  }

  async update(stream) {
    if (stream.per) {
      if (this.run !== stream.run) {
        const since = this.days.at(-1)?.tick ?? Math.max(0, (stream.latest?.tick ?? 0) - DAYS * stream.run_ticks);
        this.days = [...this.days, ...(await releases(stream.name, { final: true, from: since + 1 }))].slice(-DAYS);
        this.run = stream.run;
      }
      this.history = stream.latest ? [stream.latest] : [];
      return this.show(stream);
    }
    const last = this.history.at(-1)?.tick ?? 0;
    const published = stream.latest?.tick ?? 0;
    if (published === last + 1) this.history.push(stream.latest);
    else if (published > last) {
      this.history.push(...(await releases(stream.name, { from: Math.max(last + 1, published - TICKS + 1), to: published })));
    }
    this.history = this.history.slice(-TICKS);
    this.show(stream);
  }

  show(stream) {
    const release = this.history.at(-1) ?? null;
    const found = rows(stream, release);
    const first = found[0];
    this.number.replaceChildren(...(first ? this.figures(stream, found) : [el("p", { class: "empty" }, words.nothing(stream, release))]));
    this.warnings.replaceChildren(...warnings(stream));
    this.picture.hidden = !first;
    if (first) {
      const drawn = stream.per && this.days.length > 1 ? this.days : withGaps(this.history);
      const { values, lower, upper } = line(stream, drawn, first.item);
      this.chart.draw(times(drawn), [{ colour: 0, values, lower, upper }]);
      const name = first.item === null ? words.title(stream) : itemText(first.item);
      const when = (point) => (stream.per && this.days.length > 1 ? `on ${words.day(point.period, stream)}` : `at ${clock(point.ends, stream.tick_seconds)}`);
      const known = drawn.map((point, index) => [values[index], point]).filter(([value]) => value !== null);
      this.picture.hidden = known.length === 0;
      if (known.length) {
        const [[from, begin], [to, end]] = [known[0], known.at(-1)];
        this.picture.setAttribute("aria-label", `${name}, from ${number(from)} ${when(begin)} to ${number(to)} ${when(end)}`);
      }
    }
    this.facts.replaceChildren(...facts(stream, release, this.days.at(-1)).flatMap(([term, text]) => [el("div", {}, el("dt", {}, term), el("dd", {}, text))]));
  }

  figures(stream, found) {
    const [first] = found;
    const sofar = stream.per && !stream.latest.final ? ` so far${stream.per === "1d" ? " today" : ""}` : "";
    const value = el("p", { class: "value" }, el("strong", {}, number(first.value)), " ", el("span", {}, words.unit(stream, first.value) + sofar));
    const range = el("p", { class: "range" }, words.estimate(stream, first));
    if (single(stream)) return [value, range];
    const list = el("ol", { class: "leaders" }, found.slice(0, 3).map((row) => el("li", {},
      itemElement(row.item, 40), el("span", { class: "figure" }, number(row.value), hidden(`, ${words.estimate(stream, row)}`)))));
    return [list, el("p", { class: "range" }, `The first: ${words.estimate(stream, first)}.`)];
  }
}

function facts(stream, release, yesterday) {
  const before = rows(stream, yesterday).find((row) => single(stream) || row.item === rows(stream, release)[0]?.item);
  return [
    ...(before ? [[stream.per === "1d" ? words.day(yesterday.period, stream) : "The one before", number(before.value)]] : []),
    ["Protects", words.protects(stream)],
    ...(stream.per ? [] : [[stream.state === "ended" ? "Ended" : "Until", end(stream.ends, words.length(stream))]]),
    release ? ["Updated", clock(release.ends, stream.tick_seconds)] : ["Begins", clock(stream.begins, stream.tick_seconds)],
  ];
}

function problem(text) {
  const box = byId("problem");
  box.hidden = !text;
  box.textContent = text ?? "";
}

async function refresh() {
  clearTimeout(timer);
  let wait = 10000;
  try {
    const { title, streams: found } = await streams();
    document.title = byId("title").textContent = title;
    const area = byId("cards");
    for (const [name, card] of cards) {
      if (found.some((stream) => stream.name === name)) continue;
      card.node.remove();
      cards.delete(name);
    }
    if (area.getAttribute("aria-busy") === "true" || (found.length && !cards.size)) area.replaceChildren();
    if (!found.length && !area.children.length) {
      area.append(el("p", { class: "empty" }, "Nothing is published here yet. Streams that are not public appear once a token is given below."));
    }
    for (const stream of found) {
      if (!cards.has(stream.name)) {
        const card = new Card(stream);
        cards.set(stream.name, card);
        area.append(card.node);
      }
    }
    area.setAttribute("aria-busy", "false");
    await Promise.all(found.map((stream) => cards.get(stream.name).update(stream)));
    problem(null);
    const next = found.filter((stream) => stream.state !== "ended" && stream.next_tick).map((stream) => Date.parse(stream.next_tick) - Date.now());
    byId("connection").textContent = found.length ? (next.length ? "live" : "all streams have ended") : "";
    byId("connection").classList.toggle("on", next.length > 0);
    // Shortly after the tick, when it is likely to be published; never more than once a second.
    if (next.length) wait = Math.min(Math.max(Math.min(...next) + 250, 1000), 60000);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    byId("connection").textContent = "not connected";
    byId("connection").classList.remove("on");
    problem(`${error.message} The page tries again in ${duration(wait / 1000)}.`);
  }
  if (!document.hidden) timer = setTimeout(refresh, wait);
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
operator(refresh);
refresh();
