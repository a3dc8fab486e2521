// Before anything is drawn: the theme that was chosen on another page, and later the one that is chosen here.

if (localStorage.getItem("labelrace.theme")) document.documentElement.dataset.theme = localStorage.getItem("labelrace.theme");
document.addEventListener("click", (event) => {
  if (event.target.closest("#theme")) localStorage.setItem("labelrace.theme", document.documentElement.dataset.theme);
});
