// A field with type-ahead over names of tags and their synonyms; a name that is new may be given, too.

import { h, plural, printable } from "./dom.js";

const MOST = 8;
const LONGEST = 200;
let count = 0;

const plain = (text) => text.normalize("NFKC").toLowerCase().trim();

/** How well a tag fits what was typed: smaller is better, null if it does not. */
function rank({ tag, synonyms = [] }, typed) {
  const name = plain(tag);
  if (name === typed) return [0];
  if (name.startsWith(typed)) return [1];
  if (name.split(/[\s:/_-]+/u).some((part) => part.startsWith(typed))) return [2];
  const synonym = synonyms.find((one) => plain(one).startsWith(typed));
  if (synonym !== undefined) return [plain(synonym) === typed ? 1 : 3, synonym];
  return name.includes(typed) ? [4] : null;
}

/** The tags that fit, best first, frequent ones before others; a new one last. */
export function matches(tags, text, { except = new Set(), allowsNew = true } = {}) {
  const typed = plain(text);
  if (!typed) return [];
  const found = tags
    .filter(({ tag }) => !except.has(tag))
    .map((one) => ({ one, rank: rank(one, typed) }))
    .filter(({ rank: place }) => place)
    .sort((a, b) => a.rank[0] - b.rank[0] || (b.one.rows ?? 0) - (a.one.rows ?? 0))
    .slice(0, MOST)
    .map(({ one, rank: [, synonym] }) => ({ tag: one.tag, hint: synonym ? `“${synonym}”` : one.rows ? plural(one.rows, "row") : "" }));
  if (allowsNew && !tags.some(({ tag }) => plain(tag) === typed)) found.push({ tag: text.trim().normalize("NFC").slice(0, LONGEST), hint: "new tag", isNew: true });
  return found;
}

/** A combobox: `tags()` are those to choose from, `pick(tag)` is called with what was chosen.
 *
 * `onEmpty(key)` is called with Enter, Backspace or Escape in an empty field.
 */
export function combobox({ label, placeholder, tags, pick, except, onEmpty = () => {}, allowsNew = true }) {
  const id = `options-${(count += 1)}`;
  const input = h("input", {
    type: "text", class: "combo", placeholder, autocomplete: "off", spellcheck: false, maxLength: LONGEST, enterKeyHint: "done",
    role: "combobox", "aria-label": label, "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false",
  });
  const list = h("ul", { id, role: "listbox", class: "options", hidden: true, "aria-label": label });
  const box = h("div", { class: "combobox" }, input, list);
  let shown = [];
  let active = 0;

  function show(options) {
    shown = options;
    active = 0;
    list.replaceChildren(
      ...shown.map(({ tag, hint, isNew }, index) =>
        h("li", { role: "option", id: `${id}-${index}`, class: isNew ? "new" : "", onpointerdown: (event) => (event.preventDefault(), choose(index)) },
          h("span", {}, printable(tag)), h("small", {}, hint)),
      ),
    );
    list.hidden = !shown.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    point();
  }

  function point() {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === active)));
    if (shown.length) input.setAttribute("aria-activedescendant", `${id}-${active}`);
    else input.removeAttribute("aria-activedescendant");
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }

  function choose(index) {
    const { tag } = shown[index];
    input.value = "";
    show([]);
    pick(tag);
  }

  const update = () => show(matches(tags(), input.value, { except: except?.(), allowsNew }));
  input.addEventListener("input", update);
  input.addEventListener("blur", () => show([]));
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const { key } = event;
    if (shown.length && ["ArrowDown", "ArrowUp"].includes(key)) {
      active = (active + (key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
      point();
    } else if (shown.length && key === "Enter") choose(active);
    else if (shown.length && key === "Escape") show([]);
    else if (!input.value && ["Enter", "Backspace", "Escape"].includes(key) && !event.repeat) onEmpty(key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { box, input };
}
