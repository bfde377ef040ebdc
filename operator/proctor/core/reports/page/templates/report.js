// The page is whole without this script but for the cells' trajectories: it unpacks those, sorts, filters and opens.
// Text of others reaches the page as text nodes only; the page's policy forbids every way to make markup of a string.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  const add = (node, children) => {
    for (const child of children.flat()) {
      if (child !== null && child !== undefined && child !== "") node.append(child);
    }
    return node;
  };
  const el = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return add(node, children);
  };
  const svg = (tag, attributes, ...children) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
    return add(node, children);
  };

  // Theme: the system's, until somebody says otherwise.
  const themes = ["system", "light", "dark"];
  const theme = byId("theme");
  const setTheme = (name) => {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    byId("theme-name").textContent = name;
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = themes.indexOf(byId("theme-name").textContent);
    setTheme(themes[(now + 1) % themes.length]);
  });

  if (typeof DecompressionStream === "undefined") {
    byId("cells").after(el("p", { class: "note" }, "This browser can't unpack the trajectories; use proctor show."));
    return;
  }

  const unpack = async (id) => {
    const packed = Uint8Array.from(atob(byId(id).textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };
  const shards = new Map();
  const fetchShard = (number) => {
    if (!shards.has(number)) shards.set(number, unpack(`shard-${number}`));
    return shards.get(number);
  };

  // Numbers.
  const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
  const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);
  const count = (n) => n.toLocaleString("en");

  // One cell.
  const body = (shown, command) => {
    const text = el("pre", { tabindex: "0" }, shown.text);
    if (shown.of === undefined) return [text];
    const mark = shown.text
      ? `Cut: these are the first ${count([...shown.text].length)} signs of ${bytes(shown.of)}. The whole: `
      : `Left out to keep this page small: ${bytes(shown.of)}. The whole: `;
    const note = el("p", { class: "cut-mark" }, mark, el("code", {}, command));
    return shown.text ? [text, note] : [note];
  };
  const folded = (title, shown, command, open) => {
    const box = el("details", {}, el("summary", {}, title), body(shown, command));
    box.open = open;
    return box;
  };
  const titles = {
    attempt_opened: "Attempt opened", brief_read: "Brief read", tools_listed: "Tools listed", answer: "Answer sent",
    attempt_ended: "Attempt ended", denied: "Denied", mcp_message: "MCP", model_call: "Model", tool_call: "Tool",
  };
  const whose = {
    agent_error: "the agent's mistake", server_error: "the server's failure", infra_error: "infrastructure failed",
    denied: "denied",
  };
  const spanOf = (event, total) => {
    const start = (140 * event.at) / total;
    const width = Math.max(1.5, (140 * event.ms) / total);
    return svg("svg", { class: "span", viewBox: "0 0 140 8", width: 140, height: 8, "aria-hidden": "true" },
      svg("rect", { class: "track", x: 0, y: 3.5, width: 140, height: 1 }),
      svg("rect", { class: "part", x: Math.min(start, 138.5), y: 0, width: Math.min(width, 140 - Math.min(start, 138.5)), height: 8, rx: 1 }));
  };
  const eventItem = (event, total, command) => {
    const facts = [seconds(event.ms)];
    if (event.waited) facts.push(`+ ${seconds(event.waited)} waiting`);
    if (event.bytes !== undefined) facts.push(bytes(event.bytes));
    if (event.in !== undefined) facts.push(`${count(event.in)} in, ${count(event.out)} out`);
    if (event.usd !== undefined) facts.push(`$${event.usd}`);
    if (event.calls && event.calls.length) facts.push(`asks for ${event.calls.join(", ")}`);
    if (event.retry) facts.push(`repeated ${event.retry}×`);
    const title = event.turn ? `Turn ${event.turn}` : titles[event.kind] || event.kind;
    const what = el("span", { class: "what" }, title, event.name ? " " : "", event.name ? el("span", { class: "mono" }, event.name) : "");
    const head = el("div", { class: "event-head" },
      el("span", { class: "at" }, `+${(event.at / 1000).toFixed(2)} s`), what,
      el("span", { class: "facts" }, facts.join(" · ")),
      event.status ? el("span", { class: "failure" }, `✗ ${whose[event.status] || event.status}${event.error ? `: ${event.error}` : ""}`) : "",
      spanOf(event, total));
    const item = el("li", { class: event.status ? `${event.kind} failed` : event.kind }, head);
    if (event.asked) add(item, body(event.asked, command));
    if (event.kind === "model_call") {
      if (event.said) add(item, body(event.said, command));
    } else if (event.said) {
      const short = event.said.text.length < 1200 || event.status;
      add(item, [folded(event.status ? "Error" : "Result", event.said, command, Boolean(short))]);
    }
    return item;
  };
  const markItem = (mark) => {
    const judged = mark.score !== undefined;
    const sign = judged
      ? el("span", {}, `${mark.score} of 5`)
      : el("span", { class: mark.met ? "met" : "unmet" }, mark.polarity === "negative" ? (mark.met ? "✓ avoided" : "✗ blamed") : mark.met ? "✓ met" : "✗ not met");
    const votes = judged && mark.votes.length > 1 ? `, votes ${mark.votes.join(" ")}` : "";
    return el("li", {}, sign,
      el("span", { class: "mono" }, mark.id, " ", el("span", { class: "weight" }, `${judged ? "judge" : "check"}, weight ${mark.weight}${votes}`)),
      el("span", {}, mark.why));
  };
  const describe = (cell, run) => {
    const command = `proctor show ${run} ${cell.cell} --full`;
    const heading = el("h3", { tabindex: "-1" }, cell.cell);
    const box = el("section", { class: "cell", "aria-label": `Cell ${cell.cell}` },
      el("div", { class: "cell-head" }, heading, el("code", {}, command)),
      el("dl", { class: "pairs" }, cell.facts.map(([label, value]) =>
        el("div", value.length > 40 ? { class: "wide" } : {}, el("dt", {}, label), el("dd", {}, value)))));
    if (cell.others.length) {
      add(box, [el("div", {}, el("h4", {}, "Other attempts"), el("ul", {}, cell.others.map((line) => el("li", {}, line))))]);
    }
    add(box, [el("div", {}, el("h4", {}, "Marks"), el("p", { class: "grade" }, cell.grade),
      cell.marks.length ? el("ul", { class: "marks" }, cell.marks.map(markItem)) : "")]);
    if (cell.events.length) {
      add(box, [el("div", {}, el("h4", {}, `Answer${cell.answered ? `, ${cell.answered}` : ""}`),
        cell.answer ? body(cell.answer, command) : el("p", { class: "muted" }, "None was given."))]);
      add(box, [el("div", {}, el("h4", {}, "Trajectory"),
        el("ol", { class: "trail" }, cell.events.map((event) => eventItem(event, cell.span, command))),
        cell.left ? el("p", { class: "cut-mark" }, `${count(cell.left)} more events: `, el("code", {}, command)) : "")]);
    } else {
      add(box, [el("p", { class: "muted" }, "No trajectory of this cell is stored.")]);
    }
    return box;
  };

  // The table of cells.
  const start = (index) => {
    const table = byId("cell-table");
    const rows = [...table.tBodies[0].rows];
    const state = { key: "", down: false };
    const columns = table.tHead.rows[0].cells.length;

    const close = (row) => {
      row.button.setAttribute("aria-expanded", "false");
      if (row.detail) row.detail.hidden = true;
    };
    const open = async (row) => {
      row.button.setAttribute("aria-expanded", "true");
      if (!row.detail) {
        const holder = el("td", { colspan: String(columns) });
        row.detail = el("tr", { class: "detail", id: `detail-${row.n}` }, holder);
        row.tr.after(row.detail);
        const cells = await fetchShard(Math.floor(row.cell.place / index.perShard));
        holder.append(describe(cells[row.cell.place % index.perShard], index.run));
        row.button.setAttribute("aria-controls", `detail-${row.n}`);
      }
      row.detail.hidden = false;
      try {
        history.replaceState(null, "", `#cell=${encodeURIComponent(row.cell.key)}`);
      } catch { /* an address that can't change is no loss */ }
    };
    const toggle = (row) => (row.button.getAttribute("aria-expanded") === "true" ? close(row) : open(row));

    const entries = rows.map((tr) => {
      const n = Number(tr.dataset.n);
      const name = tr.cells[0].firstElementChild;
      const button = el("button", { type: "button", class: "toggle", "aria-expanded": "false" }, name.textContent);
      name.replaceWith(button);
      const row = { n, tr, button, cell: index.cells[n], detail: null };
      button.addEventListener("click", () => toggle(row));
      return row;
    });
    const byButton = new Map(entries.map((row) => [row.button, row]));

    const fields = { text: byId("f-text"), scenario: byId("f-scenario"), arm: byId("f-arm"), ended: byId("f-ended"), score: byId("f-score") };
    for (const name of ["scenario", "arm", "ended"]) {
      for (const value of new Set(index.cells.map((cell) => cell[name]))) fields[name].append(el("option", { value }, value));
    }
    const scoreFits = (score, wanted) => {
      if (!wanted) return true;
      if (score === null) return wanted === "none";
      return wanted === (score < 0.7 ? "low" : "high");
    };
    const fits = (cell) =>
      cell.key.toLowerCase().includes(fields.text.value.trim().toLowerCase()) &&
      ["scenario", "arm", "ended"].every((name) => !fields[name].value || cell[name] === fields[name].value) &&
      scoreFits(cell.score, fields.score.value);
    const filter = () => {
      let shown = 0;
      for (const row of entries) {
        const fit = fits(row.cell);
        row.tr.hidden = !fit;
        shown += fit;
        if (row.detail) row.detail.hidden = !fit || row.button.getAttribute("aria-expanded") !== "true";
      }
      byId("f-count").textContent = `${count(shown)} of ${count(entries.length)} cells`;
    };
    const compare = (one, other) => {
      const [a, b] = [one.cell[state.key], other.cell[state.key]];
      if (a === null || b === null) return (a === null) - (b === null) || one.n - other.n;
      const order = typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : a - b;
      return (state.down ? -order : order) || one.n - other.n;
    };
    const sort = () => {
      entries.sort(compare);
      const whole = document.createDocumentFragment();
      for (const row of entries) {
        whole.append(row.tr);
        if (row.detail) whole.append(row.detail);
      }
      table.tBodies[0].append(whole);
    };
    for (const th of table.tHead.rows[0].cells) {
      const button = el("button", { type: "button", class: "sort" }, th.textContent);
      th.replaceChildren(button);
      button.addEventListener("click", () => {
        state.down = state.key === th.dataset.sort ? !state.down : false;
        state.key = th.dataset.sort;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        sort();
      });
    }

    table.addEventListener("keydown", (event) => {
      const here = event.target.closest(".detail");
      if (event.key === "Escape") {
        const row = here ? entries.find((each) => each.detail === here) : byButton.get(event.target);
        if (row) {
          close(row);
          row.button.focus();
        }
        return;
      }
      if (!byButton.has(event.target)) return;
      const visible = entries.filter((row) => !row.tr.hidden);
      const at = visible.findIndex((row) => row.button === event.target);
      const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: visible.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      visible[Math.min(Math.max(next, 0), visible.length - 1)]?.button.focus();
    });

    byId("filters").addEventListener("input", filter);
    byId("filters").addEventListener("reset", () => setTimeout(filter));
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const node of document.querySelectorAll(".needs-script")) node.hidden = false;
    filter();

    const follow = async () => {
      if (!location.hash.startsWith("#cell=")) return;
      let wanted = "";
      try {
        wanted = decodeURIComponent(location.hash.slice(6));
      } catch { /* not an address of ours */ }
      const row = entries.find((each) => each.cell.key === wanted);
      if (!row) return;
      byId("filters").reset();
      await open(row);
      row.tr.scrollIntoView();
      row.button.focus({ preventScroll: true });
    };
    addEventListener("hashchange", follow);
    follow();
  };

  unpack("index").then(start);
})();
