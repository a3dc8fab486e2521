// Why a tag was suggested: the words that speak for it, marked in the text of the row.

import { h } from "./dom.js";

// Words that count: those with at least this share of what the strongest adds, and at most this number.
const SHARE = 0.2;
const MOST = 5;
const COLORS = 8;
// Texts without spaces between words: a word is found anywhere in them.
const JOINED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/u;

// What stands between a column and its word or value in an explanation; a number is its column alone.
const JOINTS = [": ", "=", ""];

const plain = (text) => text.normalize("NFKC").toLowerCase();

/** The colour of a tag, by its place among those that are shown. */
export const colorOf = (tag, shown) => `var(--color-${Math.max(0, shown.indexOf(tag)) % COLORS})`;

/** Parts of an explanation that speak for the tag, or against it: {column, word, amount}, strongest first. */
export function reasons(parts, columns, sign = 1) {
  const strongest = Math.max(0, ...parts.map(([, amount]) => sign * amount));
  return parts
    .filter(([, amount]) => sign * amount > 0 && sign * amount >= SHARE * strongest)
    .slice(0, MOST)
    .map(([name, amount]) => {
      const [column, word] = divided(name, columns);
      return { column, word, amount };
    });
}

/** The column and the word of a part of an explanation; no column if it names none. */
function divided(name, columns) {
  for (const joint of JOINTS) {
    const column = columns.find((one) => (joint ? name.startsWith(one + joint) : name === one));
    if (column !== undefined) return [column, name.slice(column.length + joint.length)];
  }
  return [undefined, name];
}

/** For a column, what each of its words speaks for: a map from word to {tag, strength} of the tag it says most of. */
function meanings(column, explanation, columns, shown) {
  const found = new Map();
  const all = shown.flatMap((tag) => reasons(explanation[tag] ?? [], columns).map((reason) => ({ tag, ...reason })));
  // Of a tag that is hardly likely, no word says much.
  const strongest = Math.max(...all.map(({ amount }) => amount));
  for (const { tag, column: own, word, amount } of all) {
    if ((own !== undefined && own !== column) || amount < SHARE * strongest) continue;
    const key = plain(word);
    if (key && !(found.get(key)?.amount >= amount)) found.set(key, { tag, amount, strength: amount / strongest });
  }
  return found;
}

function patternOf(words) {
  const escaped = words
    .sort((a, b) => b.length - a.length)
    .map((word) => {
      const text = word.replace(/[\\^$.*+?()[\]{}|]/gu, "\\$&");
      return JOINED.test(word) ? text : `(?<![\\p{L}\\p{N}_])${text}(?![\\p{L}\\p{N}_])`;
    });
  return new RegExp(escaped.join("|"), "giu");
}

/** A text as nodes, with its words that speak for one of the tags that are shown as <mark>, in the colour of the tag's chip. */
export function marked(text, ...rest) {
  try {
    return withMarks(text, ...rest);
  } catch (error) {
    // Marks are a help: without them a row is shown, and can be tagged.
    console.error(error);
    return [text];
  }
}

function withMarks(text, column, explanation, columns, shown) {
  const found = explanation && meanings(column, explanation, columns, shown);
  if (!found?.size) return [text];
  const nodes = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(patternOf([...found.keys()]))) {
    const meaning = found.get(plain(word));
    if (!meaning) continue;
    nodes.push(text.slice(end, index));
    const mark = h("mark", { title: `speaks for ${meaning.tag}`, "data-tag": meaning.tag, class: meaning.strength > 0.6 ? "strong" : "" }, word);
    mark.style.setProperty("--mark", colorOf(meaning.tag, shown));
    nodes.push(mark);
    end = index + word.length;
  }
  return [...nodes, text.slice(end)];
}

/** The reasons for a tag in a sentence. */
export function sentence(tag, parts, columns) {
  const words = (sign) => reasons(parts, columns, sign).slice(0, 4).map(({ column, word, amount }) => `${word || column} (${sign > 0 ? "+" : "−"}${Math.abs(amount).toFixed(2)})`).join(", ");
  const [pro, contra] = [words(1), words(-1)];
  return [pro && `For ${tag}: ${pro}`, contra && `against: ${contra}`].filter(Boolean).join("; ") || `No word speaks for ${tag}.`;
}
