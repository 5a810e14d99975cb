// The charts of a device's page, drawn by uPlot in place of the pictures that the server drew.

import { textOf } from "./texts.js";
import { formatValue } from "./words.js";

const HEIGHT = 190;
const TIMELINE_HEIGHT = 90; // of a channel that is on or off
const CLOCKS = 60; // seconds by which the clocks of hubs and browsers may differ
const STEPS = 60; // of an arrow key over a chart
const ADVANCE = 10_000; // how often the charts move on

const charts = new Map(); // by key and endpoint
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--color-${name}`).trim();
const now = () => Date.now() / 1000;

// held returns the index of the value that a channel had at a time: the last one before it, where
// uPlot takes the nearest.
const held = (plot, _, nearest, time) => Math.max(0, nearest - (plot.data[0][nearest] > time));

// The page's period, in seconds: its last hours, or from a time to a time or now. zoomed is what a
// person has selected of it by drawing over a chart; null for all.
let page = {};
let zoomed = null;
const period = () => [page.hours ? now() - page.hours * 3600 : page.from, page.to ?? now()];

// zoomTo shows a period in all charts, in the page's address and in the fields of its form.
function zoomTo(part) {
  zoomed = part;
  charts.forEach((chart) => chart.advance());
  document.getElementById("zoom-out").hidden = !zoomed;
  const address = new URL(page.address);
  if (zoomed) {
    address.search = new URLSearchParams(zoomed.map((time, i) => [["from", "to"][i], new Date(time * 1000).toISOString().replace(/\.\d+/, "")]));
  }
  history.replaceState(history.state, "", address);
  const { elements } = document.getElementById("chart-period");
  const local = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short", timeZone: elements.zone.value });
  ["from", "to"].forEach((name, i) => {
    elements[name].value = zoomed ? local.format(zoomed[i] * 1000).replace(" ", "T") : elements[name].defaultValue;
  });
  if (zoomed) {
    page.chosen?.removeAttribute("aria-current");
  } else {
    page.chosen?.setAttribute("aria-current", "true");
  }
  document.dispatchEvent(new Event("period"));
}

// select zooms to what was selected in a chart, and takes the selection away.
function select(plot) {
  const { left, width } = plot.select;
  if (width > 0) {
    const part = [left, left + width].map((at) => plot.posToVal(at, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoomTo(part);
  }
}

// drawCharts draws the page's charts, if it has any.
export function drawCharts() {
  const element = document.getElementById("chart-data");
  if (!element || !window.uPlot) {
    return;
  }
  const section = document.querySelector("[data-hours]");
  const { hours, from, to } = section.dataset;
  page = { hours: Number(hours), from: Number(from), to: to && Number(to), address: location.href, chosen: section.querySelector("[aria-current]") };
  document.getElementById("zoom-out").addEventListener("click", () => zoomTo(null));
  for (const data of JSON.parse(element.textContent)) {
    const figure = document.querySelector(`[data-chart="${CSS.escape(`${data.key}/${data.endpoint}`)}"]`);
    charts.set(`${data.key}/${data.endpoint}`, new Chart(figure, data));
  }
  document.getElementById("chart-zone").textContent = textOf("chart-zone", { zone: Intl.DateTimeFormat().resolvedOptions().timeZone });
  setInterval(() => {
    if (!document.hidden) {
      charts.forEach((chart) => chart.advance());
    }
  }, ADVANCE);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.draw()));
}

// addToChart adds a reported value to the chart of its channel. at is the time of the hub's clock,
// in seconds.
export function addToChart({ key, endpoint, value }, at, trusted) {
  if (typeof value === "number" || typeof value === "boolean") {
    charts.get(`${key}/${endpoint}`)?.add(at, trusted, value);
  }
}

// rangeWithin returns the range of an axis around values: a tenth of their scale at least, so that
// noise stays small, and not beyond the scale.
function rangeWithin(low, high, [bottom, top]) {
  const pad = Math.max((high - low) / 10, ((top - bottom) / 10 - (high - low)) / 2);
  return [Math.max(bottom, low - pad), Math.min(top, high + pad)];
}

class Chart {
  constructor(figure, data) {
    Object.assign(this, { figure, data });
    const picture = figure.querySelector("svg");
    figure.querySelector(".axis").remove();
    this.box = document.createElement("div");
    picture.replaceWith(this.box);
    this.draw();
    new ResizeObserver(() => {
      if (this.box.clientWidth !== this.plot.width) {
        this.plot.setSize({ width: this.box.clientWidth, height: this.plot.height });
      }
    }).observe(this.box);
  }

  text(value) {
    const { key, unit, boolean } = this.data;
    return formatValue(key, boolean ? value > 0 : value, unit);
  }

  draw() {
    this.plot?.destroy();
    const { label, boolean, scale } = this.data;
    const axis = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
    this.plot = new window.uPlot(
      {
        width: this.box.clientWidth,
        height: boolean ? TIMELINE_HEIGHT : HEIGHT,
        cursor: { dataIdx: held, y: false, drag: { setScale: false }, sync: { key: "device" }, bind: { dblclick: () => () => zoomTo(null) } },
        hooks: {
          setSelect: [select],
          setCursor: [(plot) => plot.root.classList.toggle("pointed", plot.cursor.left >= 0)],
        },
        scales: { x: { range: () => zoomed ?? period() }, y: scale ? { range: boolean ? scale : (_, low, high) => rangeWithin(low ?? scale[0], high ?? scale[1], scale) } : {} },
        axes: [
          { ...axis, size: 30, values: (_, times) => times.map((time) => clock.format(time * 1000)) },
          { ...axis, size: 92, values: (_, values) => values.map((value) => this.text(value)), ...(boolean ? { splits: [0, 1] } : {}) },
        ],
        series: [
          { label: textOf("chart-time"), value: (_, time) => (time === null ? "–" : exact.format(time * 1000)) },
          {
            label,
            stroke: color("brand"),
            fill: boolean ? color("brand-soft") : undefined,
            width: 2,
            paths: window.uPlot.paths.stepped({ align: 1 }),
            points: { show: false },
            value: (_, value) => (value === null ? "–" : this.text(value)),
          },
        ],
      },
      this.shown(),
      this.box,
    );
    const picture = (this.picture = this.plot.root.querySelector(".u-wrap"));
    this.plot.root.querySelector("table").setAttribute("aria-label", label);
    picture.setAttribute("role", "slider"); // over the chart's time, by the keyboard
    picture.setAttribute("aria-label", label);
    picture.setAttribute("aria-valuenow", 100);
    picture.setAttribute("aria-valuetext", this.text(this.data.values.at(-1)));
    picture.tabIndex = 0;
    picture.addEventListener("keydown", (pressed) => this.move(pressed));
    picture.addEventListener("blur", () => this.plot.setCursor({ left: -10, top: -10 }, true, true));
  }

  // move moves the cursor of all charts by an arrow key.
  move(pressed) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[pressed.key];
    if (!by) {
      return;
    }
    pressed.preventDefault();
    const { cursor, over } = this.plot;
    const width = over.clientWidth;
    const left = Math.min(width, Math.max(0, (cursor.left < 0 ? width : cursor.left) + (by * width) / STEPS));
    this.plot.setCursor({ left, top: 0 }, true, true);
    const [times, values] = this.plot.data.map((each, i) => each[cursor.idxs[i]]);
    this.picture.setAttribute("aria-valuenow", Math.round((left / width) * 100));
    this.picture.setAttribute("aria-valuetext", `${exact.format(times * 1000)}: ${this.text(values)}`);
  }

  // shown returns the values in the period. The last value holds until its end.
  shown() {
    const { times, values } = this.data;
    const [from, to] = period();
    while (times.length > 1 && times[1] < from) {
      times.shift();
      values.shift();
    }
    return [
      [...times, Math.max(to, times.at(-1))],
      [...values, values.at(-1)],
    ];
  }

  advance() {
    this.plot.setData(this.shown());
  }

  add(at, trusted, value) {
    if (page.to) {
      return; // the period is over
    }
    const { times, values, scale } = this.data;
    const last = times.at(-1) ?? 0;
    // The hub's clock may be wrong; the order of the events is right.
    times.push(trusted && at >= last && at <= now() + CLOCKS ? at : Math.max(last, now()));
    values.push(Number(value));
    this.figure.querySelector("figcaption b").textContent = this.text(Number(value));
    if (document.activeElement !== this.picture) {
      this.picture.setAttribute("aria-valuetext", this.text(Number(value)));
    }
    const [low, high] = [Math.min(...values), Math.max(...values)].map((bound) => this.text(bound));
    this.figure.querySelector("figcaption .quiet").textContent = this.data.boolean ? "" : textOf(low === high ? "chart-always" : "chart-range", { low, high });
    if (scale && (value < scale[0] || value > scale[1])) {
      this.data.scale = null; // a value outside the fixed scale
      this.draw();
    } else {
      this.advance();
    }
  }
}
