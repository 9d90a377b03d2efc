// The page works without this script. With it, the page follows what happens:
// the server sends the rows that have changed, as it would have written them.
(() => {
  "use strict";
  const body = document.body;
  const live = document.getElementById("live");
  const said = document.getElementById("said");
  let ahead = Number(body.dataset.now) - Date.now(); // the server's clock

  // spell writes a duration as the server does.
  function spell(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
  }

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  // times writes the times that depend on now, and those of the day in the
  // time zone of the viewer.
  function times(within) {
    const now = Date.now() + ahead;
    for (const t of within.querySelectorAll("time[data-ago]")) write(t, spell(now - Number(t.dataset.ago)));
    for (const t of within.querySelectorAll("time[data-left]")) write(t, spell(Number(t.dataset.left) - now));
    for (const t of within.querySelectorAll("time[data-clock]")) {
      write(t, new Date(Number(t.dataset.clock)).toLocaleTimeString([], { hour12: false }));
    }
  }

  function fragment(html) {
    const t = document.createElement("template");
    t.innerHTML = html; // the server has escaped it, and no inline script may run
    return t.content;
  }

  // replace puts a new row into the place of an old one, and keeps the focus.
  function replace(old, row) {
    const focused = old.contains(document.activeElement);
    if (old.dataset.mark !== row.dataset.mark) row.classList.add("news");
    old.replaceWith(row);
    if (focused) row.querySelector("a")?.focus();
  }

  function list(id, news, first) {
    const element = document.getElementById(id);
    if (!element) return;
    for (const [key, html] of Object.entries(news.rows || {})) {
      const row = fragment(html).firstElementChild;
      times(row);
      const old = document.getElementById(key);
      if (old && old.parentNode === element) replace(old, row);
      else {
        if (!first) row.classList.add("news");
        element.append(row);
      }
    }
    if (!news.order) return;
    const wanted = new Set(news.order);
    for (const row of [...element.children]) if (!wanted.has(row.id)) row.remove();
    let place = element.firstElementChild;
    for (const key of news.order) {
      const row = document.getElementById(key);
      if (!row) continue;
      if (row === place) place = place.nextElementSibling;
      else element.insertBefore(row, place);
    }
  }

  function text(id, html) {
    const element = document.getElementById(id);
    if (!element) return;
    const content = fragment(html);
    times(content);
    const focused = element.contains(document.activeElement) && document.activeElement.dataset.copy;
    element.replaceChildren(content);
    buttons(element);
    if (focused) element.querySelector("[data-copy]")?.focus();
  }

  // say reads out what has happened, at most every five seconds.
  let quietUntil = 0, unsaid = "", saying = 0;
  function say(what) {
    if (!what) return;
    unsaid = what;
    clearTimeout(saying);
    saying = setTimeout(() => {
      quietUntil = Date.now() + 5000;
      said.textContent = unsaid;
    }, Math.max(0, quietUntil - Date.now()));
  }

  function buttons(within) {
    for (const b of within.querySelectorAll("button[data-copy]")) {
      b.hidden = false;
      b.addEventListener("click", () => copy(b));
    }
  }

  async function copy(button) {
    const code = document.getElementById(button.dataset.copy);
    let done = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code); // no permission: copy what is selected
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    say(button.textContent);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  // off says that the page does not follow. The server says that it does.
  function off(words) {
    const state = document.createElement("span");
    state.className = "off";
    state.textContent = words;
    live.replaceChildren(state);
  }

  let source = null, again = 0, delay = 1000, silent = 0;
  function connect() {
    disconnect();
    let first = true;
    source = new EventSource(body.dataset.events);
    heard();
    source.addEventListener("beat", heard);
    source.onmessage = (e) => {
      heard();
      const m = JSON.parse(e.data);
      ahead = m.now - Date.now();
      for (const [id, html] of Object.entries(m.texts || {})) text(id, html);
      for (const [id, news] of Object.entries(m.lists || {})) list(id, news, first);
      say(m.say);
      first = false;
      delay = 1000;
    };
    source.onerror = () => {
      off("not connected, trying again");
      first = true;
      if (source.readyState === EventSource.CLOSED) { // refused: the browser does not try again
        clearTimeout(silent);
        again = setTimeout(connect, delay);
        delay = Math.min(2 * delay, 30000);
      }
    };
  }
  // The server sends something every 5 s. A connection that is silent for longer may
  // be dead without anybody noticing.
  function heard() {
    clearTimeout(silent);
    silent = setTimeout(() => {
      off("not connected, trying again");
      connect();
    }, 15000);
  }
  function disconnect() {
    clearTimeout(again);
    clearTimeout(silent);
    if (source) source.close();
    source = null;
  }

  // A page that nobody sees does not ask.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      disconnect();
      off("paused");
    } else connect();
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (e) => { if (e.persisted) connect(); });

  // The search follows what is typed.
  const search = document.getElementById("q");
  if (search) {
    let typing = 0;
    const form = search.form;
    const go = () => {
      const query = new URLSearchParams(new FormData(form));
      if (!search.value.trim()) query.delete("q");
      const q = query.toString();
      history.replaceState(null, "", q ? "?" + q : "./");
      body.dataset.events = "events" + (q ? "?" + q : "");
      for (const a of document.querySelectorAll("thead a")) { // sort what was found
        const to = new URL(a.href);
        if (query.has("q")) to.searchParams.set("q", query.get("q"));
        else to.searchParams.delete("q");
        a.href = to;
      }
      connect();
    };
    search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(go, 250);
    });
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      clearTimeout(typing);
      go();
    });
  }

  buttons(document);
  times(document);
  setInterval(() => { if (!document.hidden) times(document); }, 1000);
  if (!document.hidden) connect();
})();
