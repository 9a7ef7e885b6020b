// Numbers, times and intervals as people read them. Times are those of the reader's clock.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));

/** An interval in figures; an end that nobody knows is left open. */
export function interval(lower, upper) {
  const low = lower === null || lower === undefined ? null : number(lower);
  const high = upper === null || upper === undefined ? null : number(upper);
  if (low !== null && high !== null) return `${low} to ${high}`;
  if (low !== null) return `at least ${low}`;
  return high !== null ? `at most ${high}` : "not known";
}

/** The same in a sentence: "between 10 and 20". */
export function between(lower, upper) {
  const figures = interval(lower, upper);
  return figures.includes(" to ") ? `between ${figures.replace(" to ", " and ")}` : figures;
}

export const percent = (share) => `${precise.format(100 * share)}%`;

/** "19 times out of 20" for 0.95. */
export function odds(confidence) {
  for (const of of [2, 3, 4, 5, 10, 20, 50, 100, 1000]) {
    const times = confidence * of;
    if (Math.abs(times - Math.round(times)) < 1e-9) return `${Math.round(times)} times out of ${of}`;
  }
  return `with a probability of ${percent(confidence)}`;
}

const withYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const withMinute = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const day = (iso) => withYear.format(new Date(iso));
export const moment = (iso) => withMinute.format(new Date(iso));

/** When something long ends, to the day; something of a few days, to the minute. */
export const end = (iso, seconds) => (seconds > 5 * 86400 ? day(iso) : moment(iso));

/** A time of the day as exact as ticks of this length need it, with the date where it is not today. */
export function clock(iso, tickSeconds) {
  const time = new Date(iso);
  if (tickSeconds >= 86400) return withYear.format(time);
  const figures = (tickSeconds < 60 ? second : minute).format(time);
  return withYear.format(time) === withYear.format(new Date()) ? figures : `${withYear.format(time)}, ${figures}`;
}

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** "30 days", "1 hour 30 minutes": two units at most. */
export function duration(seconds) {
  let rest = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "less than a second";
}

export const every = (seconds) => duration(seconds).replace(/^1 (\w+)$/, "$1");

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const compact = (value) => short.format(value);

export const figure = (value) => (value !== 0 && Math.abs(value) < 1e-3 ? String(value) : precise.format(value));

export function bytes(size) {
  if (size < 1024) return `${number(size)} bytes`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = size / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${new Intl.NumberFormat("en", { maximumFractionDigits: 1 }).format(value)} ${units[unit]}`;
}
