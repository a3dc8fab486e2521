// The page of tags: a table, the details of one, and changes, each with a preview of what it touches.

import { get, post, query, teach } from "./api.js";
import { combobox } from "./combobox.js";
import { byId, day, h, percent, plural, printable } from "./dom.js";
import { attempt, startShell, toast } from "./shell.js";

// Tags that are shown at once, and asked for.
const SHOWN = 500;
const LIMIT = 10_000;

let tags = [];
let sorting = { key: "rows", sign: -1 };
let open = new URLSearchParams(location.search).get("tag");
const selected = new Set();

// --- The table

const plain = (text) => text.normalize("NFKC").toLowerCase();

function shownTags() {
  const typed = plain(byId("search").value.trim());
  const found = tags.filter((one) => [one.tag, ...(one.synonyms ?? [])].some((name) => plain(name).includes(typed)));
  const { key, sign } = sorting;
  const isEmpty = (value) => value === null || value === undefined || value === "";
  return found.sort((one, other) => {
    const [a, b] = [one[key], other[key]];
    if (isEmpty(a) || isEmpty(b)) return isEmpty(a) - isEmpty(b);
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b) || one.tag.localeCompare(other.tag);
  });
}

const number = (value) => h("td", {}, value === null || value === undefined ? h("span", { class: "muted" }, "–") : percent(value));
const ARROWS = { rising: "↗", falling: "↘" };

function line(one) {
  const box = h("input", { type: "checkbox", checked: selected.has(one.tag), "aria-label": `Choose ${printable(one.tag)}`, onchange: () => choose(one.tag, box.checked) });
  const synonyms = (one.synonyms ?? []).join(", ");
  const lately = number(one.recent_f1);
  if (one.trend) lately.prepend(h("span", { class: `trend ${one.trend}`, title: one.trend, role: "img", "aria-label": one.trend }, ARROWS[one.trend]), " ");
  const meter = h("span", { class: "meter", "aria-hidden": "true" });
  meter.style.setProperty("--share", one.rows / Math.max(1, ...tags.map(({ rows }) => rows)));
  return h("tr", { class: one.tag === open ? "open" : "" },
    h("td", {}, box),
    h("th", { scope: "row", class: "name" },
      h("button", { type: "button", class: "link", onclick: () => show(one.tag) }, printable(one.tag)),
      one.parent ? h("small", {}, ` in ${printable(one.parent)}`) : "",
      synonyms ? h("small", { class: "synonyms" }, printable(synonyms)) : ""),
    h("td", { class: "rows" }, one.rows.toLocaleString("en"), meter),
    lately, number(one.f1), number(one.precision), number(one.recall),
    h("td", {}, one.first_seen ? day(one.first_seen) : h("span", { class: "muted" }, "–")),
  );
}

function draw() {
  const found = shownTags();
  byId("body").replaceChildren(...found.slice(0, SHOWN).map(line));
  for (const heading of document.querySelectorAll("[data-key]")) {
    heading.setAttribute("aria-sort", heading.dataset.key !== sorting.key ? "none" : sorting.sign > 0 ? "ascending" : "descending");
  }
  const none = byId("none");
  byId("body").parentElement.hidden = !found.length;
  none.hidden = found.length > 0 && found.length <= SHOWN;
  none.textContent = found.length ? `The first ${SHOWN} of ${plural(found.length, "tag")}: search for the others.` : tags.length ? "No tag is called so." : "There is no tag yet: each comes with the first row that has it, or by New tag.";
  byId("selection").hidden = !selected.size;
  byId("selected-count").textContent = `${plural(selected.size, "tag")} chosen`;
  byId("merge").disabled = selected.size < 2;
}

function choose(tag, isChosen) {
  if (isChosen) selected.add(tag);
  else selected.delete(tag);
  draw();
  [...document.querySelectorAll("#body input")].find((box) => box.ariaLabel === `Choose ${printable(tag)}`)?.focus();
}

async function load() {
  const answer = await attempt(() => get(query("v1/tags", { limit: LIMIT })));
  if (!answer) return;
  tags = answer.tags;
  for (const tag of selected) if (!tags.some((one) => one.tag === tag)) selected.delete(tag);
  const used = tags.reduce((sum, { rows }) => sum + rows, 0);
  byId("summary").textContent = tags.length ? `${plural(tags.length, "tag")}, said ${used.toLocaleString("en")} times.` : "";
  draw();
}

// --- Details

async function show(tag, { focus = true } = {}) {
  open = tag;
  const one = await attempt(() => get(`v1/tags/${encodeURIComponent(tag)}`));
  if (!one || open !== tag) return;
  draw();
  const box = byId("details");
  const synonyms = h("input", { type: "text", value: (one.synonyms ?? []).join(", "), placeholder: "stove, cooker" });
  const description = h("textarea", { rows: 3, value: one.description ?? "", placeholder: "What rows with this tag are about" });
  const save = h("button", { type: "submit", class: "main", disabled: true }, "Save");
  const form = h("form", { class: "describe", oninput: () => (save.disabled = false) },
    h("label", {}, "Synonyms ", h("small", {}, "with commas between them"), synonyms),
    h("label", {}, "Description", description),
    h("p", { class: "buttons" }, save),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const names = synonyms.value.split(",").map((name) => name.trim()).filter(Boolean);
    const answer = await attempt(() => teach("v1/tags/describe", { tags: { [tag]: { synonyms: names, description: description.value.trim() } } }));
    if (!answer) return;
    save.disabled = true;
    toast(`${tag}: saved${answer.pending ? ", not in force yet" : ""}`);
    load();
  });
  const most = Math.max(1, ...one.together.map(({ rows }) => rows));
  const together = h("ol", { class: "together" }, one.together.map(({ tag: other, rows }) => {
    const bar = h("span", { class: "together-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", rows / most);
    return h("li", {}, h("button", { type: "button", class: "link", onclick: () => show(other) }, printable(other)), bar, h("small", {}, rows.toLocaleString("en")));
  }));
  const facts = [["Rows", one.rows.toLocaleString("en")], ["F1 lately", one.recent_f1], ["F1", one.f1], ["Precision", one.precision], ["Recall", one.recall]];
  box.replaceChildren(
    h("header", {}, h("h2", {}, printable(tag)), h("button", { type: "button", class: "plain icon", "aria-label": "Close details", onclick: close }, "✕")),
    h("p", { class: "muted" }, one.first_seen ? `Since ${day(one.first_seen)}` : "No row has had it yet", one.parent ? `, in ${printable(one.parent)}` : ""),
    h("dl", { class: "facts-row" }, facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : percent(value))))),
    h("p", { class: "changes" },
      h("button", { type: "button", onclick: () => rename(tag) }, "Rename …"),
      h("button", { type: "button", onclick: () => retire([tag]) }, "Retire …")),
    form,
    one.together.length ? h("h3", {}, "Often together with") : "",
    one.together.length ? together : "",
  );
  box.hidden = false;
  if (focus) {
    box.focus({ preventScroll: true });
    if (matchMedia("(max-width: 56rem)").matches) box.scrollIntoView({ block: "start" });
  }
}

function close() {
  open = null;
  byId("details").hidden = true;
  draw();
}

// --- Changes, with a preview

/** Ask for a change in a dialog. `form()` gives the body of the request, or null while it is not complete. */
function ask({ title, content = [], action, isDanger = false, path, form, touches, done }) {
  const dialog = byId("change");
  const confirm = byId("confirm");
  byId("change-title").textContent = title;
  byId("change-body").replaceChildren(...content);
  byId("touches").textContent = "";
  confirm.textContent = action;
  confirm.className = isDanger ? "danger" : "main";
  let asked = 0;
  const preview = async () => {
    const body = form();
    const own = (asked += 1);
    confirm.disabled = true;
    byId("touches").textContent = "";
    if (!body) return;
    const answer = await post(path, { ...body, preview: true }).catch((error) => ({ error }));
    if (own !== asked) return;
    byId("touches").classList.toggle("error", Boolean(answer.error));
    byId("touches").textContent = answer.error ? answer.error.message : touches(answer);
    confirm.disabled = Boolean(answer.error);
  };
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    if (confirm.disabled) return;
    confirm.disabled = true;
    const body = form();
    const answer = await attempt(() => teach(path, body));
    confirm.disabled = false;
    if (!answer) return;
    dialog.close();
    done(body, answer);
  };
  dialog.showModal();
  preview();
  return preview;
}

byId("cancel").addEventListener("click", () => byId("change").close());

function rename(tag) {
  const name = h("input", { type: "text", value: tag, maxLength: 200, oninput: () => preview() });
  const preview = ask({
    title: `Rename “${printable(tag)}”`,
    content: [h("label", {}, "New name", name)],
    action: "Rename",
    path: "v1/tags/rename",
    form: () => (name.value.trim() && name.value.trim() !== tag ? { names: { [tag]: name.value.trim() } } : null),
    touches: ({ rows }) => `${plural(rows, "row")} will have the new name.`,
    done: async () => {
      toast(`${tag} is now ${name.value.trim()}`);
      selected.delete(tag);
      await load();
      show(name.value.trim());
    },
  });
  name.select();
}

function merge() {
  const names = [...selected];
  let into = names.toSorted((a, b) => (tags.find(({ tag }) => tag === b)?.rows ?? 0) - (tags.find(({ tag }) => tag === a)?.rows ?? 0))[0];
  const choice = combobox({ label: "Into another tag", placeholder: "Another name …", tags: () => tags, pick: (tag) => ((into = tag), say(), preview()) });
  const target = h("p", { class: "into" });
  const say = () => target.replaceChildren(...names.flatMap((name, i) => [i ? " + " : "", h("strong", {}, printable(name))]), " → ", h("strong", {}, printable(into)));
  say();
  const preview = ask({
    title: `Merge ${plural(names.length, "tag")}`,
    content: [target, h("label", {}, "Into another tag", choice.box)],
    action: "Merge",
    path: "v1/tags/merge",
    form: () => ({ tags: names, into }),
    touches: ({ tags: before, becomes }) => {
      const moved = before.filter(({ tag }) => tag !== into).reduce((sum, { rows }) => sum + rows, 0);
      const after = becomes.find(({ tag }) => tag === into)?.rows;
      return `${plural(moved, "row")} will have “${printable(into)}” instead${after ? `, which is in ${after.toLocaleString("en")} rows then` : ""}. The tagger cannot tell them apart again.`;
    },
    done: async () => {
      toast(`${names.length} tags are now ${into}`);
      selected.clear();
      await load();
      show(into);
    },
  });
}

function retire(names) {
  ask({
    title: names.length === 1 ? `Retire “${printable(names[0])}”` : `Retire ${plural(names.length, "tag")}`,
    content: [h("p", {}, names.length === 1 ? "It is suggested no more." : [names.map(printable).join(", "), " are suggested no more."])],
    action: "Retire",
    isDanger: true,
    path: "v1/tags/retire",
    form: () => ({ tags: names }),
    touches: ({ rows }) => `${plural(rows, "row")} had ${names.length === 1 ? "it" : "one of them"}.`,
    done: async () => {
      toast(`${names.join(", ")}: retired`);
      selected.clear();
      if (names.includes(open)) close();
      await load();
    },
  });
}

function addTag() {
  const name = h("input", { type: "text", maxLength: 200, required: true, oninput: () => preview() });
  const synonyms = h("input", { type: "text", placeholder: "stove, cooker" });
  const description = h("textarea", { rows: 2 });
  const preview = ask({
    title: "New tag",
    content: [
      h("p", { class: "hint" }, "Its name, synonyms and description are found in texts before any row has the tag."),
      h("label", {}, "Name", name),
      h("label", {}, "Synonyms, with commas between them", synonyms),
      h("label", {}, "Description", description),
    ],
    action: "Add",
    path: "v1/tags/describe",
    form: () => {
      const tag = name.value.trim();
      const names = synonyms.value.split(",").map((one) => one.trim()).filter(Boolean);
      return tag ? { tags: { [tag]: { synonyms: names, description: description.value.trim() } } } : null;
    },
    touches: () => (tags.some(({ tag }) => tag === name.value.trim()) ? "There is such a tag: this replaces its description." : ""),
    done: async () => {
      await load();
      show(name.value.trim());
    },
  });
}

// --- Controls

byId("search").addEventListener("input", draw);
byId("add").addEventListener("click", addTag);
byId("merge").addEventListener("click", merge);
byId("retire").addEventListener("click", () => retire([...selected]));
byId("unselect").addEventListener("click", () => (selected.clear(), draw()));
for (const heading of document.querySelectorAll("[data-key]")) {
  heading.querySelector("button").addEventListener("click", () => {
    const { key } = heading.dataset;
    sorting = sorting.key === key ? { key, sign: -sorting.sign } : { key, sign: key === "tag" ? 1 : -1 };
    draw();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open && !document.querySelector("dialog[open]")) close();
});

let waiting;
startShell({
  onEvent: (name) => {
    if (name !== "position") return;
    clearTimeout(waiting);
    // What stands in fields is not taken from under the hands that write there: only the table is drawn again.
    waiting = setTimeout(() => !byId("body").contains(document.activeElement) && load(), 1000);
  },
});
await load();
if (open) show(open, { focus: false });
