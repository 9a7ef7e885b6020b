// A stream that begins anew every day: today so far beside the days before, the last days as bars, and a day to look at.

import { fileLink } from "./about.js";
import * as api from "./api.js";
import { byId, el, hidden, itemText } from "./dom.js";
import * as format from "./format.js";
import { rows, single } from "./numbers.js";
import * as words from "./words.js";

const BARS = 30;
const TABLE = 10; // rows of the table before "more"
const SVG = byId("days-bars").firstElementChild.namespaceURI;

const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
};

/** The next larger number that is easy to read. */
const round = (value) => {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * size >= value) * size;
};

/** Another day, by its date. */
const shifted = (period, days) => {
  const date = new Date(`${period}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + days);
  return date.toISOString().slice(0, 10);
};

export class Days {
  /** @param pick called with the last tick of a day that is chosen, and its first */
  constructor(name, pick) {
    Object.assign(this, { name, pick, stream: null, finals: [], item: null, then: [], shownRows: TABLE, chosen: null });
    byId("day").addEventListener("change", (event) => this.choose(event.target.value));
    byId("day-before").addEventListener("click", () => this.step(-1));
    byId("day-after").addEventListener("click", () => this.step(1));
    byId("day-item").addEventListener("change", (event) => ((this.item = event.target.value), this.draw()));
    byId("days-numbers").addEventListener("toggle", () => this.table());
    byId("days-more").addEventListener("click", () => ((this.shownRows += 50), this.table()));
    new ResizeObserver(() => this.stream?.per && this.bars()).observe(byId("days-bars"));
  }

  /** All days that ended, and what today has so far. */
  async load(stream) {
    this.stream = stream;
    byId("days").hidden = !stream.per;
    if (!stream.per) return;
    const known = this.finals.at(-1)?.tick ?? 0;
    const found = await api.releases(this.name, { final: true, from: known ? known + 1 : undefined });
    this.finals.push(...found.filter(({ tick }) => tick > known));
    await this.loadThen();
    this.draw();
  }

  /** A new tick: of today, or of a day that has just ended. */
  async news(stream) {
    this.stream = stream;
    if (!stream.per) return;
    const { latest } = stream;
    if (latest.final && latest.tick > (this.finals.at(-1)?.tick ?? 0)) this.finals.push(latest);
    await this.loadThen();
    this.draw();
  }

  /** The open day so far; null where it has no number yet. */
  get today() {
    const { latest } = this.stream;
    return latest && !latest.final ? latest : null;
  }

  get listed() {
    return this.today ? [...this.finals, this.today] : this.finals;
  }

  first(index) {
    return index > 0 ? this.listed[index - 1].tick + 1 : 1;
  }

  /** What the days beside it had after as many ticks. */
  async loadThen() {
    const last = this.listed.length - 1;
    this.then = [];
    if (last < 0) return;
    const passed = this.listed[last].tick - this.first(last);
    this.then = await Promise.all([1, 7].map(async (days) => {
      const index = last - days;
      if (!this.today || index < 0 || this.listed[index].tick - this.first(index) < passed) return null;
      const tick = this.first(index) + passed;
      return (await api.releases(this.name, { from: tick, to: tick }))[0] ?? null;
    }));
  }

  row(release) {
    const found = rows(this.stream, release);
    return single(this.stream) ? found[0] ?? null : found.find(({ item }) => item === this.item) ?? null;
  }

  draw() {
    const one = words.span(this.stream);
    byId("days-heading").textContent = `${one[0].toUpperCase()}${one.slice(1)} by ${one}`;
    this.items();
    this.beside();
    this.bars();
    this.picker();
    this.table();
    this.files();
  }

  items() {
    const box = byId("day-item");
    box.parentElement.hidden = single(this.stream);
    if (single(this.stream)) return;
    const found = [...new Set([...this.listed].reverse().flatMap((release) => rows(this.stream, release).map(({ item }) => item)))].slice(0, 50);
    if (!found.includes(this.item)) this.item = found[0] ?? null;
    if (document.activeElement !== box) {
      box.replaceChildren(...found.map((item) => el("option", { value: item }, itemText(item, 40))));
      box.value = this.item ?? "";
    }
    box.disabled = found.length === 0;
  }

  /** Today so far, yesterday, the same weekday; of other spans the present one and the one before. */
  beside() {
    const daily = this.stream.per === "1d";
    const last = this.listed.length - 1;
    const day = (release) => (release ? words.day(release.period, this.stream) : null);
    const shown = this.today ?? null;
    const figures = [[daily ? "Today so far" : "So far", shown, shown ? `until ${format.clock(shown.ends, this.stream.tick_seconds)}` : "The first number comes when the first tick ends.", null]];
    const before = shown ? last - 1 : last;
    figures.push([daily ? "Yesterday" : "The one before", this.listed[before], day(this.listed[before]), this.then[0]]);
    if (daily) {
      const wanted = shifted(shown?.period ?? this.stream.period ?? this.listed[last]?.period ?? "1970-01-01", -7);
      const week = this.listed.find(({ period }) => period === wanted);
      figures.push(["A week before", week, week ? day(week) : null, this.then[1]]);
    }
    byId("days-beside").replaceChildren(...figures.map(([term, release, when, then]) => {
      const row = release ? this.row(release) : null;
      const by = then ? this.row(then) : null;
      return el("div", { class: "beside" },
        el("h3", {}, term),
        el("p", { class: "value" }, el("strong", {}, row ? format.number(row.value) : "–"), " ", el("span", {}, row ? words.unit(this.stream, row.value) : "")),
        el("p", { class: "range" }, row ? format.between(row.lower, row.upper) : release ? "not published" : "not known yet"),
        by ? el("p", { class: "muted" }, `${format.number(by.value)} by this time of the day (${format.interval(by.lower, by.upper)})`) : null,
        when ? el("p", { class: "muted" }, when) : null);
    }));
  }

  bars() {
    const area = byId("days-bars");
    const shown = this.listed.slice(-BARS);
    area.hidden = shown.length === 0;
    if (area.hidden) return;
    const width = Math.max(area.clientWidth, 240);
    const height = 190;
    const [left, right, bottom, top] = [46, 22, 22, 10];
    const found = shown.map((release) => this.row(release));
    const most = round(Math.max(1, ...found.map((row) => (row ? row.upper ?? row.value : 0))));
    const y = (value) => top + (height - top - bottom) * (1 - Math.max(0, Math.min(value, most)) / most);
    const pace = (width - left - right) / Math.max(shown.length, 7);
    const thick = Math.max(3, Math.min(34, pace * 0.66));
    const lines = [0, most / 2, most].map((value) => svg("g", { class: "rule" },
      svg("line", { x1: left, x2: width, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, format.compact(value))));
    const bars = shown.map((release, index) => {
      const middle = left + pace * (index + 0.5);
      const row = found[index];
      const box = svg("g", { class: `day${release.final ? "" : " open"}${release.period === this.chosen ? " chosen" : ""}`, "data-day": release.period },
        svg("rect", { class: "hit", x: middle - pace / 2, y: 0, width: pace, height }));
      if (row) {
        const high = row.upper ?? most;
        box.append(
          svg("rect", { class: "column", x: middle - thick / 2, y: y(row.value), width: thick, height: y(0) - y(row.value), rx: 2 }),
          svg("line", { class: "whisker", x1: middle, x2: middle, y1: y(high), y2: y(row.lower ?? row.value) }));
      }
      const every = Math.ceil(58 / pace);
      if ((shown.length - 1 - index) % every === 0) box.append(svg("text", { x: middle, y: height - 5, "text-anchor": "middle" }, words.shortDay(release.period, this.stream)));
      box.append(svg("title", {}, `${words.day(release.period, this.stream)}: ${row ? words.estimate(this.stream, row) : "not published"}`));
      box.addEventListener("click", () => this.choose(release.period));
      return box;
    });
    area.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, ...lines, ...bars));
    const [first, last] = [shown[0], shown.at(-1)];
    area.setAttribute("aria-label",
      `${shown.length === 1 ? "One day" : `${shown.length} days`}, from ${words.day(first.period, this.stream)} to ${words.day(last.period, this.stream)}: ` +
      `the last has ${found.at(-1) ? words.estimate(this.stream, found.at(-1)) : "nothing published"}. The table below has all of them.`);
  }

  // ---- One day

  picker() {
    const input = byId("day");
    const { listed } = this;
    input.disabled = listed.length === 0;
    byId("day-before").disabled = byId("day-after").disabled = listed.length < 2;
    if (!listed.length) return;
    input.min = listed[0].period.slice(0, 10);
    input.max = listed.at(-1).period.slice(0, 10);
    if (document.activeElement !== input) input.value = (this.chosen ?? listed.at(-1).period).slice(0, 10);
  }

  step(days) {
    const at = this.chosen === null ? this.listed.length - 1 : this.listed.findIndex(({ period }) => period === this.chosen);
    const next = this.listed[at + days];
    if (next) this.choose(next.period);
  }

  /** Show a day: the last it has, and its ticks. Of spans that are shorter or longer, the one that the date is in. */
  choose(date) {
    const index = this.listed.findLastIndex(({ period }) => period <= date || period.slice(0, 10) <= date);
    if (index < 0) return;
    this.chosen = index === this.listed.length - 1 ? null : this.listed[index].period;
    byId("day").value = this.listed[index].period.slice(0, 10);
    this.bars();
    this.pick(this.listed[index].tick, this.first(index), this.chosen === null);
  }

  // ---- All of them

  table() {
    if (!byId("days-numbers").open || !this.stream.per) return;
    const newest = [...this.listed].reverse();
    byId("days-table").replaceChildren(
      el("caption", { class: "unseen" }, "Days, the latest first"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Day"),
        el("th", { scope: "col", class: "figure" }, single(this.stream) ? words.unit(this.stream) : itemText(this.item ?? "", 24)),
        el("th", { scope: "col", class: "figure" }, `${format.percent(newest[0]?.confidence ?? 0.95)} interval`))),
      el("tbody", {}, newest.slice(0, this.shownRows).map((release) => {
        const row = this.row(release);
        return el("tr", {},
          el("th", { scope: "row" }, words.day(release.period, this.stream), release.final ? null : el("span", { class: "range" }, "so far"),
            release.missed ? el("span", { class: "range" }, "the service was away when it ended") : null),
          el("td", { class: "figure" }, row ? format.number(row.value) : "–"),
          el("td", { class: "figure" }, row ? format.interval(row.lower, row.upper) : "not published"));
      })));
    byId("days-more").hidden = newest.length <= this.shownRows;
  }

  files() {
    const from = this.finals.at(-BARS)?.tick ?? 1;
    const link = (label, which, form) => fileLink(this.stream, { ...which, final: true, format: form }, form.toUpperCase(), label);
    byId("days-files").replaceChildren(...[["the days shown", { from }], ["all days that ended", { from: 1 }]].map(([label, which]) =>
      el("li", {}, el("span", { class: "term" }, label[0].toUpperCase() + label.slice(1)), ["csv", "json"].map((form) => link(label, which, form)))));
    byId("days-files").hidden = this.finals.length === 0;
  }
}
