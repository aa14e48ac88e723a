// What outlives a part of the page being drawn anew: open folds, what was typed or chosen, and the focus.
"use strict";
const keeping = (() => {
  const WHAT = "[data-id], details, summary, a, button, input, select, textarea";
  const all = (what, from) => [...from.querySelectorAll(what)];

  // What it is of, a card or a line of a list; in a form what that does to what; and what it is itself.
  function nameOf(element) {
    const of = element.closest("[data-id], [data-key]");
    const form = element.closest("form");
    const does = form && [form.getAttribute("action"), form.querySelector("input[name=id]")?.value];
    const own = element.id || element.getAttribute("name") || element.getAttribute("href");
    const value = element.matches("button, [type=checkbox], [type=radio]") && element.value;
    return JSON.stringify([of?.dataset.id ?? of?.dataset.key, does, element.tagName, own, value]);
  }

  // Those with the same name are told apart by their order.
  function named(part) {
    const found = new Map();
    const count = new Map();
    for (const element of [part, ...all(WHAT, part)]) {
      const name = nameOf(element);
      count.set(name, (count.get(name) ?? 0) + 1);
      found.set(`${name} ${count.get(name)}`, element);
    }
    return found;
  }

  function changed(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
    return field.value !== ([...field.options].find((each) => each.defaultSelected) ?? field.options[0])?.value;
  }

  // Call what it returns with the part that took the place of this one, once it stands in the page.
  return function keep(part) {
    const set = [];
    let focus = null;
    for (const [name, element] of named(part)) {
      if (element.tagName === "DETAILS") set.push([name, "open", element.open]);
      if (element.matches("input:not([type=hidden]), select, textarea") && changed(element)) {
        set.push([name, element.matches("[type=checkbox], [type=radio]") ? "checked" : "value",
          element.matches("[type=checkbox], [type=radio]") ? element.checked : element.value]);
      }
      if (element === document.activeElement) {
        focus = { name, of: element.closest("[data-id]")?.dataset.id, from: element.selectionStart, to: element.selectionEnd };
      }
    }
    return (fresh) => {
      const found = named(fresh);
      for (const [name, what, value] of set) {
        const element = found.get(name);
        if (element) element[what] = value;
      }
      if (!focus) return;
      const same = found.get(focus.name);
      // What had the focus may be gone; then its card has it, or the whole part, so that Tab goes on from there.
      (same ?? [...found.values()].find((each) => each.dataset.id === focus.of && focus.of) ?? fresh)
        .focus({ preventScroll: true });
      if (same && typeof focus.from === "number") same.setSelectionRange(focus.from, focus.to);
    };
  };
})();
