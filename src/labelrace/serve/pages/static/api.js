// What the pages say to the service: requests with the person's name and token, sent again where no answer came, and the
// stream of what happens.

import { byId } from "./dom.js";

const TRIES = 5;
// Seconds until a lost stream is asked for again: doubled each time, up to the second.
const WAIT = [1, 15];

/** A request that was refused, or that did not arrive. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `The service answered ${status}.`);
    this.status = status;
  }
}

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
export const nameOfPerson = () => localStorage.getItem("labelrace.name") ?? "";

/** The name by which others see this person; who has given none is a guest with a number. */
export function shownName() {
  if (nameOfPerson()) return nameOfPerson();
  if (!sessionStorage.getItem("labelrace.guest")) sessionStorage.setItem("labelrace.guest", `Guest ${10 + Math.floor(90 * Math.random())}`);
  return sessionStorage.getItem("labelrace.guest");
}

function headers() {
  const known = {};
  const token = sessionStorage.getItem("labelrace.token");
  if (token) known.Authorization = `Bearer ${token}`;
  // Headers are ASCII: other signs are written as in addresses.
  if (nameOfPerson()) known["X-Labelrace-User"] = encodeURIComponent(nameOfPerson()).replaceAll("%20", " ");
  return known;
}

/** A key by which a request that is sent twice counts once. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

let asking = null;

/** Ask for a token; all requests that were refused wait for the same answer. */
function askToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    if (sessionStorage.getItem("labelrace.token")) byId("token-hint").textContent = "That token is not known here. Paste another one.";
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("labelrace.token", byId("token").value.trim());
      byId("token").value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

/** Send a request and return its answer; it is sent again if it may have been lost: what teaches counts once by its key. */
async function send(path, { method = "GET", body, raw, teaches = false, signal, keepalive } = {}) {
  const init = { method, headers: headers(), signal, keepalive };
  if (raw !== undefined) init.body = raw;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers["Content-Type"] = "application/json";
  }
  if (teaches) init.headers["Idempotency-Key"] = newKey();
  for (let tries = 1; ; tries += 1) {
    let answer;
    try {
      answer = await fetch(path, init);
    } catch (error) {
      if (signal?.aborted || tries >= TRIES) throw error.name === "AbortError" ? error : new Refused(0, { detail: "The service does not answer." });
      await sleep(0.3 * 2 ** tries);
      continue;
    }
    if (answer.ok) return answer;
    if (answer.status === 401) {
      await askToken();
      Object.assign(init.headers, headers());
      tries = 0;
      continue;
    }
    if ([429, 503].includes(answer.status) && tries < TRIES) {
      await sleep(Math.min(Number(answer.headers.get("Retry-After")) || 0.3 * 2 ** tries, 10));
      continue;
    }
    throw new Refused(answer.status, await answer.json().catch(() => ({})));
  }
}

export const get = async (path, options) => (await send(path, options)).json();
export const post = async (path, body, options) => (await send(path, { method: "POST", body, ...options })).json();
export const teach = (path, body) => post(path, body, { teaches: true });
export const getText = async (path) => (await send(path)).text();
/** Post the content of a file; for its address see `query`. */
export const postFile = async (path, file) => (await send(path, { method: "POST", raw: file })).json();
/** Post JSON and get a file. */
export const getFile = async (path, body) => (await send(path, { method: "POST", body })).blob();
export const query = (path, parameters) => `${path}?${new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined))}`;

/** Read events from a stream of bytes: lines of `event:` and `data:`, and an empty line after each. */
async function* eventsOf(stream) {
  let text = "";
  for (const reader = stream.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value.replaceAll("\r", "");
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const part = (name) => fields.filter((field) => field.startsWith(`${name}:`)).map((field) => field.slice(name.length + 1).trim()).join("\n");
      if (part("data")) yield [part("event"), JSON.parse(part("data"))];
    }
  }
}

/** Follow what happens: `handle(name, data)` for each event, `state("live" | "lost")` for the stream itself.
 *
 * A hidden page follows nothing, as a browser has few connections to a host; `state` tells when it does again.
 */
export async function follow(handle, state) {
  for (let wait = WAIT[0]; ; wait = Math.min(2 * wait, WAIT[1])) {
    if (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    const stop = new AbortController();
    const hide = () => document.hidden && stop.abort();
    document.addEventListener("visibilitychange", hide, { signal: stop.signal });
    addEventListener("pagehide", () => stop.abort(), { signal: stop.signal });
    try {
      const answer = await send("v1/events", { signal: stop.signal });
      state("live");
      wait = WAIT[0] / 2;
      for await (const [name, data] of eventsOf(answer.body)) handle(name, data);
    } catch (error) {
      if (error.status === 403) return;
    } finally {
      // The listeners go, and the stream if it is still there.
      stop.abort();
    }
    if (!document.hidden) {
      state("lost");
      await sleep(wait);
    }
  }
}
