// For those who hold a token: streams that are not public, and the figures of the operator, which are true counts.

import { Refused, status, token } from "./api.js";
import { byId, el } from "./dom.js";
import { bytes, duration, number } from "./format.js";

const EVERY = 5000;

/**
 * The box below the page.
 *
 * @param changed called when a token is given or forgotten
 * @param only the name of the one stream to show, on its page
 */
export function operator(changed, only = null) {
  const box = byId("operator");
  const input = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const said = el("p", { class: "muted", role: "status" });
  const figures = el("div", { id: "status" });
  const forget = el("button", { type: "button", class: "quiet", on: { click: () => give(null) } }, "Forget it");
  const form = el("form", { class: "token", on: { submit: (event) => (event.preventDefault(), give(input.value.trim())) } },
    el("label", { for: "token" }, "Token"), input, el("button", { type: "submit" }, "Use"), forget);
  const details = el("details", {},
    el("summary", {}, "For operators and holders of a token"),
    el("p", { class: "muted" }, "A token shows streams that are not public; one for administration shows delay, spool and refusals as well. " +
      "It is kept in this tab until you close it."),
    form, said, figures);
  box.replaceChildren(details);
  let timer = null;

  async function give(value) {
    token.set(value);
    input.value = "";
    figures.replaceChildren();
    said.textContent = value ? "" : "No token is kept.";
    forget.hidden = !value;
    clearTimeout(timer);
    if (value) await look();
    changed();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const answer = await status();
      said.textContent = `Running for ${duration(answer.uptime_seconds)}. These figures are true counts: they are not for the public.`;
      show(answer.streams.filter((stream) => only === null || stream.name === only));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      figures.replaceChildren();
      if (error.status === 401) {
        token.set(null);
        forget.hidden = true;
        said.textContent = "This token is not known, and was forgotten.";
        return;
      }
      said.textContent = error.status === 403 ? "A token is in use. It is not one for administration." : error.message;
      if (error.status === 403) return;
    }
    if (token.get() && !document.hidden) timer = setTimeout(look, EVERY);
  }

  function show(rows) {
    const open = document.activeElement;
    if (figures.contains(open)) return;
    const refusals = (refused) => {
      const some = Object.entries(refused ?? {}).filter(([, count]) => count > 0);
      return some.length ? some.map(([reason, count]) => `${reason}: ${number(count)}`).join(", ") : "none";
    };
    figures.replaceChildren(
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figures of the operator" },
        el("table", {},
          el("thead", {}, el("tr", {}, ["Stream", "Delay", "Spool", "Accepted", "Refused"].map((name, index) =>
            el("th", { scope: "col", class: index > 0 && index < 4 ? "figure" : null }, name)))),
          el("tbody", {}, rows.map((row) => el("tr", {},
            el("th", { scope: "row" }, row.name, row.trouble ? el("span", { class: "trouble" }, `cannot publish: ${row.trouble}`) : null),
            el("td", { class: "figure" }, row.lag_seconds < 1 ? "none" : duration(row.lag_seconds)),
            el("td", { class: "figure" }, `${number(row.spool_events)} events, ${bytes(row.spool_bytes)}`),
            el("td", { class: "figure" }, number(row.accepted)),
            el("td", {}, refusals(row.refused))))))));
  }

  forget.hidden = !token.get();
  if (token.get()) {
    details.open = true;
    look();
  }
  document.addEventListener("visibilitychange", () => !document.hidden && token.get() && look());
}
