"use strict";
// Draws the layout of the page's data on two canvases: the layers below, hover, chosen net and markers above.
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  root.classList.add("scripted");
  const data = JSON.parse(byId("data").textContent);
  const { unit, layers, cells, nets, devices, labels, findings } = data;
  const [LEFT, BOTTOM, RIGHT, TOP] = data.box;
  const frame = byId("drawing"), base = byId("base"), over = byId("over"), status = byId("status");
  const HOLLOW = new Set(["well", "implant", "marker", "boundary", "opening", "pin", "unknown", "text", "silicide_block"]);
  const layerNumber = new Map(layers.map((layer, number) => [layer.name, number]));
  const visible = layers.map(() => true);
  let view = { x: 0, y: 0, scale: 1 }; // centre in database units, pixels per unit
  let width = 1, height = 1, ratio = 1;
  let hovered = null, chosen = null, marked = null, pointer = null, byKeyboard = false, fitted = true;

  // ---- Paths, made once from the numbers of the page.
  let traced = 0, frames = 0; // counted for tests
  const trace = (path, shapes) => {
    const boxes = shapes.boxes || [];
    traced += boxes.length / 4 + (shapes.polygons || []).length;
    for (let i = 0; i < boxes.length; i += 4) path.rect(boxes[i], boxes[i + 1] + boxes[i + 3], boxes[i + 2], -boxes[i + 3]); // clockwise, as hulls
    for (const polygon of shapes.polygons || []) {
      for (const steps of polygon) {
        let x = steps[0], y = steps[1];
        path.moveTo(x, y);
        for (let i = 2; i < steps.length; i += 2) { x += steps[i]; y += steps[i + 1]; path.lineTo(x, y); }
        path.closePath();
      }
    }
    return path;
  };
  for (const cell of cells) {
    cell.paths = new Map(Object.entries(cell.shapes).map(([layer, shapes]) => [Number(layer), trace(new Path2D(), shapes)]));
    cell.deep = new Set(cell.paths.keys());
    for (const [child] of cell.instances) for (const layer of cells[child].deep) cell.deep.add(layer);
  }
  const top = cells.length - 1;
  const matrixOf = (instance) => {
    const [, turns, mirrored, x, y] = instance;
    const [a, b] = [[1, 0], [0, 1], [-1, 0], [0, -1]][turns];
    return mirrored ? new DOMMatrix([a, b, b, -a, x, y]) : new DOMMatrix([a, b, -b, a, x, y]);
  };
  const placed = []; // every instance, flat: [cell, matrix]
  (function place(cell, matrix) {
    placed.push([cells[cell], matrix]);
    for (const instance of cells[cell].instances) {
      const [child, , , , , na = 1, nb = 1, ax = 0, ay = 0, bx = 0, by = 0] = instance;
      for (let i = 0; i < Math.max(na, 1); i++) {
        for (let j = 0; j < Math.max(nb, 1); j++) {
          const shift = new DOMMatrix([1, 0, 0, 1, i * ax + j * bx, i * ay + j * by]);
          place(child, matrix.multiply(shift).multiply(matrixOf(instance)));
        }
      }
    }
  })(top, new DOMMatrix());

  // ---- Colours: those of the technology, moved away from the background where they would vanish.
  const isDark = () => root.dataset.theme === "dark" || (root.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const rgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  const luminance = (color) => { const [r, g, b] = rgb(color); return (0.3 * r + 0.59 * g + 0.11 * b) / 255; };
  const mixed = (color, other, part) => {
    const [one, two] = [rgb(color), rgb(other)];
    return "#" + one.map((value, i) => Math.round(value * (1 - part) + two[i] * part).toString(16).padStart(2, "0")).join("");
  };
  const shade = (color) => {
    const light = luminance(color);
    if (isDark()) return light < 0.42 ? mixed(color, "#ffffff", 0.5 - light * 0.8) : color;
    return light > 0.72 ? mixed(color, "#000000", 0.28) : color;
  };
  const theme = () => getComputedStyle(root);
  const named = (name) => theme().getPropertyValue(name).trim();

  // ---- The view.
  const toScreen = (x, y) => [width / 2 + (x - view.x) * view.scale, height / 2 - (y - view.y) * view.scale];
  const toLayout = (x, y) => [view.x + (x - width / 2) / view.scale, view.y - (y - height / 2) / view.scale];
  const screenMatrix = () => new DOMMatrix([view.scale * ratio, 0, 0, -view.scale * ratio, (width / 2 - view.x * view.scale) * ratio, (height / 2 + view.y * view.scale) * ratio]);
  const MOST = 2000 * unit; // 2000 pixels a micrometre
  const LEAST = () => 0.4 * Math.min(width / (RIGHT - LEFT || 1), height / (TOP - BOTTOM || 1));
  const show = (l, b, r, t, margin) => {
    view.x = (l + r) / 2; view.y = (b + t) / 2;
    view.scale = Math.min((width - 2 * margin) / Math.max(r - l, 1), (height - 2 * margin) / Math.max(t - b, 1));
    view.scale = Math.min(Math.max(view.scale, LEAST()), MOST);
    schedule(true);
  };
  const fit = () => { fitted = true; show(LEFT, BOTTOM, RIGHT, TOP, 14); };
  const zoom = (factor, x = width / 2, y = height / 2) => {
    const [px, py] = toLayout(x, y);
    view.scale = Math.min(Math.max(view.scale * factor, LEAST()), MOST);
    view.x = px - (x - width / 2) / view.scale; view.y = py + (y - height / 2) / view.scale;
    fitted = false; schedule(true);
  };
  const pan = (dx, dy) => { view.x -= dx / view.scale; view.y += dy / view.scale; fitted = false; schedule(true); };
  const resize = () => {
    ratio = window.devicePixelRatio || 1;
    if (!frame.clientWidth || !frame.clientHeight) return; // hidden, as in print
    width = frame.clientWidth; height = frame.clientHeight;
    for (const canvas of [base, over]) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    scratch.width = base.width; scratch.height = base.height;
    if (fitted) fit(); else schedule(true);
  };
  const scratch = document.createElement("canvas");

  // ---- Drawing.
  let waiting = false, layersToo = false;
  function schedule(all = false) {
    layersToo = layersToo || all;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (layersToo) drawLayers();
      layersToo = false;
      drawOver();
      frames += 1;
      Object.assign(root.dataset, { ready: "true", frames, traced });
    });
  }
  const fillOf = (layer) => (HOLLOW.has(layer.is) ? 0 : layer.is === "cut" ? 0.95 : layer.is === "active" ? 0.55 : 0.5);
  function drawLayers() {
    const screen = base.getContext("2d"), ink = scratch.getContext("2d"), matrix = screenMatrix();
    const whole = new DOMMatrix();
    screen.setTransform(whole);
    screen.fillStyle = named("--canvas");
    screen.fillRect(0, 0, base.width, base.height);
    layers.forEach((layer, number) => {
      if (!visible[number]) return;
      const alpha = fillOf(layer), color = shade(layer.color);
      if (alpha) {
        ink.setTransform(whole);
        ink.clearRect(0, 0, scratch.width, scratch.height);
        ink.fillStyle = color;
        for (const [cell, own] of placed) {
          const path = cell.paths.get(number);
          if (path) { ink.setTransform(matrix.multiply(own)); ink.fill(path); }
        }
        screen.setTransform(whole);
        screen.globalAlpha = alpha;
        screen.drawImage(scratch, 0, 0);
      }
      screen.globalAlpha = layer.is === "cut" ? 0.5 : 0.9;
      if (layer.is !== "cut" || view.scale / unit > 12) {
        screen.strokeStyle = color;
        if (layer.is === "boundary") screen.setLineDash([6 / view.scale, 4 / view.scale]);
        for (const [cell, own] of placed) {
          const path = cell.paths.get(number);
          if (path) { screen.setTransform(matrix.multiply(own)); screen.lineWidth = 1 / view.scale; screen.stroke(path); }
        }
        screen.setLineDash([]);
      }
      screen.globalAlpha = 1;
    });
  }
  const netPath = (net) => {
    net.paths = net.paths || Object.entries(net.shapes).map(([layer, shapes]) => [layerNumber.get(layer), trace(new Path2D(), shapes)]);
    return net.paths;
  };
  function drawOver() {
    const ink = over.getContext("2d"), matrix = screenMatrix(), whole = new DOMMatrix();
    ink.setTransform(whole);
    ink.clearRect(0, 0, over.width, over.height);
    const accent = named("--accent");
    if (chosen) {
      ink.fillStyle = named("--veil");
      ink.fillRect(0, 0, over.width, over.height);
      if (chosen.net) drawNet(ink, matrix, chosen.net, 0.85, 2);
      if (chosen.device) drawBoxes(ink, matrix, chosen.device, 3);
    }
    if (hovered && hovered.net && !(chosen && chosen.net === hovered.net)) drawNet(ink, matrix, hovered.net, 0, 1.6);
    if (hovered && hovered.device) drawBoxes(ink, matrix, hovered.device, 2);
    ink.setTransform(new DOMMatrix([ratio, 0, 0, ratio, 0, 0]));
    drawMarkers(ink);
    drawLabels(ink);
    drawScale(ink);
    if (byKeyboard) {
      ink.strokeStyle = accent; ink.lineWidth = 1.5;
      ink.beginPath();
      ink.moveTo(width / 2 - 12, height / 2); ink.lineTo(width / 2 + 12, height / 2);
      ink.moveTo(width / 2, height / 2 - 12); ink.lineTo(width / 2, height / 2 + 12);
      ink.stroke();
    }
  }
  function drawNet(ink, matrix, net, alpha, line) {
    ink.setTransform(matrix);
    for (const [number, path] of netPath(net)) {
      if (number === undefined || !visible[number]) continue;
      const layer = layers[number];
      if (alpha && layer.is !== "well") { ink.globalAlpha = alpha; ink.fillStyle = shade(layer.color); ink.fill(path); }
      ink.globalAlpha = layer.is === "well" ? 0.5 : 1;
      ink.strokeStyle = named("--accent"); ink.lineWidth = (view.scale / unit < 12 ? 1 : line) / view.scale; ink.stroke(path);
      ink.globalAlpha = 1;
    }
  }
  function drawBoxes(ink, matrix, device, line) {
    ink.setTransform(matrix);
    ink.strokeStyle = named("--device"); ink.lineWidth = line / view.scale;
    for (let i = 0; i < device.boxes.length; i += 4) ink.strokeRect(...device.boxes.slice(i, i + 4));
  }
  const write = (ink, text, x, y, color, align = "center") => {
    ink.textAlign = align; ink.textBaseline = "middle"; ink.lineJoin = "round";
    ink.lineWidth = 3.5; ink.strokeStyle = named("--canvas"); ink.strokeText(text, x, y);
    ink.fillStyle = color; ink.fillText(text, x, y);
  };
  function drawLabels(ink) {
    const taken = [], color = named("--text");
    const free = (text, x, y) => {
      const half = ink.measureText(text).width / 2 + 3;
      if (x < -half || y < 0 || x > width + half || y > height) return false;
      if (taken.some(([ox, oy, other]) => Math.abs(ox - x) < half + other && Math.abs(oy - y) < 14)) return false;
      taken.push([x, y, half]);
      return true;
    };
    ink.font = "600 12px system-ui, sans-serif";
    for (const [text, x, y] of labels) {
      const [sx, sy] = toScreen(x, y);
      const half = ink.measureText(text).width / 2 + 4, at = Math.min(Math.max(sx, half), width - half);
      if (sx > -20 && sx < width + 20 && free(text, at, sy)) write(ink, text, at, sy, color);
    }
    ink.font = "11px system-ui, sans-serif";
    for (const device of devices) {
      if (!device.name || !device.places) continue;
      const [l, , r] = boundsOf({ device });
      if (ink.measureText(device.name).width > 1.2 * (r - l) * view.scale) continue;
      for (const [x, y, w, h] of device.places) {
        if (Math.max(w, h) * view.scale < 22) continue;
        const [sx, sy] = toScreen(x, y);
        if (free(device.name, sx, sy)) write(ink, device.name, sx, sy, color);
      }
    }
  }
  function drawMarkers(ink) {
    ink.font = "600 12px system-ui, sans-serif";
    findings.forEach((finding, number) => {
      if (!finding.box || (!finding.fault && number !== marked)) return;
      const [l, b, r, t] = finding.box.map((value) => value / unit);
      const [x1, y1] = toScreen(l, t), [x2, y2] = toScreen(r, b);
      const grow = Math.max(4, (14 - Math.min(x2 - x1, y2 - y1)) / 2);
      const x = x1 - grow, y = y1 - grow, w = x2 - x1 + 2 * grow, h = y2 - y1 + 2 * grow;
      if (x > width || y > height || x + w < 0 || y + h < 0) return;
      ink.lineWidth = number === marked ? 7 : 5; ink.strokeStyle = "#101418"; ink.strokeRect(x, y, w, h);
      ink.lineWidth = number === marked ? 4 : 3; ink.strokeStyle = data.marker; ink.strokeRect(x, y, w, h);
      const long = ink.measureText(finding.rule).width + 8, left = Math.min(Math.max(x, 1), width - long - 1), above = Math.max(y - 22, 1);
      ink.fillStyle = data.marker; ink.fillRect(left, above, long, 18);
      ink.lineWidth = 1; ink.strokeStyle = "#101418"; ink.strokeRect(left, above, long, 18);
      ink.textAlign = "left"; ink.textBaseline = "middle"; ink.fillStyle = "#101418"; ink.fillText(finding.rule, left + 4, above + 9.5);
    });
  }
  function drawScale(ink) {
    const longest = (width / 4 / view.scale) * unit, power = 10 ** Math.floor(Math.log10(longest));
    const length = Math.max(...[1, 2, 5].map((factor) => factor * power).filter((value) => value <= longest * 1.0000001));
    const end = 14 + (length / unit) * view.scale, y = height - 16, color = named("--text");
    ink.font = "12px system-ui, sans-serif";
    for (const [line, stroke] of [[5, named("--canvas")], [2, color]]) {
      ink.lineWidth = line; ink.strokeStyle = stroke;
      ink.beginPath(); ink.moveTo(14, y - 5); ink.lineTo(14, y); ink.lineTo(end, y); ink.lineTo(end, y - 5); ink.stroke();
    }
    write(ink, `${+length.toPrecision(3)} µm`, end + 8, y - 3, color, "left");
  }
  for (const device of devices) device.places = device.name ? centres(device.boxes) : null;
  function centres(boxes) { // one place a row of fingers: those that touch or nearly touch are one
    const found = [];
    for (let i = 0; i < boxes.length; i += 4) {
      const [x, y, w, h] = boxes.slice(i, i + 4);
      found.push([x + w / 2, y + h / 2, w, h]);
    }
    return found;
  }

  // ---- What is at a place: shapes of nets in squares of a grid, made at the first question.
  const GRID = 128;
  let squares = null;
  const inContour = (steps, px, py) => {
    let inside = false, x = steps[0], y = steps[1];
    const firstX = x, firstY = y;
    for (let i = 2; i <= steps.length; i += 2) {
      const nx = i < steps.length ? x + steps[i] : firstX, ny = i < steps.length ? y + steps[i + 1] : firstY;
      if (y > py !== ny > py && px < ((nx - x) * (py - y)) / (ny - y) + x) inside = !inside;
      x = nx; y = ny;
    }
    return inside;
  };
  function addTo(entry, l, b, r, t) {
    const column = (x) => Math.min(Math.max(Math.floor(((x - LEFT) / (RIGHT - LEFT || 1)) * GRID), 0), GRID - 1);
    const row = (y) => Math.min(Math.max(Math.floor(((y - BOTTOM) / (TOP - BOTTOM || 1)) * GRID), 0), GRID - 1);
    for (let i = column(l); i <= column(r); i++) {
      for (let j = row(b); j <= row(t); j++) (squares[i * GRID + j] = squares[i * GRID + j] || []).push([l, b, r, t, entry]);
    }
  }
  function index() {
    squares = new Array(GRID * GRID);
    for (const net of nets) {
      for (const [name, shapes] of Object.entries(net.shapes)) {
        const layer = layerNumber.get(name), boxes = shapes.boxes || [];
        for (let i = 0; i < boxes.length; i += 4) {
          const [x, y, w, h] = boxes.slice(i, i + 4);
          addTo({ net, layer }, x, y, x + w, y + h);
        }
        for (const polygon of shapes.polygons || []) {
          let x = 0, y = 0, l = Infinity, b = Infinity, r = -Infinity, t = -Infinity;
          polygon[0].forEach((step, i) => {
            if (i % 2 === 0) { x += step; l = Math.min(l, x); r = Math.max(r, x); } else { y += step; b = Math.min(b, y); t = Math.max(t, y); }
          });
          addTo({ net, layer, polygon }, l, b, r, t);
        }
      }
    }
    for (const device of devices) {
      for (let i = 0; i < device.boxes.length; i += 4) {
        const [x, y, w, h] = device.boxes.slice(i, i + 4);
        addTo({ device }, x, y, x + w, y + h);
      }
    }
  }
  function at(x, y) {
    if (!squares) index();
    if (x < LEFT || x > RIGHT || y < BOTTOM || y > TOP) return null;
    const i = Math.min(Math.floor(((x - LEFT) / (RIGHT - LEFT || 1)) * GRID), GRID - 1);
    const j = Math.min(Math.floor(((y - BOTTOM) / (TOP - BOTTOM || 1)) * GRID), GRID - 1);
    let best = null, device = null;
    for (const [l, b, r, t, entry] of squares[i * GRID + j] || []) {
      if (x < l || x > r || y < b || y > t) continue;
      if (entry.device) { device = entry.device; continue; }
      if (entry.layer === undefined || !visible[entry.layer] || (best && best.layer >= entry.layer)) continue;
      if (entry.polygon && entry.polygon.filter((steps) => inContour(steps, x, y)).length % 2 === 0) continue;
      best = entry;
    }
    return best || device ? { net: best && best.net, layer: best && layers[best.layer].name, device } : null;
  }
  const words = (found) => {
    if (!found) return "";
    const parts = [];
    if (found.net) parts.push(`net ${found.net.name}${found.layer ? ` on ${found.layer}` : ""}`);
    if (found.device) parts.push(found.device.name ? `device ${found.device.name} (${found.device.is})` : "dummy");
    return parts.join(", ");
  };
  let told = null;
  function tell(text) { if (text !== told) { told = text; status.textContent = text; } }
  function look(x, y) {
    const [lx, ly] = toLayout(x, y), found = at(lx, ly);
    const same = (found && found.net) === (hovered && hovered.net) && (found && found.device) === (hovered && hovered.device);
    hovered = found;
    byId("place").textContent = `x ${(lx * unit).toFixed(3)}  y ${(ly * unit).toFixed(3)} µm`;
    tell(found ? words(found) : chosen ? `chosen: ${words(chosen)}` : "");
    if (!same || byKeyboard) schedule();
  }
  function choose(found) {
    chosen = found && (found.net || (found.device && found.device.name)) ? { net: found.net, device: found.net ? null : found.device } : null;
    frame.dataset.chosen = chosen ? (chosen.net || chosen.device).name : "";
    const text = byId("chosen");
    if (!chosen) text.textContent = "Nothing chosen. Click a wire, or find a net or device by its name.";
    else if (chosen.net) text.textContent = `Net ${chosen.net.name}: ${chosen.net.pins.length ? chosen.net.pins.join(", ") : "no device terminal of the netlist"}`;
    else text.textContent = `Device ${chosen.device.name} (${chosen.device.is}): ${Object.entries(chosen.device.nets).map(([pin, net]) => `${pin}=${net}`).join(", ")}`;
    if (chosen) tell(`chosen: ${words(chosen)}`);
    for (const button of document.querySelectorAll("[data-net],[data-device]")) {
      const on = chosen && ((chosen.net && button.dataset.net === chosen.net.name) || (chosen.device && button.dataset.device === chosen.device.name));
      button.setAttribute("aria-pressed", on ? "true" : "false");
    }
    schedule();
  }
  const boundsOf = (found) => {
    let l = Infinity, b = Infinity, r = -Infinity, t = -Infinity;
    const add = (x, y) => { l = Math.min(l, x); r = Math.max(r, x); b = Math.min(b, y); t = Math.max(t, y); };
    const boxes = (list) => { for (let i = 0; i < list.length; i += 4) { add(list[i], list[i + 1]); add(list[i] + list[i + 2], list[i + 1] + list[i + 3]); } };
    if (found.device) boxes(found.device.boxes);
    for (const shapes of found.net ? Object.values(found.net.shapes) : []) {
      boxes(shapes.boxes || []);
      for (const [hull] of shapes.polygons || []) {
        let x = 0, y = 0;
        for (let i = 0; i < hull.length; i += 2) { x += hull[i]; y += hull[i + 1]; add(x, y); }
      }
    }
    return l <= r ? [l, b, r, t] : data.box;
  };
  function goTo(found) {
    choose(found);
    const [l, b, r, t] = boundsOf(found);
    fitted = false;
    show(l, b, r, t, Math.min(width, height) * 0.12);
    frame.scrollIntoView({ block: "nearest" });
  }
  const netOf = (name) => nets.find((net) => net.name === name);
  const deviceOf = (name) => devices.find((device) => device.name === name);

  // ---- Pointer and keys.
  let drag = null, moved = false;
  const fingers = new Map();
  const local = (event) => { const box = over.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  over.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, local(event));
    drag = local(event); moved = false; byKeyboard = false;
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    const [x, y] = local(event);
    pointer = [x, y];
    if (fingers.size === 2) {
      const others = [...fingers.entries()], before = Math.hypot(others[0][1][0] - others[1][1][0], others[0][1][1] - others[1][1][1]);
      fingers.set(event.pointerId, [x, y]);
      const [one, two] = [...fingers.values()], after = Math.hypot(one[0] - two[0], one[1] - two[1]);
      if (before > 0) zoom(after / before, (one[0] + two[0]) / 2, (one[1] + two[1]) / 2);
      moved = true;
    } else if (drag) {
      if (moved || Math.hypot(x - drag[0], y - drag[1]) > 4) { pan(x - drag[0], y - drag[1]); drag = [x, y]; moved = true; }
    } else look(x, y);
  });
  const release = (event) => {
    fingers.delete(event.pointerId);
    if (drag && !moved && event.type === "pointerup") { const [x, y] = local(event); look(x, y); choose(hovered); }
    drag = null;
  };
  over.addEventListener("pointerup", release);
  over.addEventListener("pointercancel", release);
  over.addEventListener("pointerleave", () => { pointer = null; hovered = null; byId("place").textContent = ""; schedule(); });
  over.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event)); }, { passive: false });
  over.addEventListener("dblclick", (event) => zoom(2, ...local(event)));
  const STEP = 60;
  const keys = {
    ArrowLeft: () => pan(STEP, 0), ArrowRight: () => pan(-STEP, 0), ArrowUp: () => pan(0, STEP), ArrowDown: () => pan(0, -STEP),
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: fit, f: fit, Home: fit,
    Escape: () => { marked = null; choose(null); tell("nothing chosen"); },
    Enter: () => { look(width / 2, height / 2); choose(hovered); }, " ": () => { look(width / 2, height / 2); choose(hovered); },
  };
  frame.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target !== frame) return;
    event.preventDefault();
    byKeyboard = true;
    act();
    if (event.key !== "Escape") look(width / 2, height / 2);
  });
  frame.addEventListener("blur", () => { byKeyboard = false; schedule(); });
  byId("zoom-in").addEventListener("click", () => zoom(1.4));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  byId("fit").addEventListener("click", fit);
  byId("find").addEventListener("change", (event) => {
    const name = event.target.value.trim(), net = netOf(name), device = deviceOf(name);
    if (net || device) goTo({ net, device: net ? null : device });
    else tell(name ? `there is no net and no device named ${name}` : "");
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-net],button[data-device],button[data-finding]");
    if (!button) return;
    if (button.dataset.finding !== undefined) {
      const finding = findings[Number(button.dataset.finding)];
      marked = Number(button.dataset.finding); fitted = false;
      const [l, b, r, t] = finding.box.map((value) => value / unit), room = Math.max(1.5 / unit, r - l, t - b);
      show((l + r - room) / 2, (b + t - room) / 2, (l + r + room) / 2, (b + t + room) / 2, Math.min(width, height) * 0.2);
      frame.dataset.marked = finding.rule;
      tell(`${finding.rule}: ${finding.text}`);
      frame.scrollIntoView({ block: "nearest" });
      return;
    }
    const found = { net: netOf(button.dataset.net), device: deviceOf(button.dataset.device) };
    if (found.net || found.device) goTo(found);
  });

  // ---- Layers: a list of switches with their colours.
  const list = byId("layers"), inputs = [];
  layers.map((_, number) => number).reverse().forEach((number) => {
    const layer = layers[number], label = document.createElement("label"), input = document.createElement("input");
    const swatch = document.createElement("span"), name = document.createElement("span"), item = document.createElement("li");
    input.type = "checkbox"; input.checked = true; input.dataset.layer = layer.name;
    swatch.className = HOLLOW.has(layer.is) ? "swatch hollow" : "swatch";
    name.textContent = layer.name; name.title = `${layer.name} ${layer.gds}, ${layer.is.replace("_", " ")}`;
    label.append(input, swatch, name); item.append(label); list.append(item);
    inputs[number] = [input, swatch];
    input.addEventListener("change", () => { visible[number] = input.checked; schedule(true); });
  });
  const all = (on) => { inputs.forEach(([input], number) => { input.checked = visible[number] = on; }); schedule(true); };
  byId("layers-all").addEventListener("click", () => all(true));
  byId("layers-none").addEventListener("click", () => all(false));
  const paint = () => {
    inputs.forEach(([, swatch], number) => { swatch.style.setProperty("--layer", shade(layers[number].color)); });
    root.style.setProperty("--marker", data.marker);
    schedule(true);
  };

  // ---- Light and dark.
  const choice = byId("theme");
  const setTheme = (value) => {
    if (value === "auto") delete root.dataset.theme; else root.dataset.theme = value;
    choice.value = value;
    paint();
  };
  choice.addEventListener("change", () => {
    setTheme(choice.value);
    try { localStorage.setItem("layout-report-theme", choice.value); } catch { /* no storage for this page */ }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  let stored = "auto";
  try { stored = localStorage.getItem("layout-report-theme") || "auto"; } catch { /* no storage for this page */ }
  setTheme(["light", "dark"].includes(stored) ? stored : "auto");

  const names = byId("names");
  for (const name of [...new Set([...nets.map((net) => net.name), ...devices.map((device) => device.name)])]) {
    if (!name) continue;
    const option = document.createElement("option");
    option.value = name;
    names.append(option);
  }
  window.layoutView = { // what a page that reloads keeps
    state: () => ({ view, fitted, hidden: layers.filter((_, number) => !visible[number]).map((layer) => layer.name) }),
    restore: (kept) => {
      kept.hidden.forEach((name) => { const number = layerNumber.get(name); if (number !== undefined) inputs[number][0].checked = visible[number] = false; });
      if (!kept.fitted) { view = kept.view; fitted = false; }
      schedule(true);
    },
  };
  new ResizeObserver(resize).observe(frame);
  resize();
  choose(null);
})();
