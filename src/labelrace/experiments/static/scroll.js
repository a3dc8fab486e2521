// A fading edge where a table has more to scroll to.

for (const box of document.querySelectorAll(".scroll")) {
  const update = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(box);
}
