// Times by the gateway's clock, told in the reader's zone.
"use strict";
const times = (() => {
  const all = (what, from) => [...from.querySelectorAll(what)];
  // By how much this browser's clock is ahead of the gateway's, in ms.
  let ahead = 0;
  const now = () => Date.now() - ahead;
  const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  // The gateway's clock showed `then` when this browser's showed `at`, in ms.
  function set(then, at) {
    ahead = at - new Date(then);
  }

  function moment(at, today) {
    const day = at.toLocaleDateString([], { day: "numeric", month: "short" });
    return at.toDateString() === new Date(now()).toDateString() ? today : `${day} ${clock(at)}`;
  }

  // Times are written in UTC; here all are told in the reader's zone.
  function zones(from) {
    for (const time of all("time[data-clock]", from)) {
      const at = new Date(time.dateTime);
      time.title = at.toISOString();
      time.textContent = moment(at, at.toLocaleTimeString([], { hourCycle: "h23" }));
    }
    for (const told of all("[data-told]", from)) {
      const text = told.textContent.replace(/(?:(\d+ [A-Z][a-z]+)(?: (\d{4}))? )?(\d\d:\d\d) UTC/g, (whole, day, year, time) => {
        const [, , month, of] = new Date(now()).toUTCString().replace(/,/g, "").split(" ");
        const date = day ? `${day} ${year ?? of}` : `${new Date(now()).getUTCDate()} ${month} ${of}`;
        const at = new Date(`${date} ${time} UTC`);
        return Number.isNaN(at.valueOf()) ? whole : moment(at, clock(at));
      });
      if (text !== told.textContent) Object.assign(told, { title: told.textContent, textContent: text });
    }
  }

  return { now, clock, set, zones };
})();
