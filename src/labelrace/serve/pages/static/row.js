// The row in hand: its cells with marked words, its chips, and the field for further tags.

import { tagsOf } from "./choice.js";
import { combobox } from "./combobox.js";
import { ago, cellText, h, percent, printable } from "./dom.js";
import { colorOf, marked, sentence } from "./words.js";

// Columns that make good titles, and how long a title may be.
const TITLES = ["title", "subject", "name", "summary", "headline", "question"];
const TITLE_LENGTH = 160;

/** The column whose text is the title of a row, if any: one that is called so, or the first short text. */
export function titleColumn(cells) {
  const texts = Object.entries(cells).filter(([, cell]) => typeof cell === "string" && cell.trim());
  const called = texts.find(([name, cell]) => TITLES.includes(name.toLowerCase()) && cell.length <= TITLE_LENGTH);
  return (called ?? texts.find(([, cell]) => cell.length <= TITLE_LENGTH && texts.length > 1))?.[0];
}

/** The first words of a row: its title, and what follows. */
export function gist(row) {
  const column = titleColumn(row.cells);
  const rest = Object.entries(row.cells).filter(([name, cell]) => name !== column && typeof cell === "string").map(([, cell]) => cell).join(" ");
  return column ? [printable(row.cells[column]), printable(rest)] : [printable(rest).slice(0, 80) || row.id, printable(rest).slice(80)];
}

/** The view of one row. `actions` are toggle(tag), add(tag), removeLast(), accept(), skip(by), undo(), leave(). */
export function rowView(article, tags, actions) {
  let row, choice, showsWords;
  const field = combobox({
    label: "Add a tag",
    placeholder: "Add a tag …",
    tags,
    pick: actions.add,
    except: () => choice.chosen,
    onEmpty: (key) => (key === "Enter" ? actions.accept() : key === "Backspace" ? actions.removeLast() : article.focus()),
  });
  field.box.append(h("kbd", { "aria-hidden": "true" }, "t"));
  const head = h("header", { class: "row-head" });
  const cells = h("div", { class: "cells" });
  const chips = h("ul", { class: "chips", "aria-label": "Tags" });
  const why = h("p", { class: "why", id: "why", role: "status" });
  const notice = h("p", { class: "notice", role: "status" });
  const accept = h("button", { type: "button", class: "main", id: "accept", onclick: () => actions.accept() });
  const history = h("details", { class: "history" });
  article.append(
    head, notice, cells,
    h("div", { class: "tagging" }, chips, field.box, why),
    h("div", { class: "actions" },
      accept,
      h("button", { type: "button", id: "skip", onclick: () => actions.skip(1) }, "Skip ", h("kbd", {}, "j")),
      h("button", { type: "button", id: "undo", onclick: () => actions.undo() }, "Undo ", h("kbd", {}, "u")),
      h("button", { type: "button", id: "words", "aria-pressed": "true", onclick: () => actions.toggleWords() }, "Words ", h("kbd", {}, "w")),
    ),
    history,
  );

  function showHead() {
    const title = titleColumn(row.cells);
    const columns = Object.keys(row.cells);
    const nodes = (column) => (showsWords ? marked(printable(row.cells[column]), column, row.explanation, columns, choice.order) : [printable(row.cells[column])]);
    head.replaceChildren(
      h("p", { class: "meta" },
        h("span", { class: "id" }, printable(row.id)), h("span", {}, ago(row.time) === "now" ? "just now" : `${ago(row.time)} ago`),
        row.suggested.review && row.state === "waiting" ? h("span", { class: "badge review", title: "No tag is sure enough to go without a person" }, "review") : null,
        row.suggested.reason ? h("span", { class: "muted" }, `The model cannot read this row: ${printable(row.suggested.reason)}`) : null),
      h("h2", { id: "row-title" }, title ? nodes(title) : `Row ${printable(row.id)}`),
    );
    const others = columns.filter((name) => name !== title && cellText(row.cells[name]) !== "");
    const isText = (name) => typeof row.cells[name] === "string" && row.cells[name].length > 40;
    const texts = others.filter(isText);
    cells.replaceChildren(
      ...texts.map((name) => h("div", { class: "cell" }, texts.length > 1 || others.length > 1 ? h("h3", {}, printable(name)) : null, h("p", {}, nodes(name)))),
    );
    const facts = others.filter((name) => !isText(name));
    if (facts.length) cells.append(h("dl", { class: "row-facts" }, facts.map((name) => h("div", {}, h("dt", {}, printable(name)), h("dd", {}, typeof row.cells[name] === "string" ? nodes(name) : cellText(row.cells[name]))))));
  }

  function point(tag) {
    article.classList.toggle("pointing", tag !== null);
    for (const mark of cells.parentElement.querySelectorAll("mark")) mark.classList.toggle("pointed", mark.dataset.tag === tag);
    const parts = tag !== null && row.explanation?.[tag];
    why.textContent = parts ? sentence(tag, parts, Object.keys(row.cells)) : "";
  }

  function chip(tag, index) {
    const isChosen = choice.chosen.has(tag);
    const probability = row.suggested.probabilities[tag];
    const isSuggested = row.suggested.tags.includes(tag);
    const said = [printable(tag), probability === undefined ? (tags().some((one) => one.tag === tag) ? "" : "new tag") : percent(probability), isSuggested ? "suggested" : ""].filter(Boolean);
    const button = h("button",
      {
        type: "button", class: "chip", "aria-pressed": String(isChosen), "aria-label": said.join(", "), title: printable(tag), "data-tag": tag,
        onclick: (event) => {
          actions.toggle(tag);
          // After the pointer, Enter is to accept the row, and not to press the chip again.
          if (event.detail) article.focus({ preventScroll: true });
        },
        onpointerenter: () => point(tag), onpointerleave: () => point(null), onfocus: () => point(tag), onblur: () => point(null),
      },
      index < 9 ? h("kbd", { "aria-hidden": "true" }, index + 1) : null,
      h("span", { class: "dot", "aria-hidden": "true" }),
      h("span", { class: "tag-name" }, printable(tag)),
      h("span", { class: "probability" }, probability === undefined ? (said[1] === "new tag" ? "new" : "") : percent(probability)),
    );
    button.style.setProperty("--p", probability ?? 0);
    button.style.setProperty("--chip", colorOf(tag, choice.order));
    return h("li", {}, button);
  }

  function showChips() {
    const focused = document.activeElement?.closest(".chip")?.dataset.tag;
    chips.replaceChildren(...choice.order.map(chip));
    if (!choice.order.length) chips.append(h("li", { class: "muted" }, "No tag is suggested: add one."));
    if (focused !== undefined) [...chips.querySelectorAll(".chip")].find((one) => one.dataset.tag === focused)?.focus();
    const chosen = tagsOf(choice);
    const isEmpty = !chosen.length;
    const what = row.state === "tagged" && !choice.touched ? "Go on" : row.state === "tagged" ? "Correct and go on" : isEmpty ? "No tag applies" : choice.touched ? "Save and go on" : "Accept and go on";
    accept.replaceChildren(`${what} `, h("kbd", {}, "⏎"));
    accept.classList.toggle("caution", isEmpty && row.state === "waiting");
  }

  function showHistory() {
    const said = row.history ?? [];
    history.hidden = !said.length;
    const summary = history.querySelector("summary") ?? history.appendChild(h("summary"));
    summary.textContent = `History (${said.length})`;
    history.replaceChildren(summary, h("ol", {}, said.map(({ time, who, tags: given }) =>
      h("li", {}, h("strong", {}, printable(who || "Somebody")), given ? `: ${given.map(printable).join(", ") || "no tag applies"} ` : " took it back ", h("small", {}, `${ago(time)}`)))));
  }

  return {
    field,
    show(shownRow, shownChoice, { words, note = "" }) {
      const isOther = row?.id !== shownRow.id;
      [row, choice, showsWords] = [shownRow, shownChoice, words];
      article.hidden = false;
      notice.textContent = note;
      notice.hidden = !note;
      article.classList.toggle("is-tagged", row.state === "tagged");
      article.querySelector("#words").setAttribute("aria-pressed", String(words));
      showHead();
      showChips();
      showHistory();
      if (isOther) {
        field.input.value = "";
        cells.scrollTop = 0;
        why.textContent = "";
        history.open = false;
      }
    },
    setUndo: (count) => (article.querySelector("#undo").disabled = !count),
  };
}
