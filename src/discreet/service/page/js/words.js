// What a stream says about itself, in words. One place, so that a card and its page say the same.

import { between, figure, moment, number, odds } from "./format.js";

export const title = (stream) => (stream.title !== stream.name && stream.title) || stream.question || stream.name;

/** How long a run takes, in seconds. */
export const length = (stream) => (Date.parse(stream.ends) - Date.parse(stream.begins)) / 1000;

/** What is counted, for one and for several. */
export function unit(stream, count = 2) {
  const one = Math.abs(count) === 1;
  if (stream.kind === "survey") return one ? "answer" : "answers";
  if (stream.kind === "distinct" || stream.unit !== "row") return one ? "person" : "people";
  return one ? "event" : "events";
}

export function subject(stream) {
  const so_far = stream.per ? `within each ${span(stream)}` : stream.run > 1 ? `since ${moment(stream.begins)}` : "since the stream began";
  if (stream.kind === "survey") {
    const question = title(stream) === stream.question ? "" : `“${stream.question}” `;
    return `${question}What people answered, each answer randomised on the device before it was sent.`;
  }
  if (stream.kind === "distinct") return `How many different people came, ${so_far}.`;
  if (stream.kind === "count") return `How many there were, ${so_far}.`;
  return `The ${stream.k ? `${stream.k} ` : ""}most frequent, counted in ${unit(stream)} ${so_far}.`;
}

export function protects(stream) {
  if (stream.kind === "survey") return "each answer";
  if (stream.unit === "person-day") return `each person’s ${span(stream)}`;
  return stream.unit === "person" ? "each person" : "each event";
}

const SPANS = { s: "second", m: "minute", h: "hour", d: "day", w: "week", mo: "month" };

/** The span of the calendar with which a stream begins anew: "day", "2 weeks". */
export function span({ per }) {
  const [, count, letter] = /^(\d+)(\w+)$/.exec(per);
  return Number(count) === 1 ? SPANS[letter] : `${count} ${SPANS[letter]}s`;
}

const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const monthDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** A span by its name: dates are those of the stream's zone, moments those of the reader. */
export const day = (period, { per }) => (period.length > 10 ? moment(period) : `${per === "1d" ? "" : `${span({ per })} of `}${weekday.format(new Date(`${period}T00:00:00Z`))}`);
export const shortDay = (period) => (period.length > 10 ? moment(period) : monthDay.format(new Date(`${period}T00:00:00Z`)));

/** What several days of one person add up to. */
export function everyDay(stream) {
  const one = span(stream);
  const whose = stream.unit === "row" ? "An event is in one of them." :
    `Anyone who comes in several of them is hidden with the sum: after 30, with an ε of up to ${figure(30 * stream.epsilon)}.`;
  return `Every ${one} has this budget, charged when it begins. It covers every number about that ${one}; reading them costs nothing more. ${whose}`;
}

/** What an interval is, in a sentence of its own. */
export function aboutIntervals(stream, confidence) {
  if (stream.kind === "survey") {
    return `The answers came with chance mixed in. The interval holds the number of people who meant each answer ${odds(confidence)}.`;
  }
  if (stream.kind !== "top") {
    return `Noise was added to the number on purpose. The interval holds the number without noise ${odds(confidence)}.`;
  }
  return (
    `Noise was added to each count on purpose. The intervals hold the counts without noise, all at once, ${odds(confidence)}.` +
    (stream.unit !== "row" ? ` Of one person at most ${stream.max_items} items count; there may be more people than the interval says.` : "")
  );
}

/** What the lines of the chart are; `confidence` of increases where these are shown, otherwise null. */
export function aboutLines(stream, confidence, most) {
  const single = stream.kind === "count" || stream.kind === "distinct";
  const choice = single ? "" : `Up to ${most} items, chosen in the list above. `;
  if (confidence === null) return `${choice}Lines are what was published, bands the intervals. A click shows that moment above.`;
  return `${choice}Differences of what was published, at least zero. At each moment the bands hold the true increases ${odds(confidence)}.`;
}

export function estimate(stream, { value, lower, upper }) {
  return `${between(lower, upper)} ${unit(stream, upper ?? Math.max(value, 2))}`;
}

/** Epsilon for somebody who has not met it. */
export function meaning({ kind, epsilon }) {
  const seen = kind === "survey" ? "seeing what a device sent" : "seeing everything published here";
  const times = figure(Number(Math.exp(epsilon).toPrecision(2)));
  return `In other words: whatever somebody suspects about one of the protected, ${seen} makes their odds at most ${times} times higher or lower.`;
}

export const MISSED = "The service was not running when this tick ended: not everything of that time was counted.";

export const reports = (release) => `From ${number(release.reports)} ${release.reports === 1 ? "report" : "reports"}.`;

/** Why there is no number to see, for a release or the lack of one. */
export function nothing(stream, release) {
  if (!release) return "No number yet: the first one is published when the first tick ends.";
  if (release.missed) return MISSED;
  if (stream.kind === "survey") return "Not enough answers yet to show any.";
  return "Nothing was frequent enough to be shown without pointing at somebody.";
}
