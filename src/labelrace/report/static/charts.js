// Draws panels from their descriptions, which stand in the page as JSON, with uPlot. It knows no model and no measure.

const FONT = "12px system-ui, sans-serif";
// Narrower panels have no room for names beside the lines; the legend has them.
const ROOM_FOR_NAMES = 560;
const NAME_HEIGHT = 14;
// Pixels from a point within which the pointer means it.
const REACH = 40;
// Above this many points, markers are small and let others shine through.
const CROWDED = 500;

const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });
const share = (value) => `${(100 * value).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
const nameOf = (panel, x) => panel.x_names[x] ?? (panel.percent ? share(x) : number(x));
const colorOf = ({ color }) => paint(color === null ? "--muted" : `--color-${color}`);
const lastOf = (line) => line.findLastIndex((value) => value !== null);

/** Values as near to those wanted as can be with a gap between any two, none below the lowest or above the highest. */
function spreadOut(wanted, gap, lowest, highest) {
  const order = [...wanted.keys()].sort((a, b) => wanted[a] - wanted[b]);
  const moved = [...wanted];
  let limit = lowest;
  for (const index of order) limit = (moved[index] = Math.max(moved[index], limit)) + gap;
  limit = highest;
  for (const index of order.reverse()) limit = (moved[index] = Math.min(moved[index], limit)) - gap;
  return moved;
}

/** A name that is at most as wide as given, in pixels. */
function shortened(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  let end = name.length;
  while (end > 1 && context.measureText(`${name.slice(0, end)}…`).width > width) end -= 1;
  return `${name.slice(0, end)}…`;
}

/** Where a logarithmic axis has numbers: at powers of ten, or at 1, 2 and 5 times these where there are few. */
function logTicks(low, high) {
  const steps = high < 1000 * low ? [1, 2, 5] : [1];
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(power);
  return powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`))).filter((tick) => tick >= low && tick <= high);
}

/** All points of the series in the order of x, and each series' values at them: undefined where it has no point. */
function aligned({ series, log }) {
  const positive = (value, axis) => (log.includes(axis) && value !== null && value <= 0 ? null : value);
  if (series.every(({ x }) => x === series[0].x)) {
    const slots = series.map(({ x }) => x.map((_, at) => at));
    return { x: series[0]?.x ?? [], lines: series.map(({ y }) => y.map((value) => positive(value, "y"))), slots };
  }
  const points = series.flatMap(({ x }, index) => x.map((value, at) => ({ value, index, at })));
  points.sort((a, b) => a.value - b.value);
  const lines = series.map(() => new Array(points.length).fill(undefined));
  const slots = series.map(({ x }) => new Array(x.length));
  points.forEach(({ index, at }, slot) => {
    lines[index][slot] = positive(series[index].y[at], "y");
    slots[index][at] = slot;
  });
  return { x: points.map(({ value }) => value), lines, slots };
}

/** What can be read: points that have something to say, or else every value of x; from left to right. */
function stopsOf(panel, x, slots) {
  const stops = panel.series.flatMap((one, index) =>
    one.tips.map((tip, at) => ({ index, slot: slots[index][at], x: one.x[at], y: one.y[at], tip })),
  );
  if (stops.length) return stops.filter(({ y }) => y !== null).sort((a, b) => a.x - b.x);
  return [...new Set(x)].map((value) => ({ x: value }));
}

/** Marks: those with a colour hang from the top, the others stand at the bottom. */
function drawMarks({ ctx, bbox, valToPos }, marks) {
  const { top, height, left, width } = bbox;
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const mark of marks) {
    const x = Math.round(valToPos(mark.x, "x", true));
    if (x < left || x > left + width) continue;
    ctx.fillStyle = ctx.strokeStyle = colorOf(mark);
    ctx.setLineDash([]);
    ctx.beginPath();
    if (mark.color === null) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x, top + height - 2 * size);
      ctx.stroke();
      continue;
    }
    ctx.moveTo(x - size, top);
    ctx.lineTo(x + size, top);
    ctx.lineTo(x, top + 1.6 * size);
    ctx.closePath();
    if (mark.hollow) {
      ctx.stroke();
      continue;
    }
    ctx.fill();
    ctx.setLineDash([size / 2, size / 2]);
    ctx.globalAlpha = 0.6;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
  ctx.restore();
}

/** The line on which both values are equal. */
function drawDiagonal({ ctx, valToPos }, [low, high]) {
  ctx.save();
  ctx.strokeStyle = paint("--muted");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(valToPos(low, "x", true), valToPos(low, "y", true));
  ctx.lineTo(valToPos(high, "x", true), valToPos(high, "y", true));
  ctx.stroke();
  ctx.restore();
}

/** What a series has beside its line: a band or bars of its spread, and markers. */
function drawPoints({ ctx, bbox, valToPos }, one, alpha) {
  const points = one.x
    .map((x, at) => ({ x: valToPos(x, "x", true), y: one.y[at], spread: one.spread?.[at] ?? 0 }))
    .filter(({ x, y }) => y !== null && Number.isFinite(x));
  const height = (value) => valToPos(value, "y", true);
  const crowded = points.length > CROWDED;
  const alone = one.line && points.length === 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - 6, bbox.top - 6, bbox.width + 12, bbox.height + 12);
  ctx.clip();
  ctx.fillStyle = ctx.strokeStyle = colorOf(one);
  ctx.lineWidth = 1.2 * devicePixelRatio;
  if (one.spread && one.line) {
    ctx.globalAlpha = 0.12 * alpha;
    ctx.beginPath();
    for (const { x, y, spread } of points) ctx.lineTo(x, height(y + spread));
    for (const { x, y, spread } of [...points].reverse()) ctx.lineTo(x, height(y - spread));
    ctx.fill();
  } else if (one.spread) {
    ctx.globalAlpha = 0.6 * alpha;
    ctx.beginPath();
    for (const { x, y, spread } of points) {
      ctx.moveTo(x, height(y + spread));
      ctx.lineTo(x, height(y - spread));
    }
    ctx.stroke();
  }
  ctx.globalAlpha = alpha * (crowded ? 0.35 : one.marker === "." ? 0.6 : 1);
  const radius = (crowded ? 2 : one.line && !alone ? 3 : 3.5) * devicePixelRatio;
  for (const { x, y } of one.marker || alone ? points : []) {
    ctx.beginPath();
    if (one.marker === "s") ctx.rect(x - radius, height(y) - radius, 2 * radius, 2 * radius);
    else ctx.arc(x, height(y), radius, 0, 2 * Math.PI);
    if (one.hollow) ctx.stroke();
    else ctx.fill();
  }
  ctx.restore();
}

/** Names beside the lines' ends, moved apart, each joined to its line. */
function drawNames({ ctx, bbox, valToPos }, lines, room) {
  const dot = devicePixelRatio;
  const ends = lines.map((one) => {
    const last = lastOf(one.y);
    return { one, x: Math.min(valToPos(one.x[last], "x", true), bbox.left + bbox.width), y: valToPos(one.y[last], "y", true) };
  });
  const heights = spreadOut(ends.map(({ y }) => y), NAME_HEIGHT * dot, bbox.top, bbox.top + bbox.height);
  const left = bbox.left + bbox.width + 10 * dot;
  ctx.save();
  ctx.font = FONT.replace("12", 12 * dot);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.setLineDash([]);
  ctx.lineWidth = dot;
  ends.forEach(({ one, x, y }, index) => {
    ctx.fillStyle = ctx.strokeStyle = colorOf(one);
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(left - 3 * dot, heights[index]);
    ctx.stroke();
    ctx.fillText(shortened(ctx, one.name, room * dot), left, heights[index]);
  });
  ctx.restore();
}

/** Scales and axes of a panel, in the colours of the theme. */
function axesOf(panel, hasMarkers) {
  const isLog = (axis) => panel.log.includes(axis);
  const wider = (low, high) => [low / 1.2, high * 1.2];
  const padded = (low, high) => [low - 0.04 * (high - low || 1), high + 0.04 * (high - low || 1)];
  const x = { time: false, distr: isLog("x") ? 3 : 1 };
  if (panel.x_range) x.range = panel.x_range;
  else if (isLog("x")) x.range = (_, low, high) => wider(low, high);
  else if (hasMarkers) x.range = (_, low, high) => padded(low, high);
  const y = { distr: isLog("y") ? 3 : 1 };
  if (panel.y_range) y.range = (_, low, high) => [panel.y_range[0], panel.y_range[1] ?? high * 1.06];
  else if (isLog("y")) y.range = (_, low, high) => wider(low, high);
  const axis = (label, log, more) => ({
    label,
    stroke: paint("--muted"),
    font: FONT,
    labelFont: FONT,
    labelSize: label ? 18 : 0,
    gap: 6,
    grid: { stroke: paint("--line"), width: 1 },
    ticks: { show: false },
    filter: (_, splits) => splits,
    ...(log ? { splits: (_u, _axis, low, high) => logTicks(low, high) } : {}),
    ...more,
  });
  const below = { size: 30, values: (_, splits) => splits.map((value) => nameOf(panel, value)) };
  if (panel.x_ticks.length) below.splits = () => panel.x_ticks;
  const beside = { size: 48, values: (_, splits) => splits.map(number) };
  return { scales: { x, y }, axes: [axis(panel.x_label, isLog("x"), below), axis(panel.y_label, isLog("y"), beside)] };
}

/** A box that shows one panel at a time. It is drawn again at every change of theme, width or what is shown. */
function startPanel(box, chart, legend, say) {
  let panel, x, lines, slots, stops, plot, width;
  let at = null; // the stop that is read
  let isStepping = false;
  const isShown = (one) => one.entry === null || legend.shown[one.entry];
  const hasTips = () => stops.length > 0 && "tip" in stops[0];
  const marks = () => chart.marks.filter((mark) => mark.color === null || panel.series.every((one) => one.color !== mark.color || isShown(one)));

  function read() {
    const values = legend.shown.map((_, entry) => {
      const one = panel.series.find((series) => series.entry === entry && series.line);
      if (!one || (at === null && hasTips())) return "";
      const index = at === null ? lastOf(one.y) : one.x.indexOf(stops[at].x);
      return one.y[index]?.toFixed(panel.decimals) ?? "–";
    });
    say(values, at === null ? (hasTips() ? "" : "At the end") : (stops[at].tip ?? positionText()));
  }

  /** Where the cursor is, and what happened since the point before. */
  function positionText() {
    const happened = chart.marks.filter((mark) => mark.text && mark.x < stops[at].x && mark.x >= (at ? stops[at - 1].x : 0));
    return [chart.position.replace("{}", panel.x_names[stops[at].x] ?? number(stops[at].x)), ...new Set(happened.map(({ text }) => text))].join("; ");
  }

  /** The stop that the pointer means: the nearest point, or the value of x below it. */
  function nearest({ cursor: { left, top, idx }, valToPos }) {
    if (left < 0) return null;
    if (!hasTips()) return idx === null || idx === undefined ? null : stops.findIndex((stop) => stop.x === x[idx]);
    let [found, best] = [null, REACH ** 2];
    stops.forEach((stop, index) => {
      const distance = (valToPos(stop.x, "x") - left) ** 2 + (valToPos(stop.y, "y") - top) ** 2;
      if (distance < best && isShown(panel.series[stop.index])) [found, best] = [index, distance];
    });
    return found;
  }

  /** What the cursor marks in a series: only the point that is read, where points have something to say. */
  function marked(drawn, index, hovered) {
    if (!hasTips()) return hovered;
    if (index === 1 && !isStepping) at = nearest(drawn);
    return at !== null && stops[at].index === index - 1 ? stops[at].slot : null;
  }

  function draw() {
    plot?.destroy();
    width = printing ? PAPER_WIDTH / chart.columns : box.clientWidth;
    const named = panel.series.filter((one) => one.line && one.name && lastOf(one.y) >= 0);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const widest = Math.max(0, ...named.map(({ name }) => pen.measureText(name).width));
    const room = chart.isAlone && width >= ROOM_FOR_NAMES ? Math.ceil(Math.min(widest, width / 4)) : 0;
    const hasMarkers = panel.series.some((one) => one.marker);
    const { scales, axes } = axesOf(panel, hasMarkers);
    const height = panel.diagonal ? Math.min(440, width) : Math.min(440, Math.max(chart.isAlone ? 260 : 180, width * (chart.isAlone ? 0.5 : chart.aspect)));
    const canZoom = !hasTips() && !scales.x.range;
    const options = {
      width: panel.diagonal ? Math.min(width, height + 30) : width,
      height: Math.round(height),
      padding: [null, room ? room + 18 : null, null, null],
      legend: { show: false },
      scales,
      axes,
      series: [{}, ...panel.series.map((one) => ({
        show: isShown(one),
        stroke: colorOf(one),
        width: 2,
        dash: one.dash,
        points: { show: false },
        ...(one.line ? {} : { paths: () => null }),
      }))],
      cursor: {
        x: !hasTips(),
        y: false,
        dataIdx: marked,
        drag: { x: canZoom, y: false },
        points: { size: hasTips() ? 11 : 7 },
        ...(hasTips() ? {} : { focus: { prox: 20 } }),
      },
      focus: { alpha: 0.3 },
      hooks: {
        setCursor: [(drawn) => {
          if (!hasTips()) at = nearest(drawn);
          read();
        }],
        drawAxes: [(drawn) => {
          drawMarks(drawn, marks());
          if (panel.diagonal && panel.x_range) drawDiagonal(drawn, panel.x_range);
        }],
        drawSeries: [(drawn, index) => {
          if (index && drawn.series[index].show) drawPoints(drawn, panel.series[index - 1], drawn.series[index].alpha ?? 1);
        }],
        draw: room ? [(drawn) => drawNames(drawn, named.filter(isShown), room)] : [],
      },
    };
    plot = new uPlot(options, [x, ...lines], box);
  }

  redraws.push(draw);
  new ResizeObserver(() => {
    if (!printing && plot && box.clientWidth !== width) draw();
  }).observe(box);
  box.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !stops.length) return;
    event.preventDefault();
    const last = stops.length - 1;
    const next = Math.min(last, Math.max(0, at === null ? (move > 0 ? 0 : last) : at + move));
    at = next;
    isStepping = true;
    plot.setCursor({ left: plot.valToPos(stops[next].x, "x"), top: hasTips() ? plot.valToPos(stops[next].y, "y") : 0 });
    isStepping = false;
  });

  return {
    show(shown) {
      panel = shown;
      ({ x, lines, slots } = aligned(panel));
      stops = stopsOf(panel, x, slots);
      at = null;
      draw();
    },
    read,
    toggle: (entry) => {
      panel.series.forEach((one, index) => one.entry === entry && plot.setSeries(index + 1, { show: isShown(one) }));
      plot.redraw();
    },
    focus: (entry) => {
      const index = panel.series.findIndex((one) => one.entry === entry && one.line);
      plot.setSeries(index < 0 ? null : index + 1, { focus: true });
    },
  };
}

/** A figure: its panels, the choice between them, the legend whose entries are buttons, and the line that is read. */
function startChart(element, chart) {
  const figure = element.closest("figure");
  const status = figure.querySelector(".status");
  const buttons = [...figure.querySelectorAll(".legend button")];
  const values = buttons.map((button) => button.querySelector(".number"));
  const choice = figure.querySelector(".panel-choice");
  const switches = [...figure.querySelectorAll(".switch input")];
  const legend = { shown: buttons.map(() => true) };
  let view = chart.view;

  const say = (texts, text) => {
    texts.forEach((value, index) => (values[index].textContent = value));
    status.textContent = text;
  };
  const boxes = [...element.querySelectorAll(".panel")].map((box) => startPanel(box, chart, legend, say));
  const refresh = () => {
    const shown = chart.choose ? [chart.views[view][Number(choice.value)]] : chart.views[view];
    boxes.forEach((box, index) => box.show(shown[index]));
    boxes[0]?.read();
  };
  buttons.forEach((button, entry) => {
    button.addEventListener("click", () => {
      legend.shown[entry] = !legend.shown[entry];
      button.setAttribute("aria-pressed", String(legend.shown[entry]));
      boxes.forEach((box) => box.toggle(entry));
    });
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => boxes.forEach((box) => box.focus(entry)));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => boxes.forEach((box) => box.focus(null)));
  });
  choice?.addEventListener("change", refresh);
  switches.forEach((input) =>
    input.addEventListener("change", () => {
      view = Number(input.value);
      refresh();
    }),
  );
  refresh();
}

const charts = JSON.parse(document.getElementById("data").textContent);
for (const element of document.querySelectorAll(".panels")) {
  const chart = charts[element.dataset.chart];
  chart.columns = chart.choose ? 1 : Math.min(chart.across, chart.views[0].length);
  chart.isAlone = chart.columns === 1;
  for (const panel of chart.views.flat()) for (const one of panel.series) one.x = chart.xs[one.x];
  startChart(element, chart);
}
