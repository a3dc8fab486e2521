// Tables: sorting by a click on a heading, and a fading edge where there is more to scroll to.

/** Sort by a column; rows without a value stay last. */
function sortBy(table, heading, column) {
  const button = heading.querySelector("button");
  const opposite = { ascending: "descending", descending: "ascending" };
  const current = heading.getAttribute("aria-sort");
  const direction = opposite[current] ?? button.dataset.first ?? "ascending";
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const isText = button.dataset.kind === "text";
  const key = (row) => (isText ? row.cells[column].textContent.trim() : row.cells[column].dataset.value);
  const compare = (a, b) => {
    if (isText) return sign * a.localeCompare(b);
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (a - b);
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => sortBy(table, heading, column));
  });
}

for (const box of document.querySelectorAll(".scroll")) {
  const update = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(box);
}
