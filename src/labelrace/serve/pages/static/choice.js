// What a person chose for a row: pure functions over plain values.

// Tags that are offered beside the suggested ones: how many chips there are, and how likely they must be.
const MOST = 9;
const LIKELY = 0.05;

/** The choice to begin with: the tags that the row has, or the suggested ones; further likely ones beside them. */
export function choiceOf(row) {
  const { tags, probabilities } = row.suggested;
  const given = row.tags ?? tags;
  const likely = Object.keys(probabilities).filter((tag) => probabilities[tag] >= LIKELY);
  const order = [...new Set([...tags, ...given, ...likely])];
  return { id: row.id, order: order.slice(0, Math.max(MOST, new Set([...tags, ...given]).size)), chosen: new Set(given), touched: false };
}

/** The choice with new suggestions: chips keep their place, and what a person sees chosen stays chosen. */
export function refreshed(choice, row) {
  const more = row.suggested.tags.filter((tag) => !choice.order.includes(tag));
  return { ...choice, order: [...choice.order, ...more] };
}

export function toggled(choice, tag) {
  const chosen = new Set(choice.chosen);
  if (!chosen.delete(tag)) chosen.add(tag);
  return { ...choice, chosen, touched: true };
}

export function added(choice, tag) {
  const order = choice.order.includes(tag) ? choice.order : [...choice.order, tag];
  return { ...choice, order, chosen: new Set([...choice.chosen, tag]), touched: true };
}

/** The choice without the last chosen tag. */
export function withoutLast(choice) {
  const last = choice.order.findLast((tag) => choice.chosen.has(tag));
  return last === undefined ? choice : toggled(choice, last);
}

export const tagsOf = (choice) => choice.order.filter((tag) => choice.chosen.has(tag));
export const isSame = (one, other) => one.length === other.length && one.every((tag) => other.includes(tag));
