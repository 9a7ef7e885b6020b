// The service as the page sees it: this host and nobody else. A token stays in this tab.

const KEY = "discreet.token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** A failed request: `status` is 0 where the service could not be reached. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const headers = (more = {}) => (token.get() ? { ...more, Authorization: `Bearer ${token.get()}` } : more);

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service cannot be reached.");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, String(problem.detail ?? problem.title ?? `The service answered ${answer.status}.`));
}

const address = (name) => `/v1/streams/${encodeURIComponent(name)}`;

export const streams = async () => (await ask("/v1/streams")).json();
export const stream = async (name) => (await ask(address(name))).json();
export const status = async () => (await ask("/v1/admin/status")).json();

/** Where the releases of ticks `from` to `to` are: every n-th of them if asked for, or the last of every day. */
export function releasesAddress(name, { from, to, every, final, format } = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries({ from, to, every, final, format })) {
    if (value !== undefined && value !== null) query.set(key, String(value));
  }
  const text = query.toString();
  return `${address(name)}/releases${text ? `?${text}` : ""}`;
}

/** These releases, however many answers they come in. */
export async function releases(name, which) {
  const found = [];
  for (let from = which?.from; ; ) {
    const answer = await (await ask(releasesAddress(name, { ...which, from }))).json();
    found.push(...answer.releases);
    if (!answer.next) return found;
    from = answer.next;
  }
}

/** How much ticks `from` to `to` rose over this many before each, every n-th of them if asked for. */
export async function increases(name, { over, from, to, every = 1 }) {
  const found = [];
  for (;;) {
    const query = new URLSearchParams({ over, from, to, every });
    const answer = await (await ask(`${address(name)}/increases?${query}`)).json();
    found.push(...answer.increases);
    if (!answer.next) return found;
    from = answer.next;
  }
}

/** A file behind a token, as a link that only this tab can open. */
export async function blobAddress(path) {
  return URL.createObjectURL(await (await ask(path)).blob());
}

/**
 * New releases as they are published, until the returned function is called.
 *
 * EventSource cannot send a token, so the events are read here: lines of `id:`, `event:` and `data:`, an empty line after each. A
 * connection that ends is made again, and what was published meanwhile comes first.
 */
export function live(name, { since, release, connected }) {
  const stop = new AbortController();
  let last = since;
  let wait = 1000;
  const receive = (block) => {
    let event = "message";
    const data = [];
    for (const line of block.split("\n")) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
    }
    if (event === "end") stop.abort();
    if (event !== "release") return;
    const news = JSON.parse(data.join("\n"));
    if (news.tick <= last) return;
    last = news.tick;
    release(news);
  };
  (async () => {
    while (!stop.signal.aborted) {
      try {
        const answer = await ask(`${address(name)}/live`, {
          signal: stop.signal,
          cache: "no-store",
          headers: { Accept: "text/event-stream", "Last-Event-ID": String(last) },
        });
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        connected(true);
        wait = 1000;
        let text = "";
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          text = (text + value).replaceAll("\r\n", "\n");
          const blocks = text.split("\n\n");
          text = blocks.pop();
          blocks.forEach(receive);
        }
      } catch {
        // Said below; what was missed is asked for again.
      }
      if (stop.signal.aborted) return;
      connected(false);
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, 30000);
    }
  })();
  return () => stop.abort();
}
