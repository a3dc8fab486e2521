// Curves of one measure over the stream: a line per model with its name at its end, marks for what happened.

const FONT = "12px system-ui, sans-serif";
// Narrower charts have no room for names beside the lines; the legend tells them.
const ROOM_FOR_NAMES = 560;
const NAME_HEIGHT = 14;
const count = (number) => number.toLocaleString("en");

function axis(label, more = {}) {
  const fonts = { font: FONT, labelFont: FONT, labelSize: 18, size: 30, gap: 6 };
  const grid = { stroke: paint("--line"), width: 1 };
  return { label, stroke: paint("--muted"), ...fonts, grid, ticks: { show: false }, ...more };
}

/** Values as near to those wanted as can be with a gap between any two, none below the lowest or above the highest. */
function apart(wanted, gap, lowest, highest) {
  const order = [...wanted.keys()].sort((a, b) => wanted[a] - wanted[b]);
  const moved = [...wanted];
  let limit = lowest;
  for (const place of order) limit = (moved[place] = Math.max(moved[place], limit)) + gap;
  limit = highest;
  for (const place of order.reverse()) limit = (moved[place] = Math.min(moved[place], limit)) - gap;
  return moved;
}

/** A name that is no wider than so many pixels. */
function shortened(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  let end = name.length;
  while (end > 1 && context.measureText(`${name.slice(0, end)}…`).width > width) end -= 1;
  return `${name.slice(0, end)}…`;
}

// Draws a chart whenever the theme or the width changes, and lets arrow keys go from one of its points to the next.
function keep(element, plot, draw, points, go) {
  redraws.push(draw);
  new ResizeObserver(() => {
    if (!printing && plot() && plot().width !== element.clientWidth) draw();
  }).observe(element);
  element.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const { at, last } = points();
    go(Math.min(last, Math.max(0, at === null ? (move > 0 ? 0 : last) : at + move)));
  });
}

function startCurves(element) {
  const measure = document.getElementById("measure");
  const status = document.getElementById("curves-status");
  const rows = data.curves.rows;
  const events = data.events;
  let kind = document.querySelector("input[name=kind]:checked").value;
  let at = null;
  let plot = null;

  const lines = () => data.curves.values[measure.value][kind];
  const lastOf = (line) => line.findLastIndex((value) => value !== null);

  /** What happened between the point before and this one. */
  function happened(place) {
    const here = (row) => row < rows[place] && row >= (place ? rows[place - 1] : 0);
    const told = [];
    for (const { row, count: many, names } of events.labels) {
      if (here(row)) told.push(`${many === 1 ? "label" : `${count(many)} labels`} appeared: ${names.join(", ")}${many > names.length ? ", …" : ""}`);
    }
    const found = events.drifts.filter((drift) => drift.rows.some(here)).map((drift) => data.models[drift.model].name);
    if (found.length) told.push(`drift found by ${found.join(", ")}`);
    return told.map((text) => `; ${text}`).join("");
  }

  function read(place) {
    at = place ?? null;
    const { decimals } = data.measures.find(({ name }) => name === measure.value);
    const values = lines().map((line) => line[at ?? lastOf(line)] ?? null);
    legend.write(values.map((value) => (value === null ? "–" : value.toFixed(decimals))));
    status.textContent = at === null ? "At the end of the stream" : `At row ${count(rows[at])}${happened(at)}`;
  }

  /** Marks: drifts hang from the top, in the model's colour; labels that appeared stand at the bottom. */
  function drawMarks({ ctx, bbox, valToPos }) {
    const { top, height, left, width } = bbox;
    const size = 5 * devicePixelRatio;
    const across = (row) => Math.round(valToPos(row, "x", true));
    const inside = (x) => x >= left && x <= left + width;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = paint("--muted");
    ctx.beginPath();
    for (const x of events.labels.map(({ row }) => across(row)).filter(inside)) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x, top + height - 2 * size);
    }
    ctx.stroke();
    for (const { model, rows: found } of events.drifts) {
      if (!legend.shown[model]) continue;
      ctx.fillStyle = ctx.strokeStyle = modelColor(model);
      for (const x of found.map(across).filter(inside)) {
        ctx.setLineDash([]);
        ctx.beginPath();
        ctx.moveTo(x - size, top);
        ctx.lineTo(x + size, top);
        ctx.lineTo(x, top + 1.6 * size);
        ctx.fill();
        ctx.setLineDash([size / 2, size / 2]);
        ctx.globalAlpha = 0.6;
        ctx.beginPath();
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
        ctx.stroke();
        ctx.globalAlpha = 1;
      }
    }
    ctx.restore();
  }

  /** Names beside the lines' ends, moved apart, each joined to its line. */
  function drawNames({ ctx, bbox, valToPos, series }, room) {
    const dot = devicePixelRatio;
    const ends = [];
    lines().forEach((line, model) => {
      const last = lastOf(line);
      if (last < 0 || !legend.shown[model]) return;
      const x = Math.min(valToPos(rows[last], "x", true), bbox.left + bbox.width);
      ends.push({ model, x, y: valToPos(line[last], "y", true) });
    });
    const heights = apart(ends.map(({ y }) => y), NAME_HEIGHT * dot, bbox.top, bbox.top + bbox.height);
    const left = bbox.left + bbox.width + 10 * dot;
    ctx.save();
    ctx.font = FONT.replace("12", 12 * dot);
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.setLineDash([]);
    ctx.lineWidth = dot;
    ends.forEach(({ model, x, y }, place) => {
      ctx.fillStyle = ctx.strokeStyle = modelColor(model);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(left - 3 * dot, heights[place]);
      ctx.stroke();
      ctx.fillText(shortened(ctx, data.models[model].name, room * dot), left, heights[place]);
    });
    ctx.restore();
  }

  function draw(width = element.clientWidth) {
    plot?.destroy();
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const widest = Math.max(...data.models.map(({ name }) => pen.measureText(name).width));
    const room = width < ROOM_FOR_NAMES ? 0 : Math.ceil(Math.min(widest, width / 4));
    const series = data.models.map((model, place) => ({
      label: model.name,
      stroke: modelColor(place),
      width: 2,
      dash: model.dash,
      show: legend.shown[place],
      // A line needs two ends; a model that was tested once is a dot.
      points: { show: lines()[place].filter((value) => value !== null).length < 2, size: 8, fill: modelColor(place) },
    }));
    const options = {
      width,
      height: Math.round(Math.min(440, Math.max(260, width * 0.5))),
      padding: [null, room ? room + 18 : null, null, null],
      legend: { show: false },
      scales: { x: { time: false } },
      axes: [axis("rows of the stream"), axis("", { size: 52, labelSize: 0 })],
      series: [{}, ...series],
      cursor: { y: false, focus: { prox: 20 }, drag: { x: true, y: false }, points: { size: 7 } },
      focus: { alpha: 0.3 },
      hooks: { setCursor: [(drawn) => read(drawn.cursor.idx)], drawAxes: [drawMarks], draw: room ? [(drawn) => drawNames(drawn, room)] : [] },
    };
    plot = new uPlot(options, [rows, ...lines()], element);
  }

  const legend = makeLegend(document.getElementById("curves-legend"), {
    onToggle: (place, show) => plot.setSeries(place + 1, { show }),
    onFocus: (place) => plot.setSeries(place === null ? null : place + 1, { focus: true }),
  });
  const refresh = () => {
    draw();
    read(null);
  };
  const points = () => ({ at, last: rows.length - 1 });
  keep(element, () => plot, draw, points, (place) => {
    plot.setCursor({ left: plot.valToPos(rows[place], "x"), top: 0 });
  });
  measure.addEventListener("change", refresh);
  for (const input of document.querySelectorAll("input[name=kind]")) {
    input.addEventListener("change", () => {
      kind = input.value;
      refresh();
    });
  }
  refresh();
}

const curvesElement = document.getElementById("curves");
if (curvesElement) startCurves(curvesElement);
