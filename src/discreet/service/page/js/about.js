// What a stream says about itself beside its numbers: promise, budget, definition, files.

import * as api from "./api.js";
import { byId, el, hidden } from "./dom.js";
import * as format from "./format.js";
import * as words from "./words.js";

const AT_ONCE = 10000; // ticks that the service gives in one answer
const BYTES = 32 * 2 ** 20; // `answer_bytes`, unless the operator says otherwise

export function facts(stream) {
  const fact = (term, ...text) => el("li", {}, el("span", { class: "term" }, term), el("span", { class: "fact" }, ...text));
  const time = (iso) => el("time", { datetime: iso }, format.end(iso, words.length(stream)));
  byId("facts").replaceChildren(
    fact("Protects", words.protects(stream)),
    fact("New numbers", `every ${format.every(stream.tick_seconds)}`),
    stream.per ? fact("Begins anew", `every ${words.span(stream)}, ${stream.zone ?? "UTC"}`) : fact("Runs", time(stream.begins), " to ", time(stream.ends)),
    fact(stream.per ? `Budget of a ${words.span(stream)}` : "Budget", `ε ${format.figure(stream.epsilon)}`, stream.delta ? `, δ ${stream.delta}` : ""));
}

/** What anyone who reads the numbers should know first: that they are of no use, or that they promise nothing. */
export const warnings = (stream) => (stream.warnings ?? []).map((text) => el("p", { class: "notice" }, text));

export function promise(stream) {
  const who = {
    curator: "Trusted with the events: those who run this service. An event is removed when its tick is published; what is remembered, " +
      "so that nobody is counted twice, stays with them. Everybody else sees only what is on this page.",
    pan: "An event is forgotten as soon as it is counted: what the service has in memory and on disk is private itself.",
    parties: "Nobody is trusted with the answers: each was randomised on the device that sent it.",
  };
  const guarantee = Object.entries(stream.guarantee ?? {}).filter(([, value]) => value !== null && value !== undefined);
  byId("promise").replaceChildren(
    el("p", { class: "promise" }, stream.promise),
    el("p", {}, words.meaning(stream)),
    el("p", {}, who[stream.trust] ?? ""),
    guarantee.length ? el("details", {}, el("summary", {}, "The guarantee in full"), properties(guarantee)) : "");
}

function properties(pairs) {
  const text = (value) => (Array.isArray(value) ? value.map(text).join("; ") : typeof value === "object" && value !== null
    ? Object.entries(value).map(([key, inner]) => `${key.replaceAll("_", " ")}: ${text(inner)}`).join(", ")
    : String(value));
  return el("dl", { class: "properties" }, pairs.flatMap(([key, value]) =>
    [el("div", {}, el("dt", {}, key.replaceAll("_", " ")), el("dd", {}, text(value)))]));
}

export function budget(stream, published) {
  const { granted, spent, account } = stream.budget ?? {};
  const pair = (one) => (one ? `${one.epsilon === null ? `ρ ${format.figure(one.rho)}` : `ε ${format.figure(one.epsilon)}`}${one.delta ? `, δ ${one.delta}` : ""}` : "–");
  const ofRun = stream.run_ticks;
  const passed = Math.min(1, 1 - (stream.ticks - published) / ofRun);
  const meter = el("progress", { max: "1", value: String(passed), "aria-label": `Share of the ${stream.per ? words.span(stream) : "horizon"} that has passed` });
  const next = stream.following;
  const left = Math.max(0, (Date.parse(stream.ends) - Date.now()) / 1000);
  byId("budget").replaceChildren(
    el("dl", { class: "properties" },
      el("div", {}, el("dt", {}, "granted"), el("dd", {}, pair(granted))),
      el("div", {}, el("dt", {}, "spent so far"), el("dd", {}, pair(spent))),
      el("div", {}, el("dt", {}, "to come"), el("dd", {}, next
        ? `${pair(next)} more from ${format.moment(next.begins)}`
        : stream.per ? `${pair(stream)} for every ${words.span(stream)}`
        : stream.state === "ended" ? "nothing: the stream has ended" : "nothing more is planned")),
      account ? el("div", {}, el("dt", {}, `about “${account.name}” in all`), el("dd", {}, `${pair(account.spent)} of ${pair(account.granted)}`)) : null),
    account ? el("p", {}, `This stream shares the account “${account.name}” with everything else that is published about the same people: what they spend adds up.`) : "",
    el("p", {}, stream.per ? words.everyDay(stream) : stream.kind === "survey"
      ? "An answer costs anyone who gives it this much, once, when it is sent. Counting and publishing the answers costs nothing more."
      : "The whole budget was charged before the first event counted. It covers every number until the end; publishing or reading another one costs nothing more."),
    meter,
    el("p", { class: "muted" }, stream.per ? `${format.number(ofRun - (stream.ticks - published))} of ${format.number(ofRun)} ticks of this ${words.span(stream)} published.`
      : `${format.number(published)} of ${format.number(stream.ticks)} ticks published. ` + (stream.state === "ended"
      ? `It ended on ${format.moment(stream.ends)} and takes no more events.`
      : `${format.duration(left)} left. ` + (next
        ? `From ${format.moment(next.begins)} it goes on under a new budget of ${pair(next)}: what both together reveal about somebody adds up.`
        : `On ${format.moment(stream.ends)} it ends and takes no more events.`))));
}

/** Everything in as few files as the service gives it in: it limits ticks and bytes, and a release may grow by half. */
function parts(published, latest) {
  const size = 1.5 * new TextEncoder().encode(JSON.stringify(latest ?? {})).length;
  const most = Math.max(1, Math.min(AT_ONCE, Math.floor(BYTES / size)));
  if (published <= most) return [["Everything so far", { from: 1 }]];
  return Array.from({ length: Math.ceil(published / most) }, (_, part) => {
    const which = { from: part * most + 1, to: Math.min(published, (part + 1) * most) };
    return [`Ticks ${format.number(which.from)} to ${format.number(which.to)}`, which];
  });
}

/** A link to releases as a file. One behind a token is fetched with it first. */
export function fileLink(stream, which, text, label) {
  const path = api.releasesAddress(stream.name, which);
  const link = el("a", { class: "button", href: path, download: `${stream.name}.${which.format}` }, text, hidden(` of ${label.toLowerCase()}`));
  if (!stream.public) {
    link.addEventListener("click", async (event) => {
      if (link.href.startsWith("blob:")) return;
      event.preventDefault();
      link.href = await api.blobAddress(path);
      link.click();
    });
  }
  return link;
}

export function downloads(stream, published, history) {
  const forms = [["csv", "CSV"], ["json", "JSON"], ["arrow", "Arrow"]];
  const links = (label, which) => el("li", {}, el("span", { class: "term" }, label),
    forms.map(([form, text]) => fileLink(stream, { ...which, format: form }, text, label)));
  byId("downloads").replaceChildren(el("ul", { class: "downloads" },
    parts(published, stream.latest).map(([label, which]) => links(label, which)),
    links("The ticks of the chart", history.length ? { from: history[0].tick, to: history.at(-1).tick } : {})),
    el("p", { class: "muted" }, "What is published may be kept, copied and computed with: the promise holds whatever is done with it."));
}

const formerly = ["item", "items"]; // they stand beside column and universe for programs that know no others

export function definition(stream) {
  byId("definition").replaceChildren(
    el("p", {}, "Public, and fixed since the first event: another definition would be another stream with a budget of its own."),
    properties(Object.entries(stream.definition ?? {}).filter(([key]) => !formerly.includes(key)).map(([key, value]) =>
      [key, ["tick", "horizon", "late"].includes(key) && Number.isInteger(value) ? format.duration(value) : value])),
    stream.digest ? el("p", { class: "muted digest" }, "Digest ", el("code", {}, stream.digest)) : "");
}
