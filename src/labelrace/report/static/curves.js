// Curves of one measure over the stream, one line per model.

function startCurves(element) {
  const measure = document.getElementById("measure");
  const status = document.getElementById("curves-status");
  const rows = data.curves.rows;
  let kind = document.querySelector("input[name=kind]:checked").value;
  let at = null;

  const lines = () => data.curves.values[measure.value][kind];
  const lastOf = (line) => line.findLast((value) => value !== null) ?? null;

  function read(place) {
    at = place ?? null;
    const { decimals } = data.measures.find(({ name }) => name === measure.value);
    const values = lines().map((line) => (at === null ? lastOf(line) : line[at]));
    legend.write(values.map((value) => (value === null ? "–" : value.toFixed(decimals))));
    status.textContent = at === null ? "At the end of the stream" : `At row ${count(rows[at])}`;
  }

  function build() {
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
      scales: { x: { time: false } },
      axes: [axis("rows of the stream"), axis("", { size: 52, labelSize: 0 })],
      series: [{}, ...series],
      cursor: { y: false, focus: { prox: 20 }, drag: { x: true, y: false }, points: { size: 7 } },
      focus: { alpha: 0.3 },
      hooks: { setCursor: [(plot) => read(plot.cursor.idx)] },
    };
    return { options, lines: [rows, ...lines()] };
  }

  function step(plot, move) {
    const next = at === null ? (move > 0 ? 0 : rows.length - 1) : at + move;
    const place = Math.min(rows.length - 1, Math.max(0, next));
    plot.setCursor({ left: plot.valToPos(rows[place], "x"), top: 0 });
  }

  const chart = liveChart(element, build, step);
  const legend = makeLegend(document.getElementById("curves-legend"), {
    onToggle: (place, show) => chart.plot.setSeries(place + 1, { show }),
    onFocus: (place) => chart.plot.setSeries(place === null ? null : place + 1, { focus: true }),
  });
  const refresh = () => {
    chart.draw();
    read(null);
  };
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
