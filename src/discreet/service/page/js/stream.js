// One stream: a moment, the time, what is promised, what it costs. New ticks come over one open connection.

import * as about from "./about.js";
import * as api from "./api.js";
import { Chart, COLOURS } from "./chart.js";
import { Days } from "./days.js";
import { byId, el, hidden, itemElement, itemText } from "./dom.js";
import * as format from "./format.js";
import { line, risen, rows, single, times, withGaps } from "./numbers.js";
import { operator } from "./operator.js";
import * as words from "./words.js";

const name = decodeURIComponent(location.pathname.split("/").filter(Boolean).pop() ?? "");
const POINTS = 240; // at most in the chart
const DAY = -1;
const FIRST = 10; // rows of the list and of the table before "more"

let stream = null;
let published = 0;
let shown = 0; // the tick of the slider
let following = true;
let span = 60; // ticks in the chart; 0 for all, DAY for those of the day that is shown
let dayShown = null; // its first and last tick, where it is not the present one
let history = []; // releases of the chart, the oldest first
let drawn = []; // the same with gaps, as they are drawn
let lines = []; // through them: { item, colour, name, values, lower, upper }
let rise = 0; // ticks over which increases are shown; 0 for totals
let increases = new Map(); // tick -> increase over `rise` ticks, of the releases of the chart
let chosen = []; // { item, colour }
let wholeList = false;
let tableRows = FIRST;
let stopLive = null;
const kept = new Map(); // tick -> release, those that were looked at

const chart = new Chart(byId("chart"), { pick: (index) => drawn[index].gap || choose(drawn[index].tick), hover: (index) => legend(index) });

const days = new Days(name, async (last, first, isPresent) => {
  dayShown = isPresent ? null : { first, last };
  byId("span").value = String((span = DAY));
  await showHistory();
  choose(last);
});

function problem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text ?? "";
}

function connected(yes) {
  const box = byId("connection");
  const ended = stream?.state === "ended";
  box.textContent = ended ? "ended" : yes ? "live" : "not connected, trying again";
  box.classList.toggle("on", yes && !ended);
}

/** Remember a release, and forget one that was not looked at for long: a page may stay open for weeks. */
function keep(release) {
  kept.delete(release.tick);
  kept.set(release.tick, release);
  if (kept.size > 4 * POINTS) kept.delete(kept.keys().next().value);
}

// ---- The moment

function tickOf(release) {
  const length = stream.tick_seconds;
  return `${format.clock(release.begins, length)} to ${format.clock(release.ends, length)}`;
}

/** Ticks end by the clock, so that of any of them is known from one. */
const endOfTick = (tick) =>
  new Date(Date.parse(stream.latest.ends) + (tick - stream.latest.tick) * stream.tick_seconds * 1000).toISOString();

function slider() {
  const input = byId("tick");
  input.max = String(Math.max(published, 1));
  input.disabled = published < 2;
  if (following) shown = published;
  input.value = String(shown);
  const release = kept.get(shown);
  const text = shown ? format.clock(release?.ends ?? endOfTick(shown), stream.tick_seconds) : "none yet";
  byId("moment").textContent = text;
  input.setAttribute("aria-valuetext", shown ? `${text}, tick ${format.number(shown)} of ${format.number(published)}` : text);
  byId("first-moment").textContent = published ? format.clock(endOfTick(1), stream.tick_seconds) : "";
  byId("last-moment").textContent = published > 1 ? format.clock(endOfTick(published), stream.tick_seconds) : "";
  byId("latest").setAttribute("aria-pressed", String(following));
}

async function choose(tick) {
  shown = Math.min(Math.max(tick, 1), published);
  following = shown === published;
  slider();
  if (!kept.has(shown)) {
    const wanted = shown;
    await new Promise((resolve) => setTimeout(resolve, 80)); // the slider is still moving
    if (wanted !== shown) return;
    try {
      (await api.releases(name, { from: wanted, to: wanted })).forEach(keep);
      problem(null);
    } catch (error) {
      if (error instanceof api.Refused) problem(error.message);
    }
    if (wanted !== shown) return;
  }
  moment();
}

function moment() {
  slider();
  const release = kept.get(shown) ?? null;
  const found = rows(stream, release);
  byId("at").replaceChildren(...(found.length ? (single(stream) ? oneNumber(release, found[0]) : list(release, found)) : [
    el("p", { class: "empty" }, words.nothing(stream, release)),
  ]));
  chart.markAt(release ? Date.parse(release.ends) / 1000 : null);
  legend(null);
  since();
}

/** How much came between an earlier moment and the one that is shown. */
async function since() {
  const over = Number(byId("since").value);
  const shownNow = shown;
  byId("since-box").hidden = !byId("since").options.length || !kept.has(shown);
  if (byId("since-box").hidden) return;
  const said = byId("since-said");
  let found = null;
  try {
    [found] = shown > over ? await api.increases(name, { over, from: shown, to: shown }) : [];
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
  }
  if (shownNow !== shown || over !== Number(byId("since").value)) return;
  const risen = found && (found.items ? [...found.items].sort((one, other) => other.increase - one.increase).slice(0, 3)
    : [{ item: null, increase: found.value, lower: found.lower, upper: found.upper }]);
  said.replaceChildren(...(!risen ? ["not known: what is shown begins after that"] : risen.flatMap(({ item, increase, lower, upper }, index) => [
    index ? "; " : "", item === null ? "" : itemElement(item, 28), item === null ? "" : " ",
    `${format.number(increase)} ${item === null ? `${words.unit(stream, increase)} more` : "more"} (${format.interval(lower, upper)})`])));
}

function oneNumber(release, row) {
  return [
    el("p", { class: "value huge" }, el("strong", {}, format.number(row.value)), " ", el("span", {}, words.unit(stream, row.value))),
    el("p", { class: "range" }, `${words.estimate(stream, row)}, with ${format.percent(release.confidence)} confidence`),
    release.missed ? el("p", { class: "notice" }, words.MISSED) : null,
    el("p", { class: "muted" }, words.aboutIntervals(stream, release.confidence)),
  ].filter(Boolean);
}

function list(release, found) {
  const most = Math.max(1, ...found.map((row) => row.upper ?? row.value));
  const visible = wholeList ? found : found.slice(0, FIRST);
  const focus = document.activeElement?.dataset?.item;
  const body = el("tbody", {}, visible.map((row, index) => {
    const mine = chosen.find((one) => one.item === row.item);
    const box = el("input", {
      type: "checkbox",
      "data-item": JSON.stringify(row.item),
      "aria-label": `Show ${itemText(row.item)} over time`,
      on: { change: () => toggle(row.item) },
    });
    box.checked = Boolean(mine);
    box.disabled = !mine && chosen.length >= COLOURS;
    if (mine) box.classList.add(`line-${mine.colour + 1}`);
    return el("tr", {},
      el("td", { class: "pick" }, box),
      el("td", { class: "rank figure" }, String(index + 1)),
      el("th", { scope: "row" }, itemElement(row.item)),
      el("td", { class: "bar-cell", "aria-hidden": "true" }, bar(row, most)),
      el("td", { class: "figure" }, format.number(row.value)),
      el("td", { class: "figure interval" }, format.interval(row.lower, row.upper)));
  }));
  const table = el("table", { class: "ranking" },
    el("caption", { class: "unseen" }, `Most frequent at ${tickOf(release)}`),
    el("thead", {}, el("tr", {},
      el("th", { scope: "col", class: "pick" }, hidden("Over time")),
      el("th", { scope: "col", class: "rank figure" }, hidden("Rank")),
      el("th", { scope: "col" }, stream.kind === "survey" ? "Answer" : "Item"),
      el("td", { class: "bar-cell" }),
      el("th", { scope: "col", class: "figure" }, words.unit(stream)),
      el("th", { scope: "col", class: "figure interval" }, `${format.percent(release.confidence)} interval`))),
    body);
  const nodes = [table];
  if (found.length > FIRST) {
    nodes.push(el("button", { type: "button", class: "quiet", on: { click: () => ((wholeList = !wholeList), moment()) } },
      wholeList ? `Show the first ${FIRST}` : `Show all ${found.length}`));
  }
  if (release.missed) nodes.unshift(el("p", { class: "notice" }, words.MISSED));
  if (stream.kind === "survey" && release.reports !== undefined) nodes.unshift(el("p", { class: "muted" }, words.reports(release)));
  nodes.push(el("p", { class: "muted" }, words.aboutIntervals(stream, release.confidence)));
  if (focus) queueMicrotask(() => document.querySelector(`[data-item=${CSS.escape(focus)}]`)?.focus());
  return nodes;
}

/** What is sure is full, the interval is pale, the count a mark in it. */
function bar(row, most) {
  const share = (value) => (100 * Math.max(0, Math.min(value, most))) / most;
  const open = row.upper === null || row.upper === undefined;
  const low = share(row.lower ?? row.value);
  const parts = [el("span", { class: "sure" }), el("span", { class: open ? "band open" : "band" }), el("span", { class: "count" })];
  parts[0].style.width = parts[1].style.left = `${low}%`;
  parts[1].style.width = `${share(row.upper ?? most) - low}%`;
  parts[2].style.left = `${share(row.value)}%`;
  return el("span", { class: "bar" }, parts);
}

// ---- The time

function toggle(item) {
  const index = chosen.findIndex((one) => one.item === item);
  if (index >= 0) chosen.splice(index, 1);
  else {
    const free = [...Array(COLOURS).keys()].find((colour) => !chosen.some((one) => one.colour === colour));
    if (free === undefined) return;
    chosen.push({ item, colour: free });
  }
  overTime();
  moment();
}

const spans = () => {
  const choices = [60, 240, 1000, 10000].filter((ticks) => stream.per || ticks < stream.ticks);
  const day = stream.per ? [[DAY, `the ${words.span(stream)} shown`]] : [];
  return [...day, ...choices.map((ticks) => [ticks, `the last ${format.every(ticks * stream.tick_seconds)}`]), [0, "everything so far"]];
};

/** The releases of the chart: of a long span every n-th, counted so that the same ones are shown again. */
async function loadHistory() {
  const open = stream.ticks - stream.run_ticks; // the last tick of the day before
  const first = dayShown?.first ?? (published > open ? open + 1 : (days.finals.at(-2)?.tick ?? 0) + 1);
  const from = span === DAY ? first : span ? Math.max(1, published - span + 1) : 1;
  const to = span === DAY ? dayShown?.last ?? published : published;
  const every = Math.ceil((to - from + 1) / POINTS);
  const loaded = to ? await api.releases(name, { from, to, every: every > 1 ? every : undefined }) : [];
  history = loaded.sort((one, other) => one.tick - other.tick);
  if (history.length && to === published && history.at(-1).tick < published && stream.latest?.tick === published) history.push(stream.latest);
  history.forEach(keep);
}

async function showHistory() {
  await loadHistory();
  await loadIncreases();
  overTime();
  about.downloads(stream, published, history);
}

/** How much the ticks of the chart rose, those that are not known yet. */
async function loadIncreases() {
  const over = rise;
  const missing = over ? history.map(({ tick }) => tick).filter((tick) => tick > over && !increases.has(tick)) : [];
  if (!missing.length) return;
  const last = missing.at(-1);
  const every = history.length > 1 ? history[1].tick - history[0].tick : 1;
  const asked = [api.increases(name, { over, from: missing[0], to: last, every })];
  if (last % every) asked.push(api.increases(name, { over, from: last, to: last })); // the newest, between two others
  try {
    const found = (await Promise.all(asked)).flat();
    if (over === rise) found.forEach((one) => increases.set(one.tick, one));
  } catch (error) {
    if (error instanceof api.Refused) problem(error.message);
  }
}

function overTime() {
  byId("chart").hidden = byId("legend").hidden = byId("numbers").hidden = history.length === 0 || chosen.length === 0;
  byId("time-note").textContent = history.length === 0 ? words.nothing(stream, null)
    : chosen.length === 0 ? (rows(stream, history.at(-1)).length ? "Choose items in the list above to see them here." : words.nothing(stream, history.at(-1)))
    : words.aboutLines(stream, rise ? [...increases.values()].at(-1)?.confidence ?? history.at(-1).confidence : null, COLOURS);
  if (byId("chart").hidden) return;
  drawn = withGaps(history);
  lines = chosen.map(({ item, colour }) => ({
    item,
    colour,
    name: item === null ? "" : itemText(item, 18),
    ...(rise ? risen(drawn, increases, item) : line(stream, drawn, item)),
  }));
  chart.draw(times(drawn), lines);
  const last = drawn.length - 1;
  byId("chart").setAttribute("aria-label",
    `${rise ? "Increases" : "Totals"} over time, from ${format.clock(drawn[0].ends, stream.tick_seconds)} to ` +
    `${format.clock(drawn[last].ends, stream.tick_seconds)}: ` +
    lines.map((one) => {
      const row = at(one, last);
      return `${one.item === null ? words.title(stream) : itemText(one.item)} ${row ? `ends at ${words.estimate(stream, row)}` : "is not published at the end"}`;
    }).join("; "));
  legend(null);
  table();
}

/** A line at one point, or null where it has none. */
const at = ({ values, lower, upper }, index) =>
  index < 0 || values[index] === null ? null : { value: values[index], lower: lower[index], upper: upper[index] };

/** What the lines say at a moment: that under the pointer, or the one chosen. */
function legend(pointed) {
  if (!lines.length) return;
  const index = pointed ?? drawn.findLastIndex((release) => !release.gap && release.tick <= shown);
  if (index < 0 || drawn[index].gap) return;
  byId("legend").replaceChildren(
    ...lines.map((one) => {
      const row = at(one, index);
      return el("li", {},
        el("span", { class: `swatch line-${one.colour + 1}`, "aria-hidden": "true" }),
        one.item === null ? el("span", { class: "item" }, words.unit(stream)) : itemElement(one.item, 28),
        el("span", { class: "figure" }, row ? format.number(row.value) : "–"),
        el("span", { class: "range" }, row ? format.interval(row.lower, row.upper) : rise ? "not known" : "not published"));
    }),
    el("li", { class: "when" }, format.clock(drawn[index].ends, stream.tick_seconds)));
}

function table() {
  if (!byId("numbers").open) return;
  const newest = drawn.map((release, index) => ({ release, index })).filter(({ release }) => !release.gap).reverse();
  byId("table").replaceChildren(
    el("caption", { class: "unseen" }, "The numbers of the chart, the latest first"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Until"),
      lines.map(({ item }) => el("th", { scope: "col", class: "figure" }, item === null ? words.unit(stream) : itemElement(item, 24))))),
    el("tbody", {}, newest.slice(0, tableRows).map(({ release, index }) =>
      el("tr", {}, el("th", { scope: "row" }, format.clock(release.ends, stream.tick_seconds)), lines.map((one) => {
        const row = at(one, index);
        return el("td", { class: "figure" }, row ? format.number(row.value) : "–",
          row ? el("span", { class: "range" }, format.interval(row.lower, row.upper)) : null);
      })))));
  byId("more").hidden = newest.length <= tableRows;
}

// ---- Coming and going

function announce(release) {
  published = release.tick;
  stream.latest = release;
  stream.ticks_published = release.tick;
  keep(release);
  if (span !== DAY || !dayShown) history.push(release);
  if (span === DAY && !dayShown) history = history.filter((one) => one.run === release.run);
  if (span > 0) history = history.filter((one) => one.tick > published - span);
  if (history.length > 2 * POINTS) loadHistory().then(loadIncreases).then(overTime);
  if (!single(stream) && chosen.length === 0 && history.length < 3) firstChoice();
  moment();
  loadIncreases().then(overTime);
  about.budget(stream, published);
  days.news(stream);
  if (published >= stream.ticks) reload();
}

function firstChoice() {
  const limit = stream.kind === "survey" ? COLOURS : 3;
  chosen = single(stream) ? [{ item: null, colour: 0 }]
    : rows(stream, history.at(-1)).slice(0, limit).map(({ item }, colour) => ({ item, colour }));
}

async function reload() {
  try {
    stream = await api.stream(name);
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    stopLive?.();
    stopLive = null;
    byId("content").hidden = true;
    byId("title").textContent = error.status ? "Not here" : "Not reached";
    byId("subtitle").textContent = [401, 403, 404].includes(error.status)
      ? "No such stream, or it is not public. With a token for it, given below, it appears here."
      : `${error.message} Reload the page to try again.`;
    return;
  }
  document.title = `${words.title(stream)} · live numbers`;
  byId("title").textContent = words.title(stream);
  byId("subtitle").textContent = words.subject(stream);
  published = Math.max(stream.ticks_published ?? 0, stream.latest?.tick ?? 0);
  if (stream.latest) keep(stream.latest);
  if (!byId("span").options.length) {
    byId("span").append(...spans().map(([ticks, text]) => el("option", { value: ticks }, text)));
    byId("span").value = String((span = spans()[0][0]));
    const passing = [...new Set([1, 3, 6, 12, 24, 60, 240, 1440])].filter((ticks) => ticks < stream.run_ticks);
    byId("since").append(...passing.map((ticks) => el("option", { value: ticks }, `${format.duration(ticks * stream.tick_seconds)} before`)));
    const day = Math.max(1, Math.round(86400 / stream.tick_seconds));
    byId("rise").append(...[...new Set([0, day, 12, 60])].sort((one, other) => one - other).filter((ticks) => ticks < stream.ticks).map((ticks) => el("option", { value: ticks },
      ticks ? `increase over ${format.duration(ticks * stream.tick_seconds)}` : "totals so far")));
  }
  await days.load(stream);
  await loadHistory();
  await loadIncreases();
  if (!chosen.length) firstChoice();
  byId("content").hidden = false;
  byId("warnings").replaceChildren(...about.warnings(stream));
  about.facts(stream);
  about.promise(stream);
  about.budget(stream, published);
  about.definition(stream);
  about.downloads(stream, published, history);
  moment();
  overTime();
  watch();
}

function watch() {
  stopLive?.();
  stopLive = null;
  if (stream.state === "ended") return connected(false);
  if (document.hidden) return;
  stopLive = api.live(name, { since: published, release: announce, connected });
}

byId("tick").addEventListener("input", (event) => choose(Number(event.target.value)));
byId("latest").addEventListener("click", () => choose(published));
byId("span").addEventListener("change", async (event) => {
  span = Number(event.target.value);
  await showHistory();
});
byId("since").addEventListener("change", since);
byId("rise").addEventListener("change", async (event) => {
  rise = Number(event.target.value);
  increases = new Map();
  await loadIncreases();
  overTime();
});
byId("numbers").addEventListener("toggle", table);
byId("more").addEventListener("click", () => ((tableRows += 50), table()));
// A page that nobody sees holds no connection; when it is seen again it catches up.
document.addEventListener("visibilitychange", () => {
  if (!stream) return;
  if (!document.hidden) reload();
  else {
    stopLive?.();
    stopLive = null;
  }
});
operator(reload, name);
reload();
