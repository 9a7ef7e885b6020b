// Lines with their bands, drawn by uPlot in the colours of the style sheet.

import { compact } from "./format.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const LABEL = 136; // of the width, for the names of lines

/** How many lines have a colour of their own. */
export const COLOURS = 6;
export const colourOf = (index) => colour(`--line-${(index % COLOURS) + 1}`);

const hour = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Labels of the time axis: the date where a day begins, otherwise the time, to the second where marks are closer than a minute. */
function timeLabels(_, splits, __, ___, increment) {
  let last = "";
  return splits.map((at) => {
    const time = new Date(at * 1000);
    const today = date.format(time);
    if (increment >= 86400) return today;
    const label = (increment < 60 ? second : hour).format(time);
    const first = last !== "" && today !== last;
    last = today;
    return first ? `${label}\n${today}` : label;
  });
}

export class Chart {
  /** @param small a line without axes, as on a card. */
  constructor(container, { small = false, pick = null, hover = null } = {}) {
    Object.assign(this, { container, small, pick, hover, times: [], lines: [], mark: null, plot: null, shape: "" });
    new ResizeObserver(() => this.resize()).observe(container);
    dark.addEventListener("change", () => this.draw(this.times, this.lines, true));
  }

  size() {
    const style = getComputedStyle(this.container);
    const width = this.container.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return { width: Math.max(width, 80), height: this.small ? Math.max(72, this.container.clientHeight) : Math.min(340, Math.max(220, width * 0.5)) };
  }

  resize() {
    if (!this.plot || !this.container.clientWidth) return;
    const { width, height } = this.size();
    if (width === this.plot.width && height === this.plot.height) return;
    if (this.labelled() === this.plot.labelled) this.plot.setSize({ width, height });
    else this.draw(this.times, this.lines, true);
  }

  /** Names at the ends of the lines, where there is room for them. */
  labelled() {
    return !this.small && this.lines.some((line) => line.name) && this.container.clientWidth >= 600;
  }

  /**
   * @param times seconds since 1970, one a tick
   * @param lines `{ colour, name, values, lower, upper }`, the last three each with one number or null for every time
   */
  draw(times, lines, anew = false) {
    Object.assign(this, { times, lines });
    // What is drawn next to it in the same frame may move it, and an observer does not hear of a size that comes and goes.
    requestAnimationFrame(() => this.resize());
    const data = [times, ...lines.flatMap(({ values, lower, upper }) => [upper, lower, values])];
    const shape = JSON.stringify(lines.map((line) => [line.colour, line.name]));
    if (!anew && this.plot && shape === this.shape) {
      this.plot.setData(data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = new globalThis.uPlot(this.options(), data, this.container);
    this.plot.labelled = this.labelled();
  }

  /** The time that is marked with a line, or null. */
  markAt(time) {
    this.mark = time;
    this.plot?.redraw(false);
  }

  options() {
    const series = [{}];
    const bands = [];
    this.lines.forEach((line) => {
      const stroke = colourOf(line.colour);
      bands.push({ series: [series.length, series.length + 1], fill: `${stroke}${this.small ? "33" : "2b"}` });
      const edge = { stroke: "transparent", width: 1, points: { show: false } }; // no path without a width, no band without a path
      series.push({ ...edge }, { ...edge }, {
        stroke,
        width: this.small ? 2 : 2.25,
        points: { show: (plot) => plot.data[0].length < 3, size: 7, fill: stroke, stroke },
      });
    });
    const axis = {
      stroke: colour("--muted"),
      grid: { stroke: colour("--rule"), width: 1 },
      ticks: { show: false },
      font: `13px ${FONT}`,
    };
    return {
      ...this.size(),
      padding: this.small ? [6, 2, 6, 2] : [12, this.labelled() ? LABEL : 36, 0, 0],
      legend: { show: false },
      cursor: this.small
        ? { show: false }
        : { drag: { x: false, y: false }, y: false, points: { size: 8 }, bind: { dblclick: () => null } },
      scales: {
        // A single moment has an hour on both sides; by itself it would have years.
        x: { range: (plot, low, high) => (plot.data[0].length === 1 ? [low - 3600, low + 3600] : [low, high]) },
        y: { range: (_, low, high) => roomy(low, high, this.small) },
      },
      axes: this.small
        ? [{ show: false }, { show: false }]
        : [
            { ...axis, grid: { show: false }, space: 84, size: 36, values: timeLabels },
            { ...axis, size: 58, values: (_, splits) => splits.map(compact) },
          ],
      series,
      bands,
      hooks: {
        draw: [(plot) => this.drawMark(plot), (plot) => this.labelled() && this.drawLabels(plot)],
        setCursor: [(plot) => this.hover?.(plot.cursor.idx ?? null)],
        ready: [(plot) => plot.over.addEventListener("click", () => {
          if (plot.cursor.idx !== null && plot.cursor.idx !== undefined) this.pick?.(plot.cursor.idx);
        })],
      },
    };
  }

  drawLabels(plot) {
    const { ctx, bbox } = plot;
    const labels = this.lines.flatMap(({ colour: index, name, values }) => {
      const last = values.findLast((value) => value !== null);
      return last === undefined ? [] : [{ name, index, y: plot.valToPos(last, "y", true) }];
    });
    ctx.save();
    ctx.font = `${13 * devicePixelRatio}px ${FONT}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const { name, index, y } of apart(labels, 16 * devicePixelRatio, bbox.top + bbox.height)) {
      ctx.fillStyle = colourOf(index);
      ctx.fillText(name, bbox.left + bbox.width + 8 * devicePixelRatio, y, (LABEL - 8) * devicePixelRatio);
    }
    ctx.restore();
  }

  drawMark(plot) {
    if (this.mark === null || this.small) return;
    const x = Math.round(plot.valToPos(this.mark, "x", true));
    const { left, top, width, height } = plot.bbox;
    if (!(x >= left && x <= left + width)) return;
    const { ctx } = plot;
    ctx.save();
    ctx.strokeStyle = colour("--muted");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.restore();
  }
}

/** Heights at which labels of this size do not cover each other, as near to the wanted ones as moving down and then up brings them. */
function apart(labels, size, bottom) {
  labels.sort((one, other) => one.y - other.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + size);
  for (let i = labels.length - 1, limit = bottom; i >= 0; i--, limit = labels[i + 1].y - size) labels[i].y = Math.min(labels[i].y, limit);
  return labels;
}

/** A scale that leaves some air. Where there is an axis, zero is on it if it is near. */
function roomy(low, high, tight) {
  if (low === null || high === null) return [0, 1];
  const air = Math.max((high - low) * 0.08, 1);
  return [!tight && low >= 0 && low < (high - low) * 1.5 ? Math.min(0, low) : low - air, high + air];
}
