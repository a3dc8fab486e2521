// What the two charts share: axes, size, painting again, and the keyboard.

const count = (number) => number.toLocaleString("en", { maximumFractionDigits: 4 });

function axis(label, more = {}) {
  return {
    label,
    stroke: paint("--muted"),
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    size: 30,
    grid: { stroke: paint("--line"), width: 1 },
    ticks: { show: false },
    gap: 6,
    ...more,
  };
}

/** A chart that `build` describes anew whenever theme or width or data change; `step` moves along it by keys. */
function liveChart(element, build, step) {
  const chart = { plot: null };
  chart.draw = (width = element.clientWidth) => {
    chart.plot?.destroy();
    const height = Math.round(Math.min(380, Math.max(260, width * 0.5)));
    const { options, lines } = build();
    chart.plot = new uPlot({ ...options, width, height, legend: { show: false } }, lines, element);
  };
  redraws.push(chart.draw);
  new ResizeObserver(() => {
    if (!printing && chart.plot && chart.plot.width !== element.clientWidth) chart.draw();
  }).observe(element);
  element.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    step(chart.plot, move);
  });
  return chart;
}
