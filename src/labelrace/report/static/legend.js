// A legend whose entries are buttons: they show and hide a model, and hold its value at the cursor.

function makeLegend(list, { onToggle, onFocus }) {
  const shown = data.models.map(() => true);
  const values = data.models.map((model, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `model-${place}`;
    button.setAttribute("aria-pressed", "true");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    if (model.dash.length) {
      // The pattern of the line.
      const [drawn, gap] = model.dash;
      const stops = `var(--model) 0 ${drawn}px, transparent ${drawn}px ${drawn + gap}px`;
      swatch.style.background = `repeating-linear-gradient(90deg, ${stops})`;
    }
    const name = document.createElement("span");
    name.className = "label";
    name.textContent = model.name;
    const value = document.createElement("span");
    value.className = "number";
    button.append(swatch, name, value);
    button.addEventListener("click", () => {
      shown[place] = !shown[place];
      button.setAttribute("aria-pressed", String(shown[place]));
      onToggle(place, shown[place]);
    });
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => onFocus(place));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => onFocus(null));
    const item = document.createElement("li");
    item.append(button);
    list.append(item);
    return value;
  });
  return {
    shown,
    write: (texts) => texts.forEach((text, place) => (values[place].textContent = text)),
  };
}
