// Elements made of names and texts: what users wrote is only ever text.

/** An element with properties, attributes (those with a dash, `role` and `class`), listeners and children. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name.includes("-") || name === "role" || name === "for" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A text without the characters that hide, or that change the direction of what follows. */
export const printable = (text) => String(text).replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000-\u0008\u000b-\u001f\u007f]/gu, "\u{fffd}");

export const percent = (share) => (share > 0 && share < 0.01 ? "<1%" : `${Math.round(100 * share)}%`);
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** How long ago a time was, in words. */
export function ago(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (!(seconds > 45)) return Number.isNaN(seconds) ? "" : "now";
  for (const [unit, length] of [["min", 60], ["h", 3600], ["d", 86400]]) {
    const count = Math.round(seconds / length);
    if (count < { min: 60, h: 24, d: 14 }[unit]) return `${Math.max(1, count)} ${unit}`;
  }
  return day(iso);
}

export function day(iso) {
  const date = new Date(iso);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
}

/** A cell as text. */
export const cellText = (cell) => (cell === null || cell === undefined ? "" : Array.isArray(cell) ? cell.join(", ") : printable(cell));
