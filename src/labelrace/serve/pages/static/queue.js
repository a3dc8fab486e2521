// The rows that the inbox shows, in the order in which they were shown first: what is looked at does not move.

import { get, query } from "./api.js";
import { ago, h, printable } from "./dom.js";
import { gist } from "./row.js";

const PAGE = 50;
// Rows that were done and are still shown above the one in hand.
const DONE_SHOWN = 3;

/** The queue. `onPick(id)` is called when a row is chosen; `onChange()` when rows were added or changed. */
export class Queue {
  constructor(list, { onPick, onChange }) {
    Object.assign(this, { list, onPick, onChange, rows: [], fresh: [], next: null, items: new Map(), current: null, me: "", asked: 0, answered: 0, loading: 0, missed: false });
    this.filters = { state: "waiting", order: "newest", search: "" };
  }

  find(id) {
    return this.rows.find((row) => row.id === id);
  }

  isDone = (row) => this.filters.state === "waiting" && row.state === "tagged";
  isTaken = (row) => Boolean(row.open_by) && row.open_by !== this.me;

  /** Ask for the rows again, and begin with the first. */
  async load() {
    const asked = (this.loading = this.asked += 1);
    let answer;
    try {
      answer = await get(query("v1/rows", { ...this.filters, limit: PAGE }));
    } finally {
      if (this.loading === asked) this.loading = 0;
    }
    // Only a later request for all rows takes the place of this one: `refresh` keeps those that are shown.
    if (asked < this.answered || this.loading) return false;
    this.answered = asked;
    Object.assign(this, { rows: answer.rows, fresh: [], next: answer.next });
    this.render();
    // What happened while it was asked; if that fails, the next event asks again.
    if (this.missed) this.refresh().catch(() => {});
    return true;
  }

  /** Ask again: suggestions of the rows that are shown are replaced in their places, others come to the end. */
  async refresh() {
    this.missed = Boolean(this.loading);
    if (this.missed) return;
    const asked = (this.asked += 1);
    const answer = await get(query("v1/rows", { ...this.filters, limit: PAGE }));
    // The filters may have changed meanwhile.
    if (asked < this.answered || this.loading) return;
    this.answered = asked;
    // The newest ones come first: those above a row that is known are new, unless there is nothing else to look at.
    const known = answer.rows.findIndex((row) => this.find(row.id));
    const hasWaiting = this.rows.some((row) => !this.isDone(row));
    const isFresh = (at) => this.filters.order === "newest" && hasWaiting && (known < 0 || at < known);
    this.fresh = [];
    for (const [at, row] of answer.rows.entries()) {
      if (this.find(row.id)) this.merge(row);
      else if (isFresh(at)) this.fresh.push(row);
      else this.rows.push(row);
    }
    if (this.rows.length <= PAGE) this.next = answer.next;
    this.render();
    this.onChange();
  }

  /** Take what the service says of a row, unless it was asked before the last lesson of the row. */
  merge(row) {
    const known = this.find(row.id);
    if (!known || known.pending || row.suggested.position < (known.saidAt ?? 0)) return known;
    return Object.assign(known, row);
  }

  /** Show the rows that came meanwhile, above the others. */
  takeFresh() {
    this.rows = [...this.fresh, ...this.rows.filter((row) => !this.isDone(row))];
    this.fresh = [];
    this.render();
  }

  async more() {
    const answer = await get(query("v1/rows", { ...this.filters, limit: PAGE, after: this.next }));
    this.next = answer.next;
    this.rows.push(...answer.rows.filter((row) => !this.find(row.id)));
    this.render();
  }

  /** The next row to look at from one on, forwards or backwards; with `free` one that nobody else has open. */
  step(id, by, { free = false } = {}) {
    const at = this.rows.findIndex((row) => row.id === id);
    const open = (row) => !this.isDone(row) && row.id !== id;
    const order = by > 0 ? [...this.rows.slice(at + 1), ...(free ? this.rows.slice(0, Math.max(0, at)) : [])] : this.rows.slice(0, Math.max(0, at)).reverse();
    return (free && order.find((row) => open(row) && !this.isTaken(row))) || order.find(open);
  }

  /** Put a row back before the one in hand. */
  restore(row) {
    if (!this.find(row.id)) this.rows.splice(Math.max(0, this.rows.findIndex(({ id }) => id === this.current)), 0, row);
    this.render();
  }

  select(id) {
    this.current = id;
    // Rows that are done leave one by one, when they are some way above.
    const done = this.rows.slice(0, this.rows.findIndex((row) => row.id === id)).filter(this.isDone);
    const leaving = new Set(done.slice(0, Math.max(0, done.length - DONE_SHOWN)));
    this.rows = this.rows.filter((row) => !leaving.has(row));
    this.render();
    this.items.get(id)?.scrollIntoView({ block: "nearest" });
  }

  render() {
    const items = this.rows.map((row) => this.item(row));
    const wanted = new Set(items);
    for (const [id, item] of this.items) if (!wanted.has(item)) (item.remove(), this.items.delete(id));
    items.forEach((item, index) => this.list.children[index] !== item && this.list.insertBefore(item, this.list.children[index] ?? null));
  }

  item(row) {
    let item = this.items.get(row.id);
    if (!item) {
      item = h("li", {}, h("button", { type: "button", onclick: () => this.onPick(row.id) }));
      this.items.set(row.id, item);
    }
    const button = item.firstChild;
    const [title, rest] = gist(row);
    const tags = row.tags ?? row.suggested.tags;
    const who = row.state === "tagged" ? `${row.who && row.who !== this.me ? printable(row.who) : "You"}` : "";
    const isMine = !row.who || row.who === this.me;
    button.className = `item${this.isDone(row) ? " done" : ""}${row.state === "tagged" ? " tagged" : ""}`;
    button.setAttribute("aria-current", String(row.id === this.current));
    const face = this.isTaken(row) && row.state === "waiting" ? h("span", { class: "open-by" }, h("span", { class: "face", "aria-hidden": "true" }, [...printable(row.open_by)][0].toUpperCase()), ` ${printable(row.open_by)} is here`) : null;
    button.replaceChildren(
      h("span", { class: "item-top" }, h("span", { class: "title" }, title), h("small", {}, ago(row.time))),
      rest ? h("span", { class: "rest" }, rest.slice(0, 160)) : "",
      h("span", { class: "item-tags" },
        face,
        row.state === "tagged" ? h("span", { class: "by" }, this.filters.state === "waiting" || !isMine ? `${who === "You" ? "✓" : `✓ ${who}:`}` : "✓") : null,
        row.state === "waiting" && row.suggested.review ? h("span", { class: "badge review" }, "review") : null,
        tags.length ? tags.map((tag) => h("span", { class: "mini" }, printable(tag))) : h("span", { class: "muted" }, row.state === "tagged" ? "no tag applies" : row.suggested.reason ? "cannot be read" : "no suggestion"),
      ),
    );
    return item;
  }
}
