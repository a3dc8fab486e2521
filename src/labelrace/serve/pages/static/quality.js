// The page of quality: the service renders it with the report's own charts, and the report's script draws them.

import { getText } from "./api.js";
import { byId, h, plural } from "./dom.js";
import { attempt, startShell } from "./shell.js";

let position = null;

/** Fetch the numbers and put them in place; charts are drawn by the report's script, which is loaded after them. */
async function show() {
  const text = await attempt(() => getText("pages/quality"));
  if (text === undefined) return byId("figures").replaceChildren(h("p", { class: "missing" }, "The numbers cannot be shown now."));
  // Rendered with every name escaped; scripts in a parsed document do not run.
  const figures = new DOMParser().parseFromString(text, "text/html").getElementById("figures");
  for (const element of figures.querySelectorAll("[data-style]")) element.style.cssText = element.dataset.style;
  byId("figures").replaceWith(document.adoptNode(figures));
  position = Number(figures.dataset.position);
  return undefined;
}

await show();
document.body.append(h("script", { src: "static/report.js" }));
const newer = h("button", { type: "button", class: "newer", hidden: true, onclick: () => location.reload() });
byId("main").prepend(newer);
startShell({
  onEvent: (name, data) => {
    if (name !== "position" || position === null || data.position <= position) return;
    newer.hidden = false;
    newer.textContent = `${plural(data.position - position, "lesson")} since: show them`;
  },
});
