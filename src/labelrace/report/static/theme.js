// Light and dark: the reader's system decides until the button does. Charts are painted again at every change.

const root = document.documentElement;
const redraws = [];

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

/** The colour that a style variable stands for now; canvases know no variables. */
function paint(variable) {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

function repaint() {
  themeButton.textContent = isDark() ? "Light theme" : "Dark theme";
  redraws.forEach((redraw) => redraw());
}

const themeButton = document.getElementById("theme");
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  repaint();
});
themeButton.textContent = isDark() ? "Light theme" : "Dark theme";
prefersDark.addEventListener("change", repaint);
root.classList.add("js");

// Paper is light, and as wide as paper.
const PAPER_WIDTH = 680;
let printing = false;
let themeBeforePrint;
addEventListener("beforeprint", () => {
  themeBeforePrint = root.dataset.theme;
  root.dataset.theme = "light";
  printing = true;
  redraws.forEach((redraw) => redraw());
});
addEventListener("afterprint", () => {
  printing = false;
  if (themeBeforePrint) root.dataset.theme = themeBeforePrint;
  else delete root.dataset.theme;
  repaint();
});
