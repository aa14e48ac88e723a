// Notifications of new cards while nobody looks at the page.
"use strict";
// `say` tells the person something; `show` goes to the card with an id.
const bellOf = (words, say, show) => {
  const KEPT = "signoff-notify";
  let works = "Notification" in window;

  // Browsers on phones have it and throw: there only a service worker may notify.
  function sent(title, facts) {
    try {
      return new Notification(title, facts);
    } catch {
      works = false;
      localStorage.removeItem(KEPT);
      say(words.notify_cannot);
      draw();
      return null;
    }
  }

  const on = () => works && Notification.permission === "granted" && localStorage.getItem(KEPT) === "1";

  function draw() {
    const bell = document.querySelector("[data-notify]");
    if (!bell) return;
    bell.hidden = !works;
    bell.setAttribute("aria-pressed", String(on()));
  }

  function notify(card) {
    if (!on() || !document.hidden || !card) return;
    const { id, headline, place } = card.dataset;
    sent(headline, { body: place, tag: id })?.addEventListener("click", () => {
      window.focus();
      show(id);
    });
  }

  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-notify]")) return;
    if (on()) {
      localStorage.removeItem(KEPT);
      say(words.notify_off);
    } else if (await Notification.requestPermission() !== "granted") {
      say(words.notify_denied);
    } else if (sent(words.notify_on, { tag: KEPT })) {
      // The first one shows that it works here.
      localStorage.setItem(KEPT, "1");
      say(words.notify_on);
    }
    draw();
  });
  return { on, draw, notify };
};
