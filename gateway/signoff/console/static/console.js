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
  const { now, clock, zones } = times;

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
  let faded = 0;

  function say(lines, into = said) {
    if (into === said) {
      // It stays in sight for a while, wherever on the page somebody is; then it stands on top.
      said.classList.add("fresh");
      window.clearTimeout(faded);
      faded = window.setTimeout(() => said.classList.remove("fresh"), 20000);
    }
    into.replaceChildren(...[].concat(lines).map((line) => {
      const part = document.createElement("p");
      part.textContent = line;
      return part;
    }));
  }

  // --- time ------------------------------------------------------------------------------------

  const spoken = new Set();
  const overdue = new Set();
  // The page came when the gateway wrote its time into it, or little later.
  const [loaded] = performance.getEntriesByType("navigation");
  times.set(body.dataset.now, Date.now() - performance.now() + (loaded?.responseStart ?? 0));

  function tick() {
    for (const time of all("time[data-left]")) {
      const left = Math.floor((new Date(time.dateTime) - now()) / 1000);
      const card = time.closest("[data-id]");
      if (left < 0) {
        if (time.textContent !== words.expired) time.textContent = words.expired;
        const end = `${card?.dataset.id} ${time.dateTime}`;
        if (card && !overdue.has(end)) {
          overdue.add(end);
          window.setTimeout(() => refresh(card.dataset.id), 1500);
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

  // --- cards -----------------------------------------------------------------------------------

  // Looked up at each use: a page that is drawn anew has others.
  const cardsOf = () => find("[data-cards]");
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
    zones(fresh);
    const old = cardOf(told.id);
    // An answer and a live change may arrive in either order; the newer state stays.
    if (old && Number(old.dataset.version) > Number(fresh.dataset.version)) return;
    const cards = cardsOf();
    if (!old && (!cards || !told.pending || told.fits === false || (pages && pages !== "1"))) return;
    if (old) {
      const restore = keeping(old);
      old.replaceWith(fresh);
      restore(fresh);
    } else {
      cards.insertBefore(fresh, find("[data-empty]", cards));
    }
    if (fresh.dataset.pending === "0" && page === "pending") window.setTimeout(() => drop(fresh), 30000);
    listed(told, fresh);
    tick();
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
    const cards = cardsOf();
    const note = cards && find("[data-empty]", cards);
    if (note) note.hidden = Boolean(find("article", cards));
  }

  function listed(told, card) {
    empty();
    const index = find("[data-index]");
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
    // What the page shows of platforms that do not work, which no event tells of.
    wanted.set("troubles", find("[data-troubles]")?.dataset.troubles ?? "");
    for (const name of ["place", "session"]) if (asked.get(name)) wanted.set(name, asked.get(name));
    source = new EventSource(`/console/events?${wanted}`);
    source.addEventListener("open", () => back());
    source.addEventListener("error", () => cut());
    source.addEventListener("card", (event) => heard(() => card(JSON.parse(event.data))));
    source.addEventListener("count", (event) => { seen(event); heard(() => counted(JSON.parse(event.data).count)); });
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
    if (told.pending && before === undefined && cardsOf() && told.fits !== false) {
      say(told.said, told.severity === "critical" ? urgent : said);
      bell.notify(cardOf(told.id));
    } else if (!told.pending && before === "1") {
      say(told.said);
    }
  }

  function touched(told) {
    counted(told.count);
    const about = body.dataset.about;
    if (about ? told.ids.length < 100 && !told.ids.includes(about) : !concerns(told.kinds)) return;
    soon();
  }

  function concerns(kinds) {
    const wanted = {
      history: /^approval\.(resolved|execution)/, sessions: /^(session|turn|approval|grant)\./,
      grants: /^(grant|session)\./, health: /^(adapter|drill)\./, drill: /^drill\./,
      staged: /^approval\./, 'catch-up': /^approval\.(resolved|ask_again)/,
    }[page];
    return Boolean(wanted) && kinds.some((kind) => wanted.test(kind));
  }

  // --- drawing the page anew -------------------------------------------------------------------

  let due = 0;
  let owed = false;
  let pressed = false;
  let meanwhile = null;

  // Not put off by what follows, or a page on which something always happens would never change.
  function soon() {
    due ||= window.setTimeout(() => { due = 0; again(); }, 400);
  }

  // Whoever types or presses is left alone; the page changes once they are done.
  const busy = () => pressed || find("dialog[open]") !== null
    || (document.activeElement?.matches("input, select, textarea") && find("[data-main]").contains(document.activeElement));

  function settled() {
    if (owed && !busy()) soon();
  }

  document.addEventListener("pointerdown", () => { pressed = true; });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => { pressed = false; settled(); });
  }
  for (const end of ["focusout", "close"]) document.addEventListener(end, () => window.setTimeout(settled), true);

  // What comes while the page is fetched may be missing in it, and is done once more.
  function heard(tell) {
    tell();
    meanwhile?.push(tell);
  }

  async function again() {
    // What was judged or shown is of the form that was sent, and of no address.
    if (["try", "confirm", "revealed"].includes(page) || (page === "history" && asked.get("before"))) return;
    owed = busy() || meanwhile !== null;
    if (owed) return;
    meanwhile = [];
    try {
      await drawn();
    } catch {
      // The gateway is away; the stream says so, and tells what changed once it is back.
    }
    meanwhile = null;
    settled();
    later();
  }

  async function drawn() {
    const answer = await fetch(location.href);
    const at = Date.now();
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = find("[data-main]", next);
    if (!answer.ok || !fresh) return;
    if (busy()) {
      owed = true;
      return;
    }
    const main = find("[data-main]");
    const restore = keeping(main);
    last = next.body.dataset.seq;
    times.set(next.body.dataset.now, at);
    main.replaceChildren(...fresh.childNodes);
    restore(main);
    counted(Number(find("[data-count]", next).textContent));
    ready(main);
    meanwhile.forEach((tell) => tell());
  }

  // A hidden page that notifies nobody lets go of its connection: a browser has few of them for one host.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      if (!bell.on()) {
        window.clearTimeout(timer);
        source?.close();
      }
      return;
    }
    if (!source || source.readyState === EventSource.CLOSED) connect();
    if (find("[data-again]")) soon();
  });
  window.addEventListener("pagehide", () => source?.close());

  const bell = bellOf(words, say, (id) => cardOf(id)?.focus());

  // --- begin -----------------------------------------------------------------------------------

  let timed = 0;

  // What no event tells of is asked for after a while.
  function later() {
    const wait_s = Number(find("[data-again]")?.dataset.again);
    window.clearTimeout(timed);
    if (wait_s) timed = window.setTimeout(() => { if (!document.hidden) again(); }, wait_s * 1000);
  }

  function ready(from) {
    zones(from);
    tick();
    bell.draw();
    all("[data-copy], [data-help]").forEach((each) => { each.hidden = false; });
    if (page === "pending") {
      for (const each of all("article[data-pending='0']")) window.setTimeout(() => drop(each), 30000);
    }
  }

  ready(document);
  later();
  window.setInterval(tick, 1000);
  if (page !== "confirm" && page !== "revealed") connect();
})();
