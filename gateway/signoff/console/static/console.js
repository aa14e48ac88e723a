// The pages work without this: it keeps them fresh, answers in place, counts down, and moves by keys.
"use strict";
(() => {
  const body = document.body;
  const words = JSON.parse(body.dataset.words || "{}");
  const page = body.dataset.page;
  const csrf = body.dataset.csrf;
  const find = (what, from = document) => from.querySelector(what);
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

  // --- this browser ----------------------------------------------------------------------------

  // The cookie goes to every port of the host; what is kept here does not. So forms carry this beside the cookie.
  const BOND = "signoff-bond";

  function bond(make) {
    try {
      let kept = localStorage.getItem(BOND);
      if (!kept && make) {
        kept = [...crypto.getRandomValues(new Uint8Array(32))].map((each) => each.toString(16).padStart(2, "0")).join("");
        localStorage.setItem(BOND, kept);
      }
      return kept || "";
    } catch {
      return "";
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    const field = find("input[name=bond]", form) || document.createElement("input");
    Object.assign(field, { type: "hidden", name: "bond", value: bond(form.matches("[data-enter]")) });
    form.append(field);
  }, { capture: true });
  if (!csrf) return;

  // --- saying things ---------------------------------------------------------------------------

  const said = find("[data-said]");
  const urgent = find("[data-urgent]");

  function say(lines, into = said) {
    into.replaceChildren(...[].concat(lines).map((line) => {
      const part = document.createElement("p");
      part.textContent = line;
      return part;
    }));
  }

  // --- time ------------------------------------------------------------------------------------

  const spoken = new Set();

  function tick() {
    for (const time of all("time[data-left]")) {
      const left = Math.floor((new Date(time.dateTime) - Date.now()) / 1000);
      const card = time.closest("[data-id]");
      if (left < 0) {
        if (time.textContent !== words.expired) {
          time.textContent = words.expired;
          if (card) window.setTimeout(() => refresh(card.dataset.id), 1500);
        }
        continue;
      }
      const two = (number) => String(number).padStart(2, "0");
      const hours = Math.floor(left / 3600);
      const minutes = Math.floor(left / 60) % 60;
      const text = hours ? `${hours}:${two(minutes)}:${two(left % 60)}` : `${minutes}:${two(left % 60)}`;
      time.textContent = fill(words.left, { time: text });
      if (card && left <= 60 && left > 50 && !spoken.has(card.dataset.id)) {
        spoken.add(card.dataset.id);
        say(fill(words.minute_left, { id: card.dataset.short }));
      }
    }
  }

  function zones(from = document) {
    for (const time of all("time[data-clock]", from)) {
      const at = new Date(time.dateTime);
      const today = at.toDateString() === new Date().toDateString();
      const day = at.toLocaleDateString([], { day: "numeric", month: "short" });
      time.title = at.toISOString();
      time.textContent = today ? at.toLocaleTimeString([], { hour12: false }) : `${day} ${clock(at)}`;
    }
  }

  // --- cards -----------------------------------------------------------------------------------

  const cards = find("[data-cards]");
  const index = find("[data-index]");
  const asked = new URLSearchParams(location.search);
  const pages = asked.get("page");

  function parsed(html) {
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    return template.content.firstElementChild;
  }

  const cardOf = (id) => all("article[data-id]").find((card) => card.dataset.id === id);

  function put(told) {
    const fresh = parsed(told.html);
    const old = cardOf(told.id);
    // An answer and a live change may arrive in either order; the newer state stays.
    if (old && Number(old.dataset.version) > Number(fresh.dataset.version)) return;
    if (!old && (!cards || !told.pending || told.fits === false || (pages && pages !== "1"))) return;
    if (old) {
      const open = all("details", old).map((each) => each.open);
      const typed = all("input[name=reason], [name^=field-]", old)
        .map((field) => [field.name, field.value, field.checked]);
      const held = old.contains(document.activeElement);
      const focus = held && document.activeElement !== old ? focusPath(document.activeElement) : null;
      if (told.pending) {
        all("details", fresh).forEach((each, place) => { each.open = Boolean(open[place]); });
        for (const [name, value, ticked] of typed) {
          const fields = all(`[name="${name}"]`, fresh);
          const box = fields.find((each) => each.type === "checkbox" && each.value === value);
          if (box) box.checked = ticked;
          else if (fields[0] && value) fields[0].value = value;
        }
      }
      old.replaceWith(fresh);
      if (held) (focus && find(focus, fresh) || fresh).focus({ preventScroll: true });
    } else {
      cards.insertBefore(fresh, find("[data-empty]", cards));
    }
    if (fresh.dataset.pending === "0" && page === "pending") window.setTimeout(() => drop(fresh), 30000);
    listed(told, fresh);
    tick();
  }

  function focusPath(element) {
    if (element.name && element.value !== undefined && element.tagName === "BUTTON") {
      return `button[name="${CSS.escape(element.name)}"][value="${CSS.escape(element.value)}"]`;
    }
    return element.name ? `input[name="${CSS.escape(element.name)}"]` : null;
  }

  function drop(card) {
    if (!card.isConnected) return;
    if (card.contains(document.activeElement) || card.matches(":hover")) {
      window.setTimeout(() => drop(card), 5000);
      return;
    }
    card.remove();
    empty();
  }

  function empty() {
    const note = cards && find("[data-empty]", cards);
    if (note) note.hidden = Boolean(find("article", cards));
  }

  function listed(told, card) {
    empty();
    if (!index) return;
    const known = find(`a[href="#r-${told.short}"]`, index);
    if (!told.pending) {
      known?.closest("li").remove();
    } else if (!known) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      const tag = document.createElement("span");
      link.href = `#r-${told.short}`;
      tag.className = `tag ${told.severity}`;
      tag.textContent = told.severity;
      link.append(tag, ` ${told.short}`);
      item.append(link);
      index.append(item);
    }
    const form = find("[data-all]");
    if (form) recount(form);
  }

  // What is answered together is what stands on the page, as it stands there.
  function recount(form) {
    all("input[name=listed]", form).forEach((field) => field.remove());
    let runs = 0;
    let approvable = 0;
    for (const card of all("article[data-pending='1']")) {
      const value = (name) => find(`input[name=${name}]`, card)?.value ?? "0";
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = "listed";
      field.value = `${card.dataset.id} ${value("digest")} ${value("counted")} ${value("upto")}`;
      form.append(field);
      const count = 1 + Number(value("counted"));
      runs += count;
      if (!("singly" in card.dataset)) approvable += count;
    }
    form.hidden = runs < 2;
    for (const [choice, count] of [["once", approvable], ["deny", runs]]) {
      const button = find(`button[value=${choice}]`, form);
      if (!button) continue;
      button.hidden = !count;
      button.textContent = button.textContent.replace(/[\d,]+/, count.toLocaleString("en"));
    }
  }

  async function refresh(id) {
    const answer = await fetch(`/console/card/${encodeURIComponent(id)}`);
    if (!answer.ok) return;
    const html = await answer.text();
    const fresh = parsed(html);
    put({
      id, html, short: fresh.dataset.short, severity: fresh.dataset.severity, pending: fresh.dataset.pending === "1",
    });
  }

  function counted(count) {
    for (const each of all("[data-count]")) each.textContent = count.toLocaleString("en");
    for (const each of all("[data-waiting]")) each.textContent = each.textContent.replace(/[\d,]+/, count.toLocaleString("en"));
    document.title = document.title.replace(/^(\(\d+\) )?/, count ? `(${count}) ` : "");
  }

  // --- forms -----------------------------------------------------------------------------------

  const step = find("[data-step]");
  const sentBy = new WeakMap();

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("[data-answer], [data-all]") || !window.fetch) return;
    event.preventDefault();
    if (body.classList.contains("cut") || sentBy.get(form)) return;
    sentBy.set(form, true);
    const data = new URLSearchParams(new FormData(form));
    if (event.submitter?.name) data.set(event.submitter.name, event.submitter.value);
    all("button", form).forEach((button) => { button.setAttribute("aria-disabled", "true"); });
    try {
      const answer = await fetch(form.getAttribute("action"), {
        method: "POST", body: data, headers: { Accept: "application/json" },
      });
      answered(await answer.json(), answer.status);
    } catch {
      say(words.not_sent, urgent);
      say(words.not_sent);
    }
    sentBy.delete(form);
    all("button", form).forEach((button) => { button.removeAttribute("aria-disabled"); });
  });

  function answered(told, status) {
    if (told.how === "confirm" || told.how === "shown") {
      step.replaceChildren(parsed(told.html));
      if (!step.open) step.showModal();
      find("[data-close]", step).focus();
      return;
    }
    if (told.how === "away") {
      location.href = told.to;
      return;
    }
    if (step.open) step.close();
    if (status === 401) {
      say(words.logged_out);
      location.href = `/console/login?next=${encodeURIComponent(location.pathname)}`;
      return;
    }
    say([told.text, ...(told.lines || [])]);
    if (told.html) put(told);
    if (page !== "pending") again();
  }

  // What stood in it is gone with it, an exact text above all; the story tells that it was shown.
  step?.addEventListener("close", () => {
    const shown = !find("form", step);
    step.replaceChildren();
    if (shown) again();
  });

  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close && step.open) {
      event.preventDefault();
      step.close();
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      navigator.clipboard?.writeText(new URL(copy.dataset.copy, location.href).href).then(() => say(words.copied));
    }
    if (event.target.closest("[data-help]")) find("[data-keys]").showModal();
  });

  // --- what changes ----------------------------------------------------------------------------

  const lost = find("[data-lost]");
  let source = null;
  let last = body.dataset.seq;
  let cutAt = null;
  let timer = 0;
  let pause = 1000;

  function connect() {
    window.clearTimeout(timer);
    source?.close();
    const kind = page === "pending" ? "cards" : "touch";
    const wanted = new URLSearchParams({ kind, after: last });
    for (const name of ["place", "session"]) if (asked.get(name)) wanted.set(name, asked.get(name));
    source = new EventSource(`/console/events?${wanted}`);
    source.addEventListener("open", () => back());
    source.addEventListener("error", () => cut());
    source.addEventListener("card", (event) => card(JSON.parse(event.data)));
    source.addEventListener("count", (event) => { seen(event); counted(JSON.parse(event.data).count); });
    source.addEventListener("touch", (event) => { seen(event); touched(JSON.parse(event.data)); });
    source.addEventListener("reload", () => again());
    source.addEventListener("over", () => cut());
  }

  function seen(event) {
    if (event.lastEventId) last = event.lastEventId;
  }

  function back() {
    pause = 1000;
    if (cutAt === null) return;
    cutAt = null;
    body.classList.remove("cut");
    lost.replaceChildren();
    say(words.back);
  }

  async function cut() {
    if (cutAt === null && !document.hidden) {
      cutAt = new Date();
      body.classList.add("cut");
      say(fill(words.lost, { time: clock(cutAt) }), lost);
    }
    source.close();
    window.clearTimeout(timer);
    timer = window.setTimeout(retry, pause);
    pause = Math.min(pause * 1.5, 5000);
  }

  // The stream says nothing of why it was refused, so a page is asked first.
  async function retry() {
    try {
      const answer = await fetch("/console/here", { headers: { Accept: "application/json" } });
      if (answer.status === 401) {
        say(words.logged_out, lost);
        return;
      }
      if (answer.status < 500) {
        connect();
        return;
      }
    } catch {
      // It is still away.
    }
    cut();
  }

  function card(told) {
    const known = cardOf(told.id);
    if (known && !told.pending && known.dataset.pending === "0" && known.outerHTML === told.html) return;
    const before = known?.dataset.pending;
    put(told);
    if (told.pending && before === undefined && cards && told.fits !== false) {
      say(told.said, told.severity === "critical" ? urgent : said);
      notify(told);
    } else if (!told.pending && before === "1") {
      say(told.said);
    }
  }

  let waiting = 0;

  function touched(told) {
    counted(told.count);
    const about = body.dataset.about;
    if (page === "confirm" || page === "revealed" || (about && !told.ids.includes(about))) return;
    if (!about && !concerns(told.kinds)) return;
    window.clearTimeout(waiting);
    waiting = window.setTimeout(again, 400);
  }

  function concerns(kinds) {
    const wanted = {
      history: /^approval\.(resolved|execution)/, sessions: /^(session|turn|approval|grant)\./,
      grants: /^(grant|session)\./, health: /^(adapter|drill)\./, drill: /^drill\./,
      staged: /^approval\./, 'catch-up': /^approval\.(resolved|ask_again)/,
    }[page];
    return Boolean(wanted) && kinds.some((kind) => wanted.test(kind));
  }

  // Draw the page anew without leaving it; whoever is typing is left alone.
  async function again() {
    const main = find("[data-main]");
    // What was judged is of the form that was sent, and of no address.
    if (page === "try") return;
    if (document.activeElement?.matches("input, select") && main.contains(document.activeElement)) return;
    if (page === "history" && new URLSearchParams(location.search).get("before")) return;
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = find("[data-main]", next);
    if (!fresh) return;
    last = next.body.dataset.seq;
    const focus = document.activeElement && main.contains(document.activeElement) ? document.activeElement.id : "";
    const open = new Set(all("details[open]", main).map((each) => place(each)));
    main.replaceChildren(...fresh.childNodes);
    all("details", main).forEach((each) => { if (open.has(place(each))) each.open = true; });
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
    ready(main);
  }

  const place = (each) => `${each.closest("[data-id]")?.dataset.id}/${all("details", each.parentElement).indexOf(each)}`;

  // A hidden page that notifies nobody lets go of its connection: a browser has few of them for one host.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      if (!notifying()) {
        window.clearTimeout(timer);
        source?.close();
      }
    } else if (!source || source.readyState === EventSource.CLOSED) {
      connect();
    }
  });
  window.addEventListener("pagehide", () => source?.close());

  // --- notifications ---------------------------------------------------------------------------

  const bell = find("[data-notify]");
  const KEPT = "signoff-notify";

  function notifying() {
    return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(KEPT) === "1";
  }

  function notify(told) {
    if (!notifying() || !document.hidden) return;
    const about = cardOf(told.id);
    if (!about) return;
    const note = new Notification(about.dataset.headline, { body: about.dataset.place, tag: told.id });
    note.addEventListener("click", () => {
      window.focus();
      cardOf(told.id)?.focus();
    });
  }

  function ringing() {
    if (!bell || !("Notification" in window)) return;
    bell.hidden = false;
    bell.setAttribute("aria-pressed", String(notifying()));
  }

  bell?.addEventListener("click", async () => {
    if (notifying()) {
      localStorage.removeItem(KEPT);
      say(words.notify_off);
    } else if (await Notification.requestPermission() === "granted") {
      localStorage.setItem(KEPT, "1");
      say(words.notify_on);
    } else {
      say(words.notify_denied);
    }
    ringing();
  });

  // --- keys ------------------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, dialog")) return;
    const stand = all("article[data-id]");
    const at = stand.indexOf(document.activeElement?.closest("article[data-id]"));
    if (event.key === "j" || event.key === "k") {
      const next = stand[event.key === "j" ? Math.min(at + 1, stand.length - 1) : Math.max(at - 1, 0)];
      next?.focus();
      next?.scrollIntoView({ block: "start" });
    } else if (event.key === "Enter" && at >= 0 && document.activeElement === stand[at]) {
      find("[data-story]", stand[at]).click();
    } else if (event.key === "w" && at >= 0) {
      const more = find("[data-more]", stand[at]);
      if (more) more.open = !more.open;
    } else if (event.key === "?") {
      find("[data-keys]").showModal();
    } else {
      return;
    }
    event.preventDefault();
  });

  // --- begin -----------------------------------------------------------------------------------

  let soonAgain = 0;

  function ready(from) {
    zones(from);
    tick();
    all("[data-copy], [data-help]").forEach((each) => { each.hidden = false; });
    const soon = find("[data-again]", from);
    window.clearTimeout(soonAgain);
    if (soon) soonAgain = window.setTimeout(again, Number(soon.dataset.again) * 1000);
    if (page === "pending") {
      for (const each of all("article[data-pending='0']")) window.setTimeout(() => drop(each), 30000);
    }
  }

  ready(document);
  ringing();
  window.setInterval(tick, 1000);
  if (page !== "confirm" && page !== "revealed") connect();
})();
