// The inbox: rows as they come; a person accepts or corrects their tags, and the next suggestions show it.

import { get, post, query, shownName, teach } from "./api.js";
import { added, choiceOf, isSame, refreshed, tagsOf, toggled, withoutLast } from "./choice.js";
import { byId, h, plural, printable } from "./dom.js";
import { Queue } from "./queue.js";
import { rowView } from "./row.js";
import { attempt, isFree, startShell, toast } from "./shell.js";

// Milliseconds: between refreshes that others cause, and until an open row is said to be open still.
const PAUSE = 600;
const RENEW = 30_000;
// Tags that are asked for, to be found by their names.
const MOST_TAGS = 5000;

let tags = [];
let row = null; // the row in hand
let choice = null;
let isSure = false; // whether Enter was pressed twice, where nothing is chosen
const said = []; // what this person said: {id, before, row, chosen, sent}
const counts = { all: 0, same: 0 };
let refusal = ""; // why there are no rows, if they may not be seen
let words = localStorage.getItem("labelrace.words") !== "off";

const article = byId("row");
const view = rowView(article, () => tags, {
  toggle: (tag) => change(toggled(choice, tag)),
  add: (tag) => change(added(choice, tag)),
  removeLast: () => change(withoutLast(choice)),
  accept,
  skip: (by) => skip(by),
  undo,
  toggleWords,
});
const queue = new Queue(byId("list"), { onPick: (id) => pick(id), onChange: reconsider });
queue.me = shownName();

// --- The row in hand

function change(changed) {
  choice = changed;
  isSure = false;
  draw();
}

function draw() {
  if (!row) return;
  const openBy = queue.isTaken(row) ? `${printable(row.open_by)} has this row open, too.` : "";
  const theirs = row.tags ? `: ${row.tags.map(printable).join(", ") || "no tag applies"}` : "";
  const taken = row.state === "tagged" && row.elsewhere ? `${printable(row.who || "Somebody")} has just tagged this row${theirs}.` : "";
  view.show(row, choice, { words, note: isSure ? "Nothing is chosen. Press Enter once more to say that no tag applies." : taken || openBy });
  view.setUndo(said.length);
}

/** Take a row in hand: show what is known, and ask for the newest suggestion and why. */
async function pick(id, { chosen, focus = true } = {}) {
  const before = row;
  row = queue.find(id);
  if (!row) return;
  // What could not be saved is chosen still.
  chosen ??= row.unsaved;
  delete row.unsaved;
  if (before && before.id !== id) sayOpen(before.id, false);
  isSure = false;
  choice = choiceOf(row);
  if (chosen) choice = { ...choice, order: [...new Set([...choice.order, ...chosen])], chosen: new Set(chosen), touched: true };
  queue.select(id);
  byId("empty").hidden = true;
  draw();
  if (focus) article.focus({ preventScroll: true });
  // Not below the bar of the pages, which stays at the top.
  const { top } = byId("desk").getBoundingClientRect();
  if (focus && (top < document.querySelector(".bar").offsetHeight || top > innerHeight / 2)) byId("desk").scrollIntoView({ block: "start" });
  sayOpen(id, true);
  const answer = await attempt(() => get(`v1/rows/${encodeURIComponent(id)}`));
  if (!answer || row?.id !== id) return;
  queue.merge(answer);
  // The person has seen this row for a moment only: its chips may still change as a whole.
  choice = choice.touched ? refreshed(choice, row) : choiceOf(row);
  queue.render();
  draw();
}

/** After rows were refreshed: the row in hand keeps its chips, and shows new numbers. */
function reconsider() {
  if (row && choice) choice = refreshed(choice, row);
  draw();
  showRest();
}

function sayOpen(id, open) {
  post(`v1/rows/${encodeURIComponent(id)}/open`, { who: shownName(), open }, { keepalive: true }).catch(() => null);
}

function toggleWords() {
  words = !words;
  localStorage.setItem("labelrace.words", words ? "on" : "off");
  draw();
}

// --- Saying

/** Say that the chosen tags are right, and go on; what was said is learned while the next row is looked at. */
function accept() {
  if (!row) return;
  const current = row;
  const chosen = tagsOf(choice);
  const isCorrection = current.state === "tagged";
  if (isCorrection && (!choice.touched || isSame(chosen, current.tags ?? []))) return skip(1);
  if (!chosen.length && !isSure) {
    isSure = true;
    return draw();
  }
  const before = current.tags;
  const isAsSuggested = isSame(chosen, current.suggested.tags);
  Object.assign(current, { state: "tagged", tags: chosen, who: queue.me, open_by: null, pending: true, elsewhere: false });
  const entry = { id: current.id, before, row: current, chosen };
  said.push(entry);
  entry.sent = tell(current, chosen).then((answer) => {
    if (answer) {
      if (!isCorrection) counts.all += 1;
      if (!isCorrection && isAsSuggested) counts.same += 1;
      entry.toast = toast(`${current.id}: ${chosen.join(", ") || "no tag applies"}`, { action: "Undo", onaction: () => undo(entry) });
    } else {
      said.splice(said.indexOf(entry), 1);
      Object.assign(current, { state: before ? "tagged" : "waiting", tags: before, unsaved: chosen });
      queue.restore(current);
      if (!row) pick(current.id, { focus: false });
    }
    showRest();
    return Boolean(answer);
  });
  goOn(current.id);
  return undefined;
}

/** Send what was said of a row, and refresh the others with what was learned from it. */
async function tell(about, given) {
  const answer = await attempt(() => teach("v1/feedback", { rows: [{ id: about.id, tags: given }] }), `${about.id} is not saved. `);
  about.pending = false;
  if (!answer) return null;
  about.saidAt = answer.position;
  if (answer.pending) toast(`${about.id} is saved, and will be learned after what came before.`);
  const isNew = (given ?? []).some((tag) => !tags.some((one) => one.tag === tag));
  await Promise.all([attempt(() => queue.refresh()), row && row !== about ? reask() : null, isNew ? loadTags() : null]);
  return answer;
}

/** Ask again for the row in hand, as the tagger knows more now. */
async function reask() {
  const { id } = row;
  const answer = await get(`v1/rows/${encodeURIComponent(id)}`).catch(() => null);
  if (!answer || row?.id !== id) return;
  queue.merge(answer);
  choice = choice.touched ? refreshed(choice, row) : choiceOf(row);
  draw();
}

async function goOn(id) {
  let next = queue.step(id, 1, { free: true });
  if (!next && queue.next) {
    await attempt(() => queue.more());
    next = queue.step(id, 1, { free: true });
  }
  if (next) pick(next.id);
  else finish();
}

async function skip(by) {
  const next = row && queue.step(row.id, by);
  if (next) return pick(next.id);
  if (by > 0 && queue.next) {
    await attempt(() => queue.more());
    return skip(by);
  }
  if (row) toast(by > 0 ? "This is the last row." : "This is the first row.");
  return undefined;
}

/** Take back what was said last, or one entry of it; the row is in hand again. */
async function undo(entry = said.at(-1)) {
  if (!entry || !said.includes(entry)) return toast("There is nothing to undo.");
  said.splice(said.indexOf(entry), 1);
  view.setUndo(said.length);
  if (!(await entry.sent)) return undefined;
  entry.toast?.remove();
  const about = queue.find(entry.id) ?? entry.row;
  about.pending = true;
  Object.assign(about, { state: entry.before ? "tagged" : "waiting", tags: entry.before, who: null });
  queue.restore(about);
  pick(entry.id, { chosen: entry.chosen });
  if (!entry.before) counts.all = Math.max(0, counts.all - 1);
  if (!entry.before && isSame(entry.chosen, about.suggested.tags)) counts.same = Math.max(0, counts.same - 1);
  if (await tell(about, entry.before)) toast(`${entry.id}: taken back`);
  return undefined;
}

// --- When there is nothing in hand, and around the list

function finish() {
  if (row) sayOpen(row.id, false);
  row = choice = null;
  article.hidden = true;
  queue.current = null;
  queue.render();
  showRest();
}

function curl() {
  const lines = [
    `curl ${location.origin}${location.pathname.replace(/\/$/, "")}/v1/predict \\`,
    sessionStorage.getItem("labelrace.token") && "  -H 'Authorization: Bearer TOKEN' \\",
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"rows": [{"id": "T-1", "title": "The oven stays cold"}]}'`,
  ];
  return lines.filter(Boolean).join("\n");
}

/** Show what stands beside the rows: how many more there are, and a word where there is none. */
function showRest() {
  const fresh = byId("fresh");
  fresh.hidden = !queue.fresh.length;
  fresh.textContent = `Show ${plural(queue.fresh.length, "new row")}`;
  byId("more").hidden = !queue.next;
  const text = counts.all ? `You tagged ${plural(counts.all, "row")}, ${counts.all === 1 ? "" : `${counts.same === counts.all ? "all" : counts.same || "none"} of them `}${counts.same || counts.all > 1 ? "just as suggested" : "with other tags than suggested"}.` : "";
  byId("session").textContent = row ? text : "";
  const empty = byId("empty");
  empty.hidden = Boolean(row);
  if (row) return;
  if (refusal) return showRefusal(empty);
  const { state, search } = queue.filters;
  const isDone = queue.rows.length > 0 || counts.all > 0;
  const title = search ? "No row has these words." : state === "tagged" ? "No row has been tagged yet." : isDone ? "All done." : "No row waits.";
  const key = `${title}${text}${queue.fresh.length}`;
  if (empty.dataset.shown === key) return;
  empty.dataset.shown = key;
  empty.replaceChildren(h("h2", {}, title), text ? h("p", {}, text) : "");
  if (search) return;
  const how = byId("how").content.cloneNode(true);
  how.querySelector("pre code").textContent = curl();
  empty.append(how, h("p", { class: "hint" }, "New rows show up here by themselves. Or ", h("a", { href: "try" }, "try a text, or teach from a file"), "."));
}

function showRefusal(empty) {
  empty.dataset.shown = refusal;
  empty.replaceChildren(h("h2", {}, "The rows cannot be shown."), h("p", {}, refusal), h("button", { type: "button", onclick: () => reload() }, "Try again"));
  if (!sessionStorage.getItem("labelrace.token")) return;
  empty.append(" ", h("button", { type: "button", onclick: () => (sessionStorage.removeItem("labelrace.token"), location.reload()) }, "Use another token"));
}

async function reload({ search, state, order } = {}) {
  Object.assign(queue.filters, { ...(search !== undefined && { search }), ...(state && { state }), ...(order && { order }) });
  try {
    if (!(await queue.load())) return;
    refusal = "";
  } catch (error) {
    refusal = error.message;
    finish();
    return;
  }
  byId("list").setAttribute("aria-label", { waiting: "Rows that wait for tags", tagged: "Tagged rows", all: "All rows" }[queue.filters.state]);
  const first = queue.rows.find((one) => !queue.isTaken(one)) ?? queue.rows[0];
  if (first) await pick(first.id, { focus: document.activeElement === document.body });
  else finish();
  showRest();
}

const loadTags = async () => {
  tags = (await attempt(() => get(query("v1/tags", { limit: MOST_TAGS }))))?.tags ?? tags;
};

// --- What others do

let waitingRefresh = null;
function refreshSoon() {
  if (refusal) return;
  waitingRefresh ??= setTimeout(async () => {
    waitingRefresh = null;
    await attempt(() => queue.refresh());
    if (!row) {
      const first = queue.rows.find((one) => !queue.isDone(one));
      if (first) pick(first.id, { focus: false });
      else if (queue.fresh.length) (queue.takeFresh(), pick(queue.rows[0].id, { focus: false }));
    }
    showRest();
  }, PAUSE);
}

function onEvent(name, data) {
  if (name === "open") {
    const about = queue.find(data.id);
    if (!about) return;
    about.open_by = data.open_by;
    queue.render();
    if (about === row) draw();
  } else if (name === "row") {
    const about = queue.find(data.id);
    // What this person said is known already.
    if (about?.pending || (about?.saidAt && about.state === data.state)) return;
    if (about && data.state === "tagged") {
      Object.assign(about, { state: "tagged", tags: null, who: data.who, open_by: null, elsewhere: true });
      get(`v1/rows/${encodeURIComponent(data.id)}`).then((answer) => {
        queue.merge(answer);
        queue.render();
        if (about === row) draw();
      }, () => {});
      queue.render();
    } else if (about && data.state === "waiting") Object.assign(about, { state: "waiting", tags: null, who: null, elsewhere: false });
    refreshSoon();
  } else if (name === "position") {
    refreshSoon();
    if (Math.min(data.tags, MOST_TAGS) !== tags.length) loadTags();
  }
}

// --- Controls and keys

let typing;
byId("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => reload({ search: byId("search").value.trim() }), 250);
});
byId("state").addEventListener("change", (event) => reload({ state: event.target.value }));
byId("order").addEventListener("change", (event) => reload({ order: event.target.value }));
byId("fresh").addEventListener("click", () => {
  queue.takeFresh();
  pick(queue.rows[0].id);
  showRest();
});
byId("more").addEventListener("click", async () => {
  await attempt(() => queue.more());
  showRest();
});
const singleKeys = byId("single-keys");
singleKeys.checked = localStorage.getItem("labelrace.keys") !== "off";
singleKeys.addEventListener("change", () => localStorage.setItem("labelrace.keys", singleKeys.checked ? "on" : "off"));

const KEYS = {
  j: () => skip(1),
  k: () => skip(-1),
  ArrowDown: () => skip(1),
  ArrowUp: () => skip(-1),
  u: () => undo(),
  w: toggleWords,
  t: () => view.field.input.focus(),
  "/": () => view.field.input.focus(),
  s: () => byId("search").focus(),
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const isField = target.closest("input:not([type=radio], [type=checkbox]), textarea, select");
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "z" && !event.shiftKey && !(isField && target.value)) {
    event.preventDefault();
    undo();
    return;
  }
  if (target === byId("search") && ["Enter", "Escape"].includes(key)) {
    event.preventDefault();
    article.focus();
    return;
  }
  if (!isFree(event) || event.defaultPrevented) return;
  const isRadio = target.closest("input[type=radio]");
  if (key === "Enter" && !event.repeat && !target.closest("button, a, summary, [role=option]")) {
    event.preventDefault();
    accept();
  } else if (singleKeys.checked && /^[1-9]$/.test(key) && choice && choice.order[key - 1] !== undefined) {
    event.preventDefault();
    change(toggled(choice, choice.order[key - 1]));
  } else if (singleKeys.checked && KEYS[key] && !(isRadio && key.startsWith("Arrow"))) {
    event.preventDefault();
    KEYS[key]();
  }
});

startShell({
  onEvent,
  onState: (state) => state === "live" && (refusal ? reload() : refreshSoon()),
  onName: () => {
    queue.me = shownName();
    if (row) sayOpen(row.id, true);
  },
});
setInterval(() => row && !document.hidden && sayOpen(row.id, true), RENEW);
setInterval(() => queue.render(), 60_000);
addEventListener("beforeunload", (event) => said.some((entry) => entry.row.pending) && event.preventDefault());
addEventListener("pagehide", () => row && sayOpen(row.id, false));
loadTags();
reload();
