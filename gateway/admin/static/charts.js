// Draws every figure[data-chart] with uPlot, in the theme's colours and on the clinic's clock.
//
// The attribute holds JSON: {"times": [seconds since 1970], "series": [{"label", "values"}], "unit",
// "kind": "bars" | "lines", "zone", "step": "minute" | "day", "language"}. Bars are stacked, the
// first series below; null is a gap. A series that is not always there may have a "look", 0 to 6,
// so that it looks the same each time. What is drawn stands in a table beside it too, so that
// nothing here need be read aloud. A figure whose attribute changes is drawn anew.
"use strict";

(() => {
  const HEIGHT = 220;
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 4], [1, 5]];
  const drawn = new Map();

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const lookOf = (given, number) => given.series[number].look ?? number;
  const colour = (number) => css(`--chart-${(number % 7) + 1}`);

  // Lines across the colour, denser and turned from series to series, so that no two look alike
  // without colours.
  function hatched(context, number) {
    const fill = colour(number);
    if (number === 0) return fill;
    const size = 8 * Math.round(devicePixelRatio || 1);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    pen.fillStyle = fill;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = css("--chart-paper");
    pen.lineWidth = size / (number > 3 ? 4 : 8);
    pen.beginPath();
    const lines = { 1: [[0, 1, 1, 0]], 2: [[0, 0, 1, 1]], 0: [[0, 0.5, 1, 0.5]] }[number % 3];
    for (const [x, y, toX, toY] of lines) {
      for (const moved of [-1, 0, 1]) {
        pen.moveTo((x + (number % 3 ? moved : 0)) * size, (y + (number % 3 ? 0 : moved)) * size);
        pen.lineTo((toX + (number % 3 ? moved : 0)) * size, (toY + (number % 3 ? 0 : moved)) * size);
      }
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  function stacked(series, length) {
    const below = new Array(length).fill(0);
    return series.map((each) => each.values.map((value, at) => {
      if (value === null) return null;
      below[at] += value;
      return below[at];
    }));
  }

  function clockOf(given) {
    const zone = { timeZone: given.zone };
    const day = new Intl.DateTimeFormat(given.language, { ...zone, day: "numeric", month: "short" });
    if (given.step === "day") return { axis: day, exact: day };
    const time = { ...zone, hour: "2-digit", minute: "2-digit", hour12: false };
    const axis = new Intl.DateTimeFormat(given.language, time);
    return { axis, exact: axis };
  }

  // A list below the drawing: the mark of each series as it is drawn, and its value where the
  // pointer is, else the last one.
  function legendOf(given, order) {
    const list = document.createElement("ul");
    list.className = "legend";
    const moment = document.createElement("li");
    list.append(moment);
    const values = order.map((number) => {
      const look = lookOf(given, number);
      const item = document.createElement("li");
      const mark = document.createElement("canvas");
      [mark.width, mark.height] = [44, 24];
      const pen = mark.getContext("2d");
      if (given.kind === "bars") {
        pen.fillStyle = hatched(pen, look);
        pen.fillRect(0, 0, 44, 24);
      } else {
        pen.strokeStyle = colour(look);
        pen.lineWidth = look % 2 ? 4 : 6;
        pen.setLineDash(DASHES[look % 7].map((part) => part * 2));
        pen.beginPath();
        pen.moveTo(0, 12);
        pen.lineTo(44, 12);
        pen.stroke();
      }
      const value = document.createElement("b");
      item.append(mark, ` ${given.series[number].label} `, value);
      list.append(item);
      return value;
    });
    const numbers = new Intl.NumberFormat(given.language);
    const { exact } = clockOf(given);
    const show = (at) => {
      moment.textContent = at === null ? "" : exact.format(given.times[at] * 1000);
      order.forEach((number, place) => {
        const value = at === null ? null : given.series[number].values[at];
        values[place].textContent = value === null ? "–" : numbers.format(value);
      });
    };
    return { list, show };
  }

  // The place of the last point that any series has.
  function lastOf(given) {
    for (let at = given.times.length - 1; at >= 0; at -= 1) {
      if (given.series.some((each) => each.values[at] !== null)) return at;
    }
    return null;
  }

  function axesOf(given) {
    const ink = { stroke: css("--chart-ink"), grid: { stroke: css("--chart-grid"), width: 1 } };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const numbers = new Intl.NumberFormat(given.language, { notation: "compact" });
    const { axis } = clockOf(given);
    const whole = (u, splits) => splits.map((each) => (
      given.kind === "bars" && !Number.isInteger(each) ? null : numbers.format(each)
    ));
    return [
      { ...ink, font, ticks: ink.grid, space: 64, values: (u, splits) => splits.map((each) => axis.format(each * 1000)) },
      { ...ink, font, ticks: ink.grid, size: 56, values: whole },
    ];
  }

  function seriesOf(given, order) {
    const bars = uPlot.paths.bars({ size: [0.8, 48] });
    const paper = css("--chart-paper");
    return order.map((number) => {
      const { label } = given.series[number];
      const look = lookOf(given, number);
      if (given.kind === "bars") {
        return { label, paths: bars, fill: (u) => hatched(u.ctx, look), stroke: paper, width: 0.5, points: { show: false } };
      }
      return { label, stroke: colour(look), width: look % 2 ? 2 : 3, dash: DASHES[look % 7], points: { show: false } };
    });
  }

  function draw(figure) {
    const given = JSON.parse(figure.dataset.chart);
    forget(figure);
    // what is higher in the stack is drawn first, and stands first in the legend
    const order = given.series.map((_, number) => number);
    if (given.kind === "bars") order.reverse();
    const values = given.kind === "bars" ? stacked(given.series, given.times.length) : given.series.map((each) => each.values);
    const { list, show } = legendOf(given, order);
    const last = lastOf(given);
    const half = given.times.length > 1 ? (given.times[1] - given.times[0]) / 2 : 30;
    const options = {
      width: figure.clientWidth || 300,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), given.zone),
      legend: { show: false },
      cursor: { y: false, points: { show: given.kind === "lines" }, drag: { x: false, y: false } },
      scales: {
        x: { range: (u, from, to) => [from - half, to + half] },
        y: { range: (u, from, to) => [0, Math.max(to * 1.05, given.kind === "bars" ? 4 : 0.001)] },
      },
      axes: axesOf(given),
      series: [{}, ...seriesOf(given, order)],
      hooks: { setCursor: [(u) => show(u.cursor.idx ?? last)] },
    };
    figure.append(list);
    const unit = document.createElement("p");
    unit.className = "unit";
    unit.textContent = given.unit;
    figure.prepend(unit);
    const plot = new uPlot(options, [given.times, ...order.map((number) => values[number])], figure);
    figure.insertBefore(plot.root, list);
    show(last);
    const resized = new ResizeObserver(() => {
      if (figure.clientWidth && figure.clientWidth !== plot.width) plot.setSize({ width: figure.clientWidth, height: HEIGHT });
    });
    resized.observe(figure);
    drawn.set(figure, { text: figure.dataset.chart, plot, resized });
  }

  function forget(figure) {
    const known = drawn.get(figure);
    if (!known) return;
    known.resized.disconnect();
    known.plot.destroy();
    drawn.delete(figure);
    figure.replaceChildren();
  }

  function drawAll({ anew = false } = {}) {
    for (const figure of [...drawn.keys()]) if (!figure.isConnected) forget(figure);
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      if (anew || drawn.get(figure)?.text !== figure.dataset.chart) draw(figure);
    }
  }

  document.addEventListener("DOMContentLoaded", () => drawAll());
  document.addEventListener("htmx:after:swap", () => drawAll());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll({ anew: true }));
})();
