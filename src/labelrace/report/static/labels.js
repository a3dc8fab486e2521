// F1 of every label against its frequency: a dot per label and model, a line for the trend.

function startLabels(element) {
  const status = document.getElementById("labels-status");
  const { names, frequency, f1, trend } = data.labels;
  // A log scale has no place for labels that never occurred.
  const order = [...frequency.keys()].filter((label) => frequency[label] > 0);
  order.sort((a, b) => frequency[a] - frequency[b]);
  const x = order.map((label) => frequency[label]);
  const inOrder = (lines) => lines.map((line) => order.map((label) => line[label] ?? null));
  const y = inOrder(f1);
  const models = data.models.length;
  const crowded = x.length * models > 1500;
  const REACH = 40;
  const percent = (share) => `${(100 * share).toLocaleString("en", { maximumSignificantDigits: 2 })} %`;
  let at = null;
  let stepping = false;

  function read() {
    legend.write(y.map((line) => (at === null ? "" : line[at]?.toFixed(3) ?? "–")));
    status.textContent =
      at === null ? "Hover, tap or use the arrow keys to read a label" : `Label ${names[order[at]]}, on ${percent(x[at])} of rows`;
  }

  /** The label whose dot, of any model that is shown, is nearest to the cursor. */
  function nearest(plot) {
    let best = REACH ** 2;
    let found = null;
    const { left, top } = plot.cursor;
    if (left < 0) return null;
    x.forEach((value, place) => {
      const across = (plot.valToPos(value, "x") - left) ** 2;
      if (across >= best) return;
      y.forEach((line, model) => {
        if (!legend.shown[model] || line[place] === null) return;
        const distance = across + (plot.valToPos(line[place], "y") - top) ** 2;
        if (distance < best) [best, found] = [distance, place];
      });
    });
    return found;
  }

  /** What the cursor marks in a series: the picked label's dots, and nothing of the trends. */
  function pick(plot, series) {
    if (series === 1 && !stepping) at = nearest(plot);
    return series <= models ? at : null;
  }

  function build() {
    const look = (place) => ({ show: legend.shown[place], stroke: modelColor(place) });
    const dots = data.models.map((_, place) => ({
      ...look(place),
      paths: () => null,
      points: { show: true, space: 0, size: crowded ? 4 : 7, width: 1, stroke: "transparent", fill: fade(modelColor(place), crowded ? 0.25 : 0.5) },
    }));
    const lines = data.models.map((model, place) => ({
      ...look(place),
      width: 2,
      dash: model.dash,
      spanGaps: true,
      points: { show: false },
    }));
    const options = {
      scales: {
        x: { time: false, distr: 3, range: (_, low, high) => [low / 1.2, high * 1.2] },
        y: { range: [-0.03, 1.03] },
      },
      axes: [
        axis("share of rows with the label", { values: (_, splits) => splits.map((v) => (v === null ? "" : percent(v))) }),
        axis("", { size: 44, labelSize: 0 }),
      ],
      series: [{}, ...dots, ...lines],
      cursor: { dataIdx: pick, x: false, y: false, drag: { x: false, y: false }, points: { size: 11 } },
      focus: { alpha: 0.1 },
      hooks: { setCursor: [read] },
    };
    return { options, lines: [x, ...y, ...inOrder(trend)] };
  }

  function step(plot, move) {
    const next = at === null ? (move > 0 ? 0 : x.length - 1) : at + move;
    at = Math.min(x.length - 1, Math.max(0, next));
    stepping = true;
    plot.setCursor({ left: plot.valToPos(x[at], "x"), top: 1 });
    stepping = false;
  }

  const chart = liveChart(element, build, step);
  const legend = makeLegend(document.getElementById("labels-legend"), {
    onToggle: (place, show) => [1, 1 + models].forEach((first) => chart.plot.setSeries(first + place, { show })),
    onFocus: (place) => chart.plot.setSeries(place === null ? null : place + 1, { focus: true }),
  });
  chart.draw();
  read();
}

const labelsElement = document.getElementById("labels");
if (labelsElement && data.labels.frequency.some((value) => value > 0)) startLabels(labelsElement);
