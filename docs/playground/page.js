// The page of the playground. All that is decided is decided by the program in
// world.js: this script sends it commands, and shows the state that it answers with.
"use strict";

const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
let state = null;
let playing = true;
let free = { guardOff: false, unchecked: false };

// say sends a command, and shows what becomes of it.
function say(command) {
  const s = JSON.parse(redlatch(JSON.stringify(command)));
  if (s.Failure) {
    $("problem").textContent = "The program failed: " + s.Failure;
    return;
  }
  const before = state;
  state = s;
  if (s.Fresh) build(s);
  show(s, before);
}

function make(tag, attributes, ...inside) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes ?? {})) {
    if (k === "onclick") e.onclick = v;
    else if (v !== undefined) e.setAttribute(k, v);
  }
  e.append(...inside);
  return e;
}

function draw(tag, attributes, parent) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  parent.append(e);
  return e;
}

// text sets a text if it has changed: what is the same must not be announced
// again, nor lose a selection.
function text(e, t) {
  if (e.textContent !== t) e.textContent = t;
}

const color = (client) => `var(--c${client})`;
const number = (name) => state.Clients.findIndex((c) => c.Name === name);
const sec = (s) => s.toFixed(1) + " s";

let parts; // the elements that change

// build makes the elements of a new world.
function build(s) {
  parts = { clients: [], servers: [] };
  $("log").replaceChildren();
  $("clients").replaceChildren(...s.Clients.map(clientCard));
  $("servers").replaceChildren(...s.Servers.map(serverCard));
  if (!$("stories").childElementCount) {
    const all = [{ Name: "", Title: "Free play" }, ...s.Stories];
    $("stories").replaceChildren(...all.map((e) => make("button", { "data-story": e.Name, onclick: () => choose(e.Name) }, e.Title)));
  }
  parts.list = make("ol");
  parts.rule = make("p");
  $("resource").replaceChildren(parts.rule, parts.list);
  layOut();
}

function clientCard(c, i) {
  const act = (what, more) => () => say({ Do: what, Client: i, ...more });
  const p = {
    state: make("p", { class: "fact" }),
    token: make("p", { class: "fact soft num" }),
    bar: make("b", { style: `background: ${color(i)}` }),
    lock: make("button", { onclick: () => act(state.Clients[i].Wants ? "release" : "lock")() }),
    pause: make("button", { onclick: () => act(state.Clients[i].Paused ? "resume" : "pause")() }),
    links: state.Servers.map((srv) => make("button", {
      "aria-pressed": "false", "aria-label": `Cut the link between ${c.Name} and server ${srv.Number}`,
      onclick: () => act(state.Clients[i].Cut[srv.Number - 1] ? "mend" : "cut", { Server: srv.Number })(),
    }, String(srv.Number))),
  };
  parts.clients[i] = p;
  return make("article", { class: "card", "aria-label": c.Name },
    make("h3", {}, make("i", { style: `background: ${color(i)}` }), c.Name), p.state, p.token,
    make("div", { class: "bar" }, p.bar),
    make("p", { class: "row" }, p.lock, p.pause),
    make("p", { class: "links" }, make("span", { class: "soft" }, "cut link"), ...p.links),
    clockButtons(c.Name, "clock-client", { Client: i }));
}

function clockButtons(name, what, more) {
  return make("p", { class: "links" }, make("span", { class: "soft" }, "set clock"), ...[-5, 5].map((by) => make("button", {
    "aria-label": `Set the clock of ${name} by ${by} seconds`, onclick: () => say({ Do: what, By: by, ...more }),
  }, by > 0 ? "+5 s" : "−5 s")));
}

function serverCard(srv, i) {
  const act = (what) => () => say({ Do: what, Server: srv.Number });
  const p = {
    state: make("p", { class: "fact" }),
    token: make("p", { class: "fact soft num" }),
    queue: make("p", { class: "fact soft" }),
    bar: make("b"),
    power: make("button", { onclick: () => act(state.Servers[i].Down ? "start" : "stop")() }),
  };
  parts.servers[i] = p;
  return make("article", { class: "card", "aria-label": "Server " + srv.Number },
    make("h3", {}, "Server " + srv.Number), p.state, p.token, make("div", { class: "bar" }, p.bar), p.queue,
    make("p", { class: "row" }, p.power, make("button", { onclick: act("empty"), "aria-label": `Restart server ${srv.Number} empty` }, "Restart empty")),
    clockButtons("server " + srv.Number, "clock-server", { Server: srv.Number }));
}

// layOut draws the picture for the width that there is.
function layOut() {
  if (!state) return;
  const svg = $("picture"), width = Math.max(300, svg.clientWidth), height = 322;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = height + "px";
  svg.replaceChildren();
  const across = (i, n) => width * (i + .5) / n;
  parts.at = {
    resource: { x: width / 2, y: 24 },
    clients: state.Clients.map((_, i) => ({ x: across(i, state.Clients.length), y: 122 })),
    servers: state.Servers.map((_, i) => ({ x: across(i, state.Servers.length), y: 262 })),
  };
  const { resource, clients, servers } = parts.at;
  const wire = (a, b) => draw("line", { class: "wire", x1: a.x, y1: a.y, x2: b.x, y2: b.y }, svg);
  parts.wires = clients.map((c) => servers.map((s) => wire({ x: c.x, y: c.y + 20 }, { x: s.x, y: s.y - 34 })));
  parts.writes = clients.map((c) => wire({ x: c.x, y: c.y - 42 }, { x: resource.x, y: resource.y + 18 }));
  const box = draw("g", {}, svg);
  draw("rect", { class: "box", x: resource.x - 75, y: 4, width: 150, height: 38, rx: 7 }, box);
  draw("text", { x: resource.x, y: 20, class: "initial" }, box).textContent = "resource";
  parts.highest = draw("text", { x: resource.x, y: 35, class: "small num" }, box);
  parts.circles = clients.map((c, i) => {
    const g = draw("g", {}, svg);
    draw("circle", { class: "ring", cx: c.x, cy: c.y, r: 20, stroke: color(i) }, g);
    draw("text", { class: "initial", x: c.x, y: c.y + 5 }, g).textContent = state.Clients[i].Name[0];
    draw("rect", { x: c.x - 28, y: c.y - 41, width: 56, height: 17, rx: 4, fill: "var(--panel)" }, g);
    return { g, label: draw("text", { class: "small", x: c.x, y: c.y - 28 }, g) };
  });
  const w = Math.min(130, width / 5 - 8);
  parts.boxes = servers.map((s, i) => {
    const g = draw("g", {}, svg);
    draw("rect", { class: "box", x: s.x - w / 2, y: s.y - 34, width: w, height: 62, rx: 7 }, g);
    draw("text", { class: "small", x: s.x, y: s.y - 19 }, g).textContent = w > 100 ? "server " + (i + 1) : i + 1;
    return {
      g, w,
      holder: draw("text", { class: "initial", x: s.x, y: s.y }, g),
      left: draw("text", { class: "small num", x: s.x, y: s.y + 15 }, g),
      bar: draw("rect", { x: s.x - w / 2 + 4, y: s.y + 21, height: 4, rx: 2, width: 0 }, g),
      queue: draw("text", { class: "small", x: s.x, y: s.y + 45 }, g),
    };
  });
  parts.dots = draw("g", {}, svg);
}

// show shows a state.
function show(s, before) {
  showStory(s);
  showActors(s);
  showPicture(s);
  showResource(s);
  text($("clock"), sec(s.Now));
  showVerdict(s);
  if (s.Lines?.length) {
    const log = $("log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(...s.Lines.map((l) => make("li", { class: l.Kind || undefined }, make("time", {}, (l.At / 1e9).toFixed(2) + " s"), make("span", {}, l.Text))));
    while (log.childElementCount > 300) log.firstChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }
}

function showStory(s) {
  const c = s.Story, name = c?.Name ?? "";
  for (const b of $("stories").children) {
    if (b.dataset.story !== name) b.removeAttribute("aria-current");
    else if (!b.hasAttribute("aria-current")) {
      b.setAttribute("aria-current", "true");
      $("stories").scrollLeft = b.offsetLeft - $("stories").offsetLeft - 40;
    }
  }
  $("options").hidden = !!c;
  $("proof").hidden = !c;
  $("next").hidden = !c;
  if (!c) {
    text($("progress"), "");
    text($("title"), "Free play");
    text($("about"), "Clients ask for the lock, work, write to the resource, and release it. Pause a holder, cut links, restart a server empty, set a clock: can you get two holders?");
    text($("say"), "");
    text($("then"), "");
    text($("wrong"), "");
    return;
  }
  text($("progress"), c.At ? `Step ${c.At} of ${c.Steps}` : `${c.Steps} steps`);
  text($("title"), c.Title);
  text($("about"), c.At ? "" : c.About);
  text($("say"), c.Say);
  text($("then"), c.Then);
  $("then").className = c.Bad ? "bad" : "";
  text($("wrong"), c.Wrong && "Not as described: " + c.Wrong);
  const over = c.At === c.Steps && !c.Running;
  text($("next"), !c.At ? "Begin" : c.Running ? "Skip ahead" : over ? "Next story" : "Next");
  text($("test"), `go test -v -run Story/${c.Name} ./internal/test/world`);
}

function showActors(s) {
  s.Clients.forEach((c, i) => {
    const p = parts.clients[i];
    const late = c.Paused && c.Believe && !c.Holds;
    text(p.state, c.Paused ? (late ? "paused; still believes that it holds the lock" : "paused; " + c.State) : c.State);
    text(p.token, (c.Token ? `token ${c.Token}, ${c.Holds ? sec(c.Left) + " left" : "over"}` : "no lease") + (c.Skew ? `; clock ${signed(c.Skew)}` : ""));
    p.bar.style.width = (c.Holds ? 100 * c.Left / s.TTL : 0) + "%";
    text(p.lock, !c.Wants ? "Lock" : c.Believe ? "Release" : "Stop waiting");
    p.lock.disabled = c.Paused;
    text(p.pause, c.Paused ? "Continue" : "Pause");
    p.links.forEach((b, n) => b.setAttribute("aria-pressed", c.Cut[n]));
  });
  s.Servers.forEach((srv, i) => {
    const p = parts.servers[i];
    text(p.state, srv.Down ? "down" : srv.Quarantine > 0 ? `quarantined for ${sec(srv.Quarantine)}` : srv.Quarantine === 0 ? "restarted: grants nothing" : srv.Holder ? `held by ${srv.Holder}` : "free");
    text(p.token, (srv.Holder ? `token ${srv.Token}, ${sec(srv.Left)} left` : "no holder") + (srv.Skew ? `; clock ${signed(srv.Skew)}` : ""));
    p.bar.style.width = (srv.Holder ? 100 * Math.min(1, srv.Left / s.TTL) : 0) + "%";
    p.bar.style.background = srv.Holder ? color(number(srv.Holder)) : "";
    text(p.queue, "queue: " + (srv.Queue?.join(", ") ?? "empty"));
    text(p.power, srv.Down ? "Start" : "Stop");
  });
}

const signed = (s) => (s > 0 ? "+" : "−") + Math.abs(s) + " s";

function showPicture(s) {
  text(parts.highest, !s.Resource.Checks ? "checks nothing" : s.Resource.Highest ? "token " + s.Resource.Highest : "no write yet");
  s.Clients.forEach((c, i) => {
    const p = parts.circles[i];
    p.g.setAttribute("class", [c.Holds && "holds", c.Paused && "paused"].filter(Boolean).join(" "));
    text(p.label, c.Paused ? "paused" : c.Holds ? "has it" : c.Wants ? "waits" : c.Name);
  });
  s.Servers.forEach((srv, i) => {
    const p = parts.boxes[i];
    p.g.setAttribute("class", srv.Down ? "down" : srv.Quarantine >= 0 ? "out" : "");
    const wide = p.w > 100;
    text(p.holder, srv.Down ? (wide ? "down" : "✕") : srv.Holder ? (wide ? srv.Holder : srv.Holder[0]) : "–");
    p.holder.style.fill = srv.Holder && !srv.Down ? color(number(srv.Holder)) : "";
    text(p.left, srv.Down ? "" : srv.Quarantine >= 0 ? (wide ? "quarantine" : "quar.") : srv.Holder ? sec(srv.Left) : "");
    p.bar.setAttribute("width", srv.Holder && !srv.Down ? (p.w - 8) * Math.max(0, Math.min(1, srv.Left / s.TTL)) : 0);
    p.bar.setAttribute("fill", srv.Holder ? color(number(srv.Holder)) : "none");
    text(p.queue, srv.Queue?.length ? (wide ? "queue " : "") + srv.Queue.map((n) => n[0]).join(" ") : "");
    s.Clients.forEach((c, n) => parts.wires[n][i].classList.toggle("cut", c.Cut[i]));
  });
  for (const h of s.Hits ?? []) flash(h.Server < 0 ? parts.writes[h.Client] : parts.wires[h.Client][h.Server], h.Good);
  parts.dots.replaceChildren();
  if (!still.matches && Number($("speed").value) < 1) {
    for (const f of s.Flights ?? []) {
      const line = f.Server < 0 ? parts.writes[f.Client] : parts.wires[f.Client][f.Server];
      const part = f.Back ? 1 - f.Part : f.Part;
      const on = (a, b) => a.baseVal.value + (b.baseVal.value - a.baseVal.value) * part;
      draw("circle", { class: "dot", cx: on(line.x1, line.x2), cy: on(line.y1, line.y2), fill: color(f.Client) }, parts.dots);
    }
  }
  const label = picture(s);
  if ($("picture").getAttribute("aria-label") !== label) $("picture").setAttribute("aria-label", label);
}

// picture says what the picture shows.
function picture(s) {
  const on = s.Clients.map((c) => {
    const where = s.Servers.filter((srv) => srv.Holder === c.Name).map((srv) => srv.Number);
    return where.length ? `${c.Name} is the holder on servers ${where.join(", ")}.` : "";
  });
  const down = s.Servers.filter((srv) => srv.Down).map((srv) => `Server ${srv.Number} is down.`);
  return [`${s.Clients.length} clients, ${s.Servers.length} servers.`, ...on, ...down].filter(Boolean).join(" ");
}

function flash(line, good) {
  const name = good ? "good" : "bad";
  line.classList.add(name);
  clearTimeout(line.fades);
  line.fades = setTimeout(() => line.classList.remove("good", "bad"), 180);
}

function showResource(s) {
  text(parts.rule, s.Resource.Checks ? "It refuses a token below the highest that it has seen." : "It takes every write: it checks no tokens.");
  const rows = []; // writes that are alike, one after the other, are one row
  for (const w of s.Resource.Writes ?? []) {
    const t = `${w.By}, token ${w.Token}: ${w.Accepted ? (w.Stale ? "taken, though stale ✕" : "taken") : "refused ✓"}`;
    if (rows.at(-1)?.text === t) rows.at(-1).times++;
    else rows.push({ text: t, times: 1, class: w.Accepted ? (w.Stale ? "stale" : undefined) : "no" });
  }
  const key = JSON.stringify(rows);
  if (parts.list.dataset.key === key) return;
  parts.list.dataset.key = key;
  parts.list.replaceChildren(...rows.slice(-5).reverse().map((r) => make("li", { class: r.class }, r.text + (r.times > 1 ? `, ${r.times} times` : ""))));
}

function showVerdict(s) {
  const v = $("verdict"), holders = s.Clients.filter((c) => c.Holds).map((c) => c.Name);
  let t = holders.length ? `${holders.join(" and ")} ${holders.length > 1 ? "hold" : "holds"} the lock.` : "Nobody holds the lock.";
  if (s.Two) t = `Two holders at once: ${holders.join(" and ")}.`;
  if (s.Beyond?.length) t += ` Beyond what is promised: ${s.Beyond.join("; ")}.`;
  if (s.Broken?.length) t += ` A promise was broken: ${s.Broken[0]}. Please report this.`;
  if (s.Twice && !s.Two) t += " There were two at once.";
  v.className = s.Two || s.Broken?.length ? "bad" : s.Beyond?.length ? "beyond" : "";
  text(v, t);
}

function open(name) {
  say({ Do: "open", Story: name, GuardOff: free.guardOff, Unchecked: free.unchecked });
  history.replaceState(null, "", name ? "#" + name : location.pathname + location.search);
}

// choose opens a story that was clicked on. On a small screen it is below.
function choose(name) {
  open(name);
  if ($("story").getBoundingClientRect().bottom > innerHeight) $("story").scrollIntoView();
}

function next() {
  const c = state.Story;
  if (c.Running) say({ Do: "finish" });
  else if (c.At < c.Steps) say({ Do: "next" });
  else {
    const all = [...$("stories").children].map((b) => b.dataset.story);
    open(all[(all.indexOf(c.Name) + 1) % all.length]);
  }
  if (!playing) setPlaying(true);
}

function setPlaying(on) {
  playing = on;
  text($("play"), on ? "Stop time" : "Go on");
}

// Time passes with the frames of the browser; with reduced motion twice a second.
let last = 0;
function frame(now) {
  requestAnimationFrame(frame);
  const least = still.matches ? 500 : 33;
  if (now - last < least) return;
  const passed = Math.min(now - last, 2 * least) / 1000;
  last = now;
  const waits = state.Story && !state.Story.Running;
  if (playing && !waits && !document.hidden) say({ Do: "run", By: passed * Number($("speed").value) });
}

globalThis.ready = () => {
  $("next").onclick = next;
  $("again").onclick = () => open(state.Story?.Name ?? "");
  $("play").onclick = () => setPlaying(!playing);
  $("step").onclick = () => { setPlaying(false); say({ Do: "step" }); };
  $("guard").onchange = (e) => { free.guardOff = !e.target.checked; open(""); };
  $("checks").onchange = (e) => { free.unchecked = !e.target.checked; open(""); };
  const motion = () => document.documentElement.classList.toggle("still", still.matches);
  still.addEventListener("change", motion);
  motion();
  document.querySelector("main").hidden = false;
  open(location.hash ? location.hash.slice(1) : "paused");
  new ResizeObserver(() => { layOut(); showPicture(state); }).observe($("stage"));
  requestAnimationFrame(frame);
};

async function begin() {
  if (!globalThis.Go || !globalThis.worldProgram) throw new Error("The program is missing. Run make playground, and open build/playground/index.html.");
  const packed = Uint8Array.from(atob(worldProgram), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const go = new Go();
  const { instance } = await WebAssembly.instantiate(await new Response(plain).arrayBuffer(), go.importObject);
  await go.run(instance);
  throw new Error("The program has stopped.");
}
begin().catch((err) => { $("problem").textContent = err.message; });
