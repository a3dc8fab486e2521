// F1 of each label, of the first model, against how often it occurs: a dot each, and a line for each model's trend.

function startLabels(element) {
  const status = document.getElementById("labels-status");
  const { names, frequency, f1, trend } = data.labels;
  const percent = (share) => `${(100 * share).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
  const crowded = names.length > 500;
  // Pixels from a dot within which the pointer means it.
  const REACH = 40;
  let at = null;
  let stepping = false;
  let plot = null;

  function read() {
    legend.write(trend.map((line) => (at === null ? "" : (line[at]?.toFixed(3) ?? "–"))));
    const value = at === null ? "" : `${data.models[0].name} has F1 ${f1[at]?.toFixed(3) ?? "–"}`;
    status.textContent =
      at === null ? "Hover, tap or use the arrow keys to read a label" : `${names[at]}, in ${percent(frequency[at])} of rows: ${value}`;
  }

  /** The label whose dot is nearest to the pointer. */
  function nearest({ cursor: { left, top }, valToPos }) {
    let [found, best] = [null, REACH ** 2];
    if (left < 0) return null;
    frequency.forEach((share, place) => {
      const across = (valToPos(share, "x") - left) ** 2;
      if (f1[place] === null || across >= best) return;
      const distance = across + (valToPos(f1[place], "y") - top) ** 2;
      if (distance < best) [found, best] = [place, distance];
    });
    return found;
  }

  /** What the cursor marks in a series: the dot of the label that is read, and nothing of the trends. */
  function pick(drawn, series) {
    if (series === 1 && !stepping) at = nearest(drawn);
    return series === 1 ? at : null;
  }

  function draw(width = element.clientWidth) {
    plot?.destroy();
    const fill = modelColor(0).replace(/^rgb\((.*)\)$/, `rgb($1, ${crowded ? 0.35 : 0.6})`);
    const dots = { paths: () => null, points: { show: true, space: 0, size: crowded ? 4 : 7, width: 0, fill } };
    const lines = data.models.map((model, place) => {
      const look = { show: legend.shown[place], stroke: modelColor(place), width: 2, dash: model.dash };
      return { ...look, spanGaps: true, points: { show: false } };
    });
    const shares = (_, splits) => splits.map((share) => (share === null ? "" : percent(share)));
    const options = {
      width,
      height: Math.round(Math.min(440, Math.max(260, width * 0.5))),
      legend: { show: false },
      scales: {
        x: { time: false, distr: 3, range: (_, low, high) => [low / 1.2, high * 1.2] },
        y: { range: [-0.03, 1.03] },
      },
      axes: [axis("share of rows with the label", { values: shares }), axis("F1 of the label", { size: 44 })],
      series: [{}, { ...dots, stroke: modelColor(0), show: legend.shown[0] }, ...lines],
      cursor: { dataIdx: pick, x: false, y: false, drag: { x: false, y: false }, points: { size: 11 } },
      focus: { alpha: 0.1 },
      hooks: { setCursor: [read] },
    };
    plot = new uPlot(options, [frequency, f1, ...trend], element);
  }

  const legend = makeLegend(document.getElementById("labels-legend"), {
    onToggle: (place, show) => [...(place ? [] : [1]), place + 2].forEach((series) => plot.setSeries(series, { show })),
    onFocus: (place) => plot.setSeries(place === null ? null : place + 2, { focus: true }),
  });
  const points = () => ({ at, last: names.length - 1 });
  keep(element, () => plot, draw, points, (place) => {
    at = place;
    stepping = true;
    plot.setCursor({ left: plot.valToPos(frequency[at], "x"), top: plot.valToPos(f1[at] ?? 0, "y") });
    stepping = false;
  });
  draw();
  read();
}

const labelsElement = document.getElementById("labels-chart");
if (labelsElement) startLabels(labelsElement);
