// Releases as rows and lines: one number a tick for `count` and `distinct`, one an item for the others.

export const single = (stream) => stream.kind === "count" || stream.kind === "distinct";

/** The numbers of a release: `{ item, value, lower, upper }`, in the order in which they were published. */
export function rows(stream, release) {
  if (!release) return [];
  if (single(stream)) {
    const { value, lower, upper } = release;
    return value === null || value === undefined ? [] : [{ item: null, value, lower, upper }];
  }
  return (release.items ?? []).map(({ item, count, lower, upper }) => ({ item, value: count, lower, upper }));
}

/** One item in many releases; null where it was not published. */
export function line(stream, releases, item) {
  const found = releases.map((release) => rows(stream, release).find((row) => row.item === item) ?? null);
  const column = (name) => found.map((row) => row?.[name] ?? null);
  return { values: column("value"), lower: column("lower"), upper: column("upper") };
}

/** With a gap wherever a new run began: its counts begin again. */
export const withGaps = (releases) =>
  releases.flatMap((release, index) => {
    const before = releases[index - 1];
    if (!before || before.run === release.run) return [release];
    const middle = (Date.parse(before.ends) + Date.parse(release.ends)) / 2;
    return [{ gap: true, ends: new Date(middle).toISOString() }, release];
  });

export const times = (releases) => releases.map((release) => Date.parse(release.ends) / 1000);

/** How much an item rose, at each of the releases of a chart; null where nothing says it, as where a run began in between. */
export function risen(releases, increases, item) {
  const found = releases.map(({ tick }) => {
    const there = increases.get(tick);
    return (there?.items ? there.items.find((row) => row.item === item) : there) ?? null;
  });
  const column = (...names) => found.map((row) => names.map((name) => row?.[name]).find((value) => value !== undefined) ?? null);
  return { values: column("increase", "value"), lower: column("lower"), upper: column("upper") };
}
