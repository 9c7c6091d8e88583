"use strict";
// Draws the graph that lies in the page as JSON. Every text of the graph is set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { nodes, relations } = data;
  const byId = (id) => document.getElementById(id);
  const scene = byId("scene"), view = byId("view"), details = byId("details");
  const index = new Map(nodes.map((node, i) => [node.id, i]));
  const around = nodes.map(() => []);
  relations.forEach(([a, b], r) => { around[a].push([b, r, 1]); if (a !== b) around[b].push([a, r, -1]); });
  const hidden = new Set();
  let chosen = null, focused = false, found = new Set();
  let box = { x: 0, y: 0, w: 1, h: 1 };

  function svg(name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function html(name, text, onClick) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (onClick) element.addEventListener("click", onClick);
    return element;
  }

  // The nodes within some steps of the chosen one, with the side on which each was first reached: -1 before, 1 behind.
  function near(start, depth) {
    const reached = new Map([[start, { step: 0, side: 0 }]]);
    let frontier = [start];
    for (let step = 1; step <= depth; step++) {
      const next = [];
      for (const node of frontier) {
        for (const [other, , way] of around[node]) {
          if (reached.has(other) || hidden.has(nodes[other].type)) continue;
          reached.set(other, { step, side: reached.get(node).side || way });
          next.push(other);
        }
      }
      frontier = next;
    }
    return reached;
  }

  // Columns by signed distance from the chosen node, each ordered by the mean height of what it is related to.
  function columns(reached) {
    const layers = new Map();
    for (const [node, { step, side }] of reached) {
      const key = step * side;
      if (!layers.has(key)) layers.set(key, []);
      layers.get(key).push(node);
    }
    const places = new Map();
    let right = 0;
    const keys = [...layers.keys()].sort((a, b) => Math.abs(a) - Math.abs(b) || a - b);
    for (const key of keys) {
      const mean = (node) => {
        const ys = around[node].filter(([o]) => places.has(o)).map(([o]) => places.get(o).y);
        return ys.length ? ys.reduce((a, b) => a + b, 0) / ys.length : 0;
      };
      const layer = layers.get(key).map((node) => [mean(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const height = layer.reduce((sum, [, node]) => sum + nodes[node].h + 14, -14);
      let y = -height / 2;
      for (const [, node] of layer) { places.set(node, { key, y, x: 0 }); y += nodes[node].h + 14; }
    }
    for (const key of [...layers.keys()].sort((a, b) => a - b)) {
      const width = Math.max(...layers.get(key).map((node) => nodes[node].w));
      for (const node of layers.get(key)) places.get(node).x = right + (width - nodes[node].w) / 2;
      right += width + 110;
    }
    return places;
  }

  function draw() {
    const shown = new Map();
    if (focused && chosen !== null) {
      for (const [node, place] of columns(near(chosen, Number(byId("depth").value)))) shown.set(node, place);
    } else {
      nodes.forEach((node, i) => { if (!hidden.has(node.type)) shown.set(i, { x: node.x, y: node.y }); });
    }
    const neighbours = chosen === null ? null : near(chosen, 1);
    scene.replaceChildren();
    const edges = new Map();
    relations.forEach(([a, b, kind]) => {
      if (!shown.has(a) || !shown.has(b)) return;
      const key = a + " " + b;
      if (!edges.has(key)) edges.set(key, { a, b, kinds: [] });
      edges.get(key).kinds.push(kind.replace("TERMINAL_", ""));
    });
    const labels = [];
    for (const { a, b, kinds } of edges.values()) {
      const [path, x, y] = curve(shown.get(a), nodes[a], shown.get(b), nodes[b],
        focused ? [] : data.bends[a + " " + b] || [], a === b);
      const dim = neighbours && a !== chosen && b !== chosen ? " dim" : "";
      scene.append(svg("path", { class: "edge" + dim, d: path, "marker-end": "url(#arrow)" }));
      const far = edges.size > 150 && (chosen === null || dim) ? " far" : "";
      labels.push(svg("text", { class: "kind" + dim + far, x, y: y - 4 }, kinds.join(", ")));
    }
    scene.append(...labels);
    for (const [i, place] of shown) scene.append(drawnNode(i, place, neighbours));
    fit([...shown].map(([i, p]) => [p.x, p.y, p.x + nodes[i].w, p.y + nodes[i].h]));
    byId("status").textContent = `${shown.size} of ${nodes.length} nodes, ${edges.size} arrows` +
      (data.leftOut ? `; ${data.leftOut}` : "");
  }
  function drawnNode(i, place, neighbours) {
    const node = nodes[i];
    const classes = ["node", i === chosen && "chosen", found.has(i) && "found",
      ((found.size && !found.has(i)) || (neighbours && !neighbours.has(i) && !found.size)) && "dim"];
    const group = svg("g", { class: classes.filter(Boolean).join(" "), transform: `translate(${place.x} ${place.y})`,
      "data-id": node.id });
    group.append(svg("title", {}, node.type + " " + node.id));
    group.append(svg("rect", { width: node.w, height: node.h, rx: 6, fill: data.colors[node.type] }));
    group.append(svg("text", { class: "id", x: node.w / 2, y: 18 }, node.id));
    if (node.note) group.append(svg("text", { x: node.w / 2, y: 35 }, node.note));
    group.addEventListener("click", () => choose(i));
    group.addEventListener("dblclick", () => choose(i, true));
    return group;
  }
  function curve(from, a, to, b, bends, self) {
    if (self) {
      const x = from.x + a.w, y = from.y + a.h / 2;
      return [`M${x} ${y - 6}C${x + 36} ${y - 16} ${x + 36} ${y + 16} ${x} ${y + 6}`, x + 30, y];
    }
    const rightwards = from.x < to.x;
    const x0 = rightwards ? from.x + a.w : from.x, x1 = rightwards ? to.x : to.x + b.w;
    const points = [[x0, from.y + a.h / 2], ...bends, [x1, to.y + b.h / 2]];
    let path = `M${x0} ${points[0][1]}`;
    for (let i = 1; i < points.length; i++) {
      const [[px, py], [qx, qy]] = [points[i - 1], points[i]], middle = (px + qx) / 2;
      path += `C${middle} ${py} ${middle} ${qy} ${qx} ${qy}`;
    }
    const [[px, py], [qx, qy]] = points.slice(Math.floor((points.length - 1) / 2)).slice(0, 2);
    return [path, (px + qx) / 2, (py + qy) / 2];
  }

  function choose(i, focus) {
    chosen = i;
    if (focus !== undefined) focused = focus;
    describe();
    draw();
    location.replace("#" + (i === null ? "" : encodeURIComponent(nodes[i].id)));
  }
  function describe() {
    details.replaceChildren();
    if (chosen === null) {
      details.append(html("p", "Click a node for its properties, double-click it to see only its neighbourhood. " +
        "Drag to move, use the wheel to zoom."));
      return;
    }
    const node = nodes[chosen];
    details.append(html("h2", node.id), html("p", node.type));
    details.append(html("button", focused ? "Show the whole graph" : "Show only its neighbourhood",
      () => choose(chosen, !focused)));
    const list = html("dl");
    for (const [name, value] of Object.entries(node.properties)) {
      list.append(html("dt", name), html("dd", typeof value === "string" ? value : JSON.stringify(value, null, 1)));
    }
    details.append(html("h3", "Properties"), list);
    for (const [title, way] of [["To", 1], ["From", -1]]) {
      const entries = around[chosen].filter(([, , w]) => w === way);
      if (!entries.length) continue;
      const items = html("ul");
      for (const [other, r] of entries) {
        const item = html("li", relations[r][2] + " ");
        item.append(html("button", nodes[other].id, () => choose(other)));
        items.append(item);
      }
      details.append(html("h3", `${title} (${entries.length})`), items);
    }
  }
  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    found = new Set();
    if (words.length) {
      nodes.forEach((node, i) => {
        const all = `${node.id} ${node.type} ${JSON.stringify(node.properties)}`.toLowerCase();
        if (words.every((word) => all.includes(word))) found.add(i);
      });
    }
    if (!focused) draw();
    if (words.length) byId("status").textContent = `${found.size} found`;
  }

  function fit(boxes) {
    if (!boxes.length) boxes = [[0, 0, 100, 100]];
    const low = [0, 1].map((k) => boxes.reduce((m, b) => Math.min(m, b[k]), Infinity));
    const high = [2, 3].map((k) => boxes.reduce((m, b) => Math.max(m, b[k]), -Infinity));
    box = { x: low[0] - 30, y: low[1] - 30, w: high[0] - low[0] + 60, h: high[1] - low[1] + 60 };
    const room = view.getBoundingClientRect();
    if (box.w < room.width && box.h < room.height) {  // never larger than life
      box = { x: box.x - (room.width - box.w) / 2, y: box.y - (room.height - box.h) / 2, w: room.width, h: room.height };
    }
    place();
  }
  function place() { view.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`); }
  function scale() {
    const room = view.getBoundingClientRect();
    return Math.max(box.w / room.width, box.h / room.height);
  }
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = event.deltaY > 0 ? 1.15 : 1 / 1.15, room = view.getBoundingClientRect();
    const fx = (event.clientX - room.left) / room.width, fy = (event.clientY - room.top) / room.height;
    box = { x: box.x + box.w * fx * (1 - by), y: box.y + box.h * fy * (1 - by), w: box.w * by, h: box.h * by };
    place();
  }, { passive: false });
  let drag = null;
  view.addEventListener("pointerdown", (event) => { drag = [event.clientX, event.clientY]; });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = scale();
    box.x -= (event.clientX - drag[0]) * by;
    box.y -= (event.clientY - drag[1]) * by;
    drag = [event.clientX, event.clientY];
    place();
  });
  window.addEventListener("pointerup", () => { drag = null; });
  window.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== byId("search")) { event.preventDefault(); byId("search").focus(); }
    if (event.key === "Escape") { byId("search").value = ""; search(""); choose(null, false); }
  });
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && found.size) choose([...found][0], true);
  });
  byId("depth").addEventListener("change", draw);
  byId("all").addEventListener("click", () => choose(chosen, false));
  for (const [type, color] of Object.entries(data.colors)) {
    const label = html("label"), check = html("input"), swatch = html("span");
    check.type = "checkbox";
    check.checked = true;
    check.addEventListener("change", () => { check.checked ? hidden.delete(type) : hidden.add(type); draw(); });
    swatch.className = "swatch";
    swatch.style.background = color;
    const count = nodes.reduce((sum, node) => sum + (node.type === type), 0);
    label.append(check, swatch, `${type} (${count})`);
    byId("types").append(label);
  }
  byId("title").textContent = data.graph;
  let wanted = data.focus;
  try { wanted = decodeURIComponent(location.hash.slice(1)) || wanted; } catch { /* not one of ours */ }
  if (index.has(wanted)) choose(index.get(wanted), true); else { describe(); draw(); }
})();
