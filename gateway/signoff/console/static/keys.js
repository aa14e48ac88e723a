// Keys that move between cards and open them. No single key decides.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  const stand = [...document.querySelectorAll("article[data-id]")];
  const at = stand.indexOf(document.activeElement?.closest("article[data-id]"));
  if (event.key === "j" || event.key === "k") {
    const next = stand[event.key === "j" ? Math.min(at + 1, stand.length - 1) : Math.max(at - 1, 0)];
    next?.focus();
    next?.scrollIntoView({ block: "start" });
  } else if (event.key === "Enter" && at >= 0 && document.activeElement === stand[at]) {
    stand[at].querySelector("[data-story]").click();
  } else if (event.key === "w" && at >= 0) {
    const more = stand[at].querySelector("[data-more]");
    if (more) more.open = !more.open;
  } else if (event.key === "?") {
    document.querySelector("[data-keys]")?.showModal();
  } else {
    return;
  }
  event.preventDefault();
});
