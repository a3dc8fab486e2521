// What all pages have: who is here, help, how many rows wait, whether the service is there, and short messages.

import { follow, get, nameOfPerson } from "./api.js";
import { byId, h, printable } from "./dom.js";

const SECONDS = 6;
// Milliseconds.
const COUNT = 1200;

/** Say something in a corner, with a button if there is something to do about it. */
export function toast(text, { action, onaction, isError = false } = {}) {
  const button = action && h("button", { type: "button", onclick: () => (element.remove(), onaction()) }, action);
  // What is said again counts from now on.
  [...byId("toasts").children].find((one) => one.firstChild.textContent === printable(text))?.remove();
  const element = h("div", { class: isError ? "toast error" : "toast" }, h("span", {}, printable(text)), button);
  byId("toasts").append(element);
  while (byId("toasts").children.length > 3) byId("toasts").firstChild.remove();
  setTimeout(() => element.remove(), 1000 * (isError ? 2 * SECONDS : SECONDS));
  return element;
}

/** Run something that asks the service; say why if it was refused, after what that means. */
export async function attempt(work, meaning = "") {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") toast(meaning + error.message, { isError: true });
    return undefined;
  }
}

let counting = null;

/** Count the rows that wait, some time after something happened: the service counts once a second. */
function countSoon() {
  counting ??= setTimeout(async () => {
    counting = null;
    const known = await get("v1/status").catch(() => null);
    if (known) showWaiting(known.waiting);
  }, COUNT);
}

function showWaiting(count) {
  byId("waiting").hidden = !count;
  byId("waiting").textContent = count > 999 ? "999+" : count;
  byId("waiting").title = `${count} rows wait for tags`;
}

function showName() {
  const name = printable(nameOfPerson());
  const button = byId("person");
  button.querySelector(".face").textContent = name ? [...name][0].toUpperCase() : "?";
  button.querySelector(".who").textContent = name || "Your name?";
  button.setAttribute("aria-label", name ? `You are ${name}` : "Your name?");
  button.classList.toggle("unknown", !name);
}

/** Whether keys now mean the page, and not a field or a dialog. */
export const isFree = (event) =>
  !event.ctrlKey && !event.metaKey && !event.altKey && !document.querySelector("dialog[open]") &&
  !event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");

/** Start the shell; `onEvent(name, data)` gets what happens, `onState` whether it is followed. */
export function startShell({ onEvent = () => {}, onState = () => {}, onName = () => {} } = {}) {
  const dialog = byId("name-dialog");
  showName();
  byId("person").addEventListener("click", () => {
    byId("name").value = nameOfPerson();
    dialog.showModal();
  });
  dialog.querySelector("form").addEventListener("submit", () => {
    localStorage.setItem("labelrace.name", byId("name").value.trim());
    showName();
    onName();
  });
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || !isFree(event)) return;
    event.preventDefault();
    byId("help").showModal();
  });
  // A click beside a dialog closes it, other than that which asks for a token.
  for (const one of document.querySelectorAll("dialog:not(#token-dialog)")) {
    one.addEventListener("click", (event) => event.target === one && one.close());
  }
  get("v1/status").then(({ waiting }) => showWaiting(waiting), () => {});
  follow(
    (name, data) => {
      if (["position", "row"].includes(name)) countSoon();
      onEvent(name, data);
    },
    (state) => {
      byId("live").dataset.state = state;
      byId("live").textContent = state === "live" ? "Live" : "Reconnecting";
      onState(state);
    },
  );
}
