"use strict";
// Opens programs: what changed against the parent, the program, its facts, logs, prompt and draw.
// Every text is set as text; nothing here makes HTML out of what a program or a log says.
(() => {
  const CONTEXT = 3;      // Equal lines around a change.
  const MOST_EDITS = 1500; // Programs that differ in more lines are shown as replaced as a whole.

  const byId = (id) => document.getElementById(id);
  const detail = byId("detail");
  const panel = byId("panel");
  const tabs = [...detail.querySelectorAll("[role=tab]")];
  const unpacked = new Map();
  let current = null; // {run, data, place, opener, against}
  document.documentElement.classList.add("has-script");

  // ---- texts

  // Characters that are not seen but change what is read are made visible.
  const visible = (text) => text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\u27e8" + c.charCodeAt(0).toString(16) + "\u27e9");

  const element = (name, className, ...children) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children.map((child) => typeof child === "string" ? visible(child) : child));
    return made;
  };

  async function texts(run) {
    if (!unpacked.has(run)) {
      const packed = atob(byId("texts-" + run).textContent.trim());
      const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      const data = JSON.parse(await new Response(stream).text());
      data.nodes.forEach((node) => { node.children = []; });
      data.nodes.forEach((node, place) => {
        for (const parent of node.parents) if (parent.node !== null) data.nodes[parent.node].children.push(place);
      });
      unpacked.set(run, data);
    }
    return unpacked.get(run);
  }

  // ---- differences

  // The shortest edit from one list of numbers to another (Myers), as [kind, place in a, place in b]; kind is "=", "-" or "+".
  function edits(a, b) {
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
    const n = a.length - head - tail;
    const m = b.length - head - tail;
    const result = [];
    for (let i = 0; i < head; i++) result.push(["=", i, i]);
    for (const [kind, i, j] of middle(a, b, head, n, m)) result.push([kind, i, j]);
    for (let i = tail; i > 0; i--) result.push(["=", a.length - i, b.length - i]);
    return result;
  }

  function middle(a, b, from, n, m) {
    const replaced = [];
    for (let i = 0; i < n; i++) replaced.push(["-", from + i, from]);
    for (let j = 0; j < m; j++) replaced.push(["+", from + n, from + j]);
    if (n === 0 || m === 0) return replaced;
    const most = Math.min(n + m, MOST_EDITS);
    const at = new Int32Array(2 * most + 2);
    const rounds = [];
    for (let d = 0; d <= most; d++) {
      rounds.push(at.slice(most - d, most + d + 2));
      for (let k = -d; k <= d; k += 2) {
        const down = k === -d || (k !== d && at[most + k - 1] < at[most + k + 1]);
        let x = down ? at[most + k + 1] : at[most + k - 1] + 1;
        let y = x - k;
        while (x < n && y < m && a[from + x] === b[from + y]) { x++; y++; }
        at[most + k] = x;
        if (x >= n && y >= m) return walk(rounds, d, n, m, from);
      }
    }
    return replaced;
  }

  // The way back from the end, by what each round had reached before.
  function walk(rounds, d, n, m, from) {
    const back = [];
    let [x, y] = [n, m];
    for (; d > 0; d--) {
      const reached = (diagonal) => rounds[d][diagonal + d];
      const k = x - y;
      const down = k === -d || (k !== d && reached(k - 1) < reached(k + 1));
      const previous = down ? k + 1 : k - 1;
      const startX = reached(previous);
      const startY = startX - previous;
      while (x > startX && y > startY) back.push(["=", from + --x, from + --y]);
      back.push(down ? ["+", from + x, from + --y] : ["-", from + --x, from + y]);
    }
    while (x > 0) back.push(["=", from + --x, from + --y]);
    return back.reverse();
  }

  // Where two lines differ: lengths of what they begin and end with alike.
  function ends(a, b) {
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
    return head + tail === 0 ? null : [head, tail];
  }

  // A table of lines, with the widths of its columns: its rows and the whole.
  const source = (...columns) => {
    const rows = element("tbody", "");
    return [rows, element("table", "source", element("colgroup", "", ...columns.map((name) => element("col", name))), rows)];
  };

  const row = (className, ...cells) => element("tr", className, ...cells);
  const number = (value) => element("td", "no", value === "" ? "" : String(value));

  function lineCell(text, marks) {
    const cell = element("td", "");
    if (!marks) { cell.append(...coloured(text)); return cell; }
    const [head, tail] = marks;
    const end = text.length - tail;
    cell.append(visible(text.slice(0, head)), element("mark", "", text.slice(head, end)), visible(text.slice(end)));
    return cell;
  }

  function difference(data, before, after) {
    const [a, b] = [data.programs[before], data.programs[after]];
    const steps = edits(a, b);
    const counts = { "+": 0, "-": 0 };
    const near = new Uint8Array(steps.length);
    steps.forEach(([kind], i) => {
      if (kind === "=") return;
      counts[kind]++;
      near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
    });
    const [table, body] = source("no", "no", "sign", "");
    let skipped = 0;
    const gap = () => {
      if (!skipped) return;
      const cell = element("td", "", `${skipped} equal line${skipped === 1 ? "" : "s"}`);
      cell.colSpan = 4;
      table.append(row("gap", cell));
      skipped = 0;
    };
    for (let i = 0; i < steps.length;) {
      if (!near[i]) { skipped++; i++; continue; }
      gap();
      if (steps[i][0] === "=") {
        const [, x, y] = steps[i++];
        table.append(row("", number(x + 1), number(y + 1), element("td", "sign"), lineCell(data.lines[a[x]])));
        continue;
      }
      const [gone, come] = [[], []];
      for (; i < steps.length && steps[i][0] !== "="; i++) (steps[i][0] === "-" ? gone : come).push(steps[i]);
      const pairs = gone.length === come.length ? gone.map(([, x], at) => ends(data.lines[a[x]], data.lines[b[come[at][2]]])) : [];
      gone.forEach(([, x], at) => table.append(row("cut", number(x + 1), number(""), element("td", "sign", "−"), lineCell(data.lines[a[x]], pairs[at]))));
      come.forEach(([, , y], at) => table.append(row("add", number(""), number(y + 1), element("td", "sign", "+"), lineCell(data.lines[b[y]], pairs[at]))));
    }
    gap();
    return { body, counts };
  }

  // ---- programs

  const TOKENS = /(#.*)|((?:\b[rbfu]{1,2})?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))|\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|False|try|while|with|yield)\b|\b(\d[\w.]*)/g;

  // A line of Python in colours; a line is enough to read by, so strings over several lines have none.
  function coloured(line) {
    const parts = [];
    let from = 0;
    for (const match of line.length > 2000 ? [] : line.matchAll(TOKENS)) {
      parts.push(visible(line.slice(from, match.index)));
      parts.push(element("span", match[1] ? "c" : match[2] ? "s" : match[3] ? "k" : "d", match[0]));
      from = match.index + match[0].length;
    }
    parts.push(visible(line.slice(from)));
    return parts;
  }

  function program(data, place) {
    const [table, body] = source("no", "");
    data.programs[place].forEach((line, at) => table.append(row("", number(at + 1), lineCell(data.lines[line]))));
    return body;
  }

  // ---- the panel

  function link(data, place, id) {
    if (place === null) return element("span", "id", id.slice(0, 10));
    const node = data.nodes[place];
    const button = element("button", "op " + kind(node.operator), `step ${node.step}`);
    button.type = "button";
    button.title = `${node.operator} · ${node.outcome}`;
    button.addEventListener("click", () => open(current.run, place));
    return button;
  }

  const kind = (operator) => ["draft", "improve", "debug", "crossover"].includes(operator) ? operator : "other";

  function change(data, node) {
    const found = [];
    if (node.program === null) {
      found.push(element("p", "hint", "The reply of the model held no program."));
      return found;
    }
    const first = data.nodes.findIndex((other) => other.program !== null && !other.failed);
    const best = current.best;
    const choices = node.parents.filter((parent) => parent.node !== null).map((parent) => [parent.node, parent.role]);
    if (first >= 0) choices.push([first, "first program with a score"]);
    if (best !== null) choices.push([best, "best program"]);
    const usable = choices.filter(([place], at) => place !== current.place && data.nodes[place].program !== null
      && choices.findIndex(([other]) => other === place) === at);
    if (!usable.length) {
      found.push(element("p", "hint", node.parents.length ? "Its parent is not on this page." : "It was written from nothing."));
      found.push(program(data, node.program));
      return found;
    }
    const select = element("select", "", ...usable.map(([place, role]) => {
      const option = element("option", "", `${role}, step ${data.nodes[place].step} (${data.nodes[place].outcome})`);
      option.value = String(place);
      return option;
    }));
    select.id = "against";
    if (usable.some(([place]) => place === current.against)) select.value = String(current.against);
    select.addEventListener("change", () => { current.against = Number(select.value); show(); byId("against").focus(); });
    const label = element("label", "", "against the ");
    label.append(select);
    const other = data.nodes[Number(select.value)];
    const { body, counts } = difference(data, other.program, node.program);
    const tools = element("div", "tools", label, element("span", "", element("span", "up", `+${counts["+"]}`), " ", element("span", "down", `−${counts["-"]}`), " lines"));
    found.push(tools);
    if (!node.parents.length) tools.append(element("span", "", "It was written from nothing."));
    found.push(counts["+"] + counts["-"] ? body : element("p", "hint", "The programs are equal."));
    return found;
  }

  const pages = {
    change,
    program(data, node) {
      const found = [];
      if (node.plan) found.push(element("h3", "", "Plan"), element("p", "plan", node.plan), element("h3", "", "Program"));
      if (node.program === null) found.push(element("p", "hint", "The reply of the model held no program."));
      else found.push(program(data, node.program));
      if (node.cut) found.push(element("p", "hint", `The program has ${node.cut}; its middle is left out here.`));
      return found;
    },
    facts(data, node) {
      return [element("dl", "", ...node.facts.flatMap(([name, value]) => [element("dt", "", name), element("dd", name === "Node" ? "id" : "", value)]))];
    },
    logs(data, node) {
      const found = node.logs.flatMap(([name, text]) => [element("h3", "", name), element("pre", "", text)]);
      return found.length ? found : [element("p", "hint", "It wrote nothing.")];
    },
    prompt(data, node) {
      if (!node.shown.length) return [element("p", "hint", "The prompt showed no earlier program.")];
      const rows = node.shown.map((shown) => {
        const other = shown.node === null ? null : data.nodes[shown.node];
        return row("", element("td", "", link(data, shown.node, shown.id)), element("td", "", shown.role.replace("_", " ").replace("parent2", "second parent")),
          element("td", "", other ? other.operator : ""), element("td", "n", other ? other.outcome : ""));
      });
      return [element("p", "hint", "Programs that the prompt showed, in its order."), table(["Program", "Shown as", "Made by", "Outcome"], rows)];
    },
    draw(data, node) {
      const draw = node.draw;
      if (!draw) return [element("p", "hint", "No draw of this program is on the page.")];
      const found = [element("h3", "", "Operator"), table(["Operator", "Chance", ""], draw.operators.map(([name, chance, taken]) =>
        row("", element("td", "", element("span", "op " + kind(name), name)), element("td", "n", chance), element("td", "", taken ? "taken" : ""))))];
      if (!draw.candidates.length) return found;
      const most = Math.max(...draw.candidates.map((candidate) => candidate.probability)) || 1;
      found.push(element("h3", "", `Parents: ${draw.count}, effectively ${draw.effective}`), table(["Parent", "Chance", "", ""], draw.candidates.map((candidate) =>
        row(candidate.taken ? "is-best" : "", element("td", "", link(data, candidate.node, candidate.id), ...(candidate.second === null ? [] : [" with ", link(data, candidate.second, "")])),
          element("td", "n", candidate.percent), element("td", "bar-cell", bar(candidate.probability / most)), element("td", "", candidate.taken ? "taken" : "")))));
      if (draw.count > draw.candidates.length) found.push(element("p", "hint", "The likeliest parents and those that were taken."));
      return found;
    },
  };

  function table(heads, rows) {
    const head = element("thead", "", element("tr", "", ...heads.map((text) => element("th", text === "Chance" || text === "Outcome" ? "n" : "", text))));
    return element("table", "", head, element("tbody", "", ...rows));
  }

  function bar(share) {
    const made = byId("bar-template").content.firstElementChild.cloneNode(true);
    made.querySelector(".fill").setAttribute("width", `${(share * 100).toFixed(1)}%`);
    return made;
  }

  function show() {
    const tab = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
    const node = current.data.nodes[current.place];
    panel.setAttribute("aria-labelledby", tab.id);
    panel.replaceChildren(...pages[tab.id.slice(4)](current.data, node));
    panel.scrollTop = 0;
  }

  function choose(tab, focus) {
    tabs.forEach((other) => {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
    });
    if (focus) tab.focus();
    if (current) show();
  }

  const section = (run) => byId("r" + run);
  const lineageLink = (run, place) => section(run).querySelector(`.tree a[data-n="${place}"]`);

  function mark(run, place) {
    document.querySelectorAll(".chosen").forEach((chosen) => chosen.classList.remove("chosen"));
    document.querySelectorAll(".trail").forEach((trail) => trail.setAttribute("d", ""));
    if (place === null) return;
    section(run).querySelectorAll(`circle[data-n="${place}"], .tree a[data-n="${place}"]`).forEach((found) => found.classList.add("chosen"));
    const tree = section(run).querySelector(".tree");
    if (tree) tree.querySelector(".trail").setAttribute("d", trail(tree, current.data, place));
  }

  // The way from the first ancestor, along first parents, in the units of the lines and with their turns.
  function trail(tree, data, place) {
    const points = [];
    for (let at = place; at !== undefined && at !== null;) {
      const circle = tree.querySelector(`a[data-n="${at}"] circle`);
      points.push([parseFloat(circle.getAttribute("cx")) * 10, parseFloat(circle.getAttribute("cy"))]);
      const parent = data.nodes[at].parents.find((parent) => parent.role === "parent");
      at = parent && parent.node !== null && parent.node < at ? parent.node : null;
    }
    const reach = Math.min(1000 / data.nodes[data.nodes.length - 1].step, 40);
    return points.reverse().map(([x, y], place) => {
      if (place === 0) return `M${x} ${y}`;
      const [beforeX, beforeY] = points[place - 1];
      if (beforeY === y) return `H${x}`;
      const turn = Math.max(x - reach, beforeX);
      const middle = (turn + x) / 2;
      return `H${turn}C${middle} ${beforeY} ${middle} ${y} ${x} ${y}`;
    }).join("");
  }

  async function open(run, place, opener) {
    let data;
    try {
      data = await texts(run);
    } catch (error) {
      panel.replaceChildren(element("p", "note", `This browser cannot unpack the programs of the page (${error.message}).`));
      beside(true, opener);
      return;
    }
    const rest = current && current.run === run ? current : { best: bestOf(run), against: null };
    current = { run, data, place, opener: opener || (current && current.opener) || lineageLink(run, place), best: rest.best, against: rest.against };
    const node = data.nodes[place];
    byId("detail-title").replaceChildren(`Step ${node.step} `, element("span", "op " + kind(node.operator), node.operator));
    const gain = node.gain === null ? [] : [" ", element("span", node.sign > 0 ? "up" : node.sign < 0 ? "down" : "muted", `${node.gain} against its parent`)];
    byId("detail-outcome").replaceChildren(element("strong", node.failed ? "down" : "", node.outcome.replaceAll("_", " ")), ...gain, ...(place === current.best ? [" ", element("span", "badge ok", "best")] : []));
    const relatives = node.parents.flatMap((parent) => [parent.role, link(data, parent.node, parent.id)]);
    if (node.children.length) relatives.push(node.children.length === 1 ? "child" : "children", ...node.children.map((child) => link(data, child, "")));
    byId("detail-relatives").replaceChildren(...relatives);
    byId("detail-back").disabled = place === 0;
    byId("detail-on").disabled = place === data.nodes.length - 1;
    const moved = detail.contains(document.activeElement);
    beside(true, opener || lineageLink(run, place));
    mark(run, place);
    show();
    if (!moved || !document.activeElement || document.activeElement === document.body) detail.focus({ preventScroll: true });
    const target = lineageLink(run, place);
    if (target) { roam(target); inView(target); }
  }

  // The page makes room for the panel; what was clicked stays where it is.
  function beside(shown, anchor) {
    const before = anchor ? anchor.getBoundingClientRect().top : 0;
    detail.hidden = !shown;
    document.documentElement.classList.toggle("has-detail", shown);
    const moved = anchor ? anchor.getBoundingClientRect().top - before : 0;
    if (moved) window.scrollBy({ top: moved, behavior: "instant" });
  }

  function bestOf(run) {
    const ring = section(run).querySelector(".tree .ring");
    return ring ? Number(ring.previousElementSibling.dataset.n) : null;
  }

  // Scrolls the lineage, not the page.
  function inView(target) {
    const box = target.closest(".scroll");
    const [outer, inner] = [box.getBoundingClientRect(), target.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 2;
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 2;
  }

  function close() {
    if (detail.hidden) return;
    const opener = current && current.opener;
    beside(false, opener);
    mark(null, null);
    current = null;
    if (opener && opener.focus) opener.focus({ preventScroll: true });
  }

  // ---- events

  // One program of a lineage is in the order of the tab key; the arrow keys move among the others.
  function roam(target) {
    target.closest(".tree").querySelectorAll('a[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", "-1"));
    target.setAttribute("tabindex", "0");
  }

  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = event.target.closest("[data-n]");
    if (!target) return;
    event.preventDefault();
    open(Number(target.closest("[data-run]").dataset.run), Number(target.dataset.n), target.closest("a") || target);
  });

  document.addEventListener("keydown", async (event) => {
    if (event.key === "Escape" && !detail.hidden) { close(); return; }
    const at = event.target.closest && event.target.closest(".tree a[data-n]");
    if (!at || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const run = Number(at.closest("[data-run]").dataset.run);
    const data = await texts(run);
    const place = Number(at.dataset.n);
    const node = data.nodes[place];
    const parent = node.parents.length ? node.parents[0].node : null;
    const next = {
      ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: data.nodes.length - 1,
      ArrowUp: parent, ArrowDown: node.children.length ? node.children[0] : null,
    }[event.key];
    if (next === null || next < 0 || next >= data.nodes.length) return;
    const target = lineageLink(run, next);
    roam(target);
    target.focus({ preventScroll: true });
    inView(target);
  });

  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => choose(tab, false));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(tabs[(to + tabs.length) % tabs.length], true);
    });
  });
  byId("detail-close").addEventListener("click", close);
  byId("detail-back").addEventListener("click", () => open(current.run, current.place - 1));
  byId("detail-on").addEventListener("click", () => open(current.run, current.place + 1));

  // A link to a row in a closed list, or in a closed run, opens it.
  const reveal = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const body = target.querySelector(":scope > details.body");
    if (body) body.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  reveal();
})();
