// The page to try: a text that is tagged while it is written, and files that come back tagged or are taught from.

import { get, getFile, post, postFile, query, teach } from "./api.js";
import { byId, cellText, h, percent, plural, printable } from "./dom.js";
import { attempt, startShell, toast } from "./shell.js";
import { colorOf, marked, sentence } from "./words.js";

// Milliseconds after the last key; rows of a request, and characters about; rows of a file that are shown.
const PAUSE = 250;
const ROWS = 200;
const CHARACTERS = 400_000;
const SHOWN = 20;
const OWN_COLUMNS = ["tags", "probabilities", "review"];

// --- A text

let columns = { text: "long" };
let asked = 0;

async function showFields() {
  const known = await get("pages/columns").catch(() => ({ columns: {} }));
  if (Object.keys(known.columns).length) ({ columns } = known);
  byId("fields").replaceChildren(...Object.entries(columns).map(([name, kind]) =>
    h("label", {}, printable(name), kind === "long" ? h("textarea", { rows: 6, name }) : h("input", { type: "text", name, autocomplete: "off", inputMode: kind === "number" ? "decimal" : "text" }))));
}

async function answer() {
  const own = (asked += 1);
  const written = [...new FormData(byId("text-form"))].filter(([, text]) => text.trim());
  const cells = Object.fromEntries(written.map(([name, text]) => [name, columns[name] === "number" && Number.isFinite(Number(text)) ? Number(text) : text]));
  if (!Object.keys(cells).length) return byId("answer").replaceChildren();
  const found = await attempt(() => post("v1/predict", { rows: [cells], explain: true }));
  if (!found || own !== asked) return undefined;
  const [row] = found.rows;
  const likely = Object.entries(row.probabilities).filter(([tag, p]) => p >= 0.05 || row.tags.includes(tag));
  const order = likely.map(([tag]) => tag);
  const chips = likely.map(([tag, probability]) => {
    const chip = h("li", { class: row.tags.includes(tag) ? "pill chosen" : "pill" }, h("span", { class: "dot", "aria-hidden": "true" }), h("span", {}, printable(tag)), h("small", {}, percent(probability)));
    chip.style.setProperty("--chip", colorOf(tag, order));
    return chip;
  });
  const names = Object.keys(cells);
  byId("answer").replaceChildren(
    h("ul", { class: "pills", "aria-label": "Tags" }, chips.length ? chips : h("li", { class: "muted" }, Object.keys(row.probabilities).length ? "No tag is likely." : "The tagger knows no tag yet: teach it, in the inbox or from a file.")),
    row.review ? h("p", { class: "muted" }, h("span", { class: "badge review" }, "review"), " Not sure enough to go without a person.") : "",
    ...names.map((name) => h("p", { class: "echo" }, marked(cellText(cells[name]), name, row.explanation, names, order))),
    ...row.tags.filter((tag) => row.explanation?.[tag]).map((tag) => h("p", { class: "hint" }, sentence(tag, row.explanation[tag], names))),
  );
  return undefined;
}

let typing;
byId("text-form").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(answer, PAUSE);
});
byId("text-form").addEventListener("submit", (event) => event.preventDefault());

// --- A file

let file = null;
let table = null;
let stop = null;

async function open(chosen, tags) {
  stop?.abort();
  file = chosen;
  byId("table").replaceChildren(h("p", { class: "hint", role: "status" }, `Reading ${printable(file.name)} …`));
  const read = await attempt(() => postFile(query("pages/table", { name: file.name }) + (tags === undefined ? "" : `&tags=${encodeURIComponent(tags)}`), file));
  if (!read) return byId("table").replaceChildren();
  table = { ...read, answers: null };
  return draw();
}

/** The rows of the file as the service takes them; an id only where it is one. */
const bodies = () => table.rows.map((cells) => Object.fromEntries(table.columns.map((name, i) => [name, cells[i]]).filter(([name, cell]) => cell !== null && name !== "id")));

/** Rows in pieces that are not too large for a request. */
function* pieces(rows) {
  let piece = [];
  let size = 0;
  for (const row of rows) {
    const length = JSON.stringify(row).length;
    if (piece.length && (piece.length === ROWS || size + length > CHARACTERS)) {
      yield piece;
      [piece, size] = [[], 0];
    }
    piece.push(row);
    size += length;
  }
  if (piece.length) yield piece;
}

/** Send rows piece by piece, with a bar that shows how far it is and a button that stops; return whether all went. */
async function inPieces(rows, verb, work) {
  const controller = (stop = new AbortController());
  const bar = h("progress", { max: rows.length, value: 0, "aria-label": verb });
  const text = h("span", { role: "status" }, `${verb} …`);
  byId("progress").replaceChildren(bar, text, h("button", { type: "button", onclick: () => controller.abort() }, "Stop"));
  for (const button of byId("table").querySelectorAll(".file-actions button")) button.disabled = true;
  let done = 0;
  try {
    for (const piece of pieces(rows)) {
      await work(piece, controller.signal);
      if (controller.signal.aborted) break;
      done += piece.length;
      bar.value = done;
      text.textContent = `${verb}: ${done.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    }
  } catch (error) {
    if (!controller.signal.aborted) toast(`After ${plural(done, "row")}: ${error.message}`, { isError: true });
  }
  return done;
}

async function tagRows() {
  const answers = [];
  const done = await inPieces(bodies(), "Tagging", async (piece, signal) => {
    answers.push(...(await post("v1/predict", { rows: piece }, { signal })).rows);
  });
  if (done === table.rows.length) table.answers = answers;
  draw();
}

async function teachRows() {
  const rows = bodies().map((row, i) => ({ ...row, tags: table.tags[i] })).filter(({ tags }) => tags !== null);
  let isPending = false;
  const done = await inPieces(rows, "Teaching", async (piece) => {
    isPending = Boolean((await teach("v1/learn", { rows: piece })).pending) || isPending;
  });
  draw();
  if (done) toast(`${plural(done, "row")} ${isPending ? "saved, not all learned yet" : "learned"}`);
}

async function download(suffix) {
  const names = [...table.columns.filter((name) => !OWN_COLUMNS.includes(name)), ...OWN_COLUMNS];
  const rows = table.rows.map((cells, i) => {
    const { tags, probabilities, review } = table.answers[i];
    const row = Object.fromEntries(table.columns.map((name, at) => [name, cells[at]]));
    return names.map((name) => ({ tags, probabilities: tags.map((tag) => Number((probabilities[tag] ?? 0).toFixed(4))), review })[name] ?? row[name] ?? null);
  });
  const name = `${file.name.replace(/\.[^.]*$/, "")}-tagged${suffix}`;
  const blob = await attempt(() => getFile(query("pages/file", { name }), { columns: names, rows }));
  if (!blob) return;
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// --- What is shown of a file

function summary() {
  const tagged = table.tags.filter((tags) => tags !== null);
  const names = new Set(tagged.flat());
  const text = `${printable(file.name)}: ${plural(table.rows.length, "row")}` + (table.tags_column ? `, ${tagged.length.toLocaleString("en")} of them with tags, ${plural(names.size, "tag")} in all.` : ".");
  return h("p", { class: "summary" }, text);
}

function agreement() {
  const pairs = table.tags.map((tags, i) => [tags, table.answers[i].tags]).filter(([tags]) => tags !== null);
  if (!pairs.length) return "";
  const same = pairs.filter(([tags, given]) => tags.length === given.length && tags.every((tag) => given.includes(tag))).length;
  return h("p", { class: "hint" }, `Of ${plural(pairs.length, "row")} with tags in the file, ${percent(same / pairs.length)} got just the same.`);
}

function chooser() {
  const select = h("select", { onchange: () => open(file, select.value) },
    h("option", { value: "" }, "none"), table.names.map((name) => h("option", { value: name, selected: name === table.tags_column }, printable(name))));
  return h("label", { class: "tags-column" }, "Column of tags ", select);
}

function preview() {
  const shown = table.columns.slice(0, 6);
  const [given, suggested] = ["in the file", "suggested"];
  const heads = [...shown, ...(table.tags_column ? [given] : []), ...(table.answers ? [suggested] : [])];
  // On a phone each row is a list: its cells have the names of their columns beside them.
  const cell = (name, ...content) => h("td", { "data-name": printable(name) }, h("span", {}, ...content));
  const pills = (name, tags, probabilities) => cell(name, tags === null ? h("span", { class: "muted" }, "–") : tags.map((tag) => h("span", { class: "mini" }, printable(tag), probabilities ? h("small", {}, ` ${percent(probabilities[tag] ?? 0)}`) : "")));
  const lines = table.rows.slice(0, SHOWN).map((cells, i) => h("tr", {},
    ...shown.map((name) => cell(name, h("span", { class: "clip" }, cellText(cells[table.columns.indexOf(name)])))),
    table.tags_column ? pills(given, table.tags[i]) : null,
    table.answers ? pills(suggested, table.answers[i].tags, table.answers[i].probabilities) : null));
  const more = table.rows.length > SHOWN ? h("p", { class: "hint" }, `The first ${SHOWN} rows${table.columns.length > 6 ? ", six columns" : ""}.`) : "";
  return [h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Rows of the file" }, h("table", { class: "grid preview" }, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, printable(name))))), h("tbody", {}, lines))), more];
}

function draw() {
  const tagged = table.tags.filter((tags) => tags !== null).length;
  const actions = h("p", { class: "file-actions" },
    table.answers ? null : h("button", { type: "button", class: "main", onclick: tagRows, disabled: !table.rows.length }, `Tag ${plural(table.rows.length, "row")}`),
    table.answers ? ["csv", "xlsx", "jsonl"].map((kind, i) => h("button", { type: "button", class: i ? "" : "main", onclick: () => download(`.${kind}`) }, `Download ${{ csv: "CSV", xlsx: "Excel", jsonl: "JSON lines" }[kind]}`)) : null,
    tagged ? h("button", { type: "button", onclick: () => confirmTeach(tagged) }, `Teach ${plural(tagged, "row")} …`) : null);
  byId("table").replaceChildren(
    summary(), ...table.notes.map((note) => h("p", { class: "hint" }, printable(note))), chooser(), actions,
    h("div", { id: "progress" }), table.answers ? agreement() : "", ...preview());
}

function confirmTeach(count) {
  const names = [...new Set(table.tags.filter((tags) => tags !== null).flat())];
  const box = h("div", { class: "confirm", role: "group", "aria-label": "Teach" },
    h("p", {}, `The tagger will learn ${plural(count, "row")} with ${plural(names.length, "tag")}: ${names.slice(0, 8).map(printable).join(", ")}${names.length > 8 ? ", …" : ""}. This cannot be taken back as a whole.`),
    h("button", { type: "button", class: "main", onclick: teachRows }, "Teach"),
    " ", h("button", { type: "button", onclick: () => byId("progress").replaceChildren() }, "Cancel"));
  byId("progress").replaceChildren(box);
  box.querySelector("button").focus();
}

byId("file").addEventListener("change", (event) => event.target.files[0] && open(event.target.files[0]));
const drop = byId("drop");
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => !event.relatedTarget && drop.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
});

startShell();
await showFields();
