// The map: drawing, pan and zoom, hover, selection, and the draws of the selected node.
const nodeMap = (() => {
  // Nodes are painted pixel by pixel on the CPU, so their canvas is kept in main memory.
  const base = byId("base").getContext("2d", { willReadFrequently: true }), over = byId("map").getContext("2d");
  const stage = byId("stage"), tip = byId("tip"), canvas = byId("map");
  const view = { x: 0.5, y: 0.5, zoom: 1 };
  const GRID = Math.max(4, Math.min(128, Math.round(Math.sqrt(N / 4))));
  const cells = index();
  const xs = new Float32Array(N), ys = new Float32Array(N);
  let width = 1, height = 1, dense = 1, look = null, colorBy = null, faint = null;
  let hovered = -1, chosen = -1, waiting = false, listener = () => {};

  // Nodes by grid cell, to find the nearest node without a loop over all nodes.
  function index() {
    const cell = (i) => gridCell(position[2 * i]) + GRID * gridCell(position[2 * i + 1]);
    const start = new Uint32Array(GRID * GRID + 1), items = new Uint32Array(N);
    for (let i = 0; i < N; i++) start[cell(i) + 1]++;
    for (let c = 0; c < GRID * GRID; c++) start[c + 1] += start[c];
    const next = start.slice();
    for (let i = 0; i < N; i++) items[next[cell(i)]++] = i;
    return { start, items };
  }
  function gridCell(value) { return Math.min(GRID - 1, Math.floor((value / (FULL + 1)) * GRID)); }

  const scale = () => Math.min(width, height) * 0.93 * view.zoom;
  const toX = (x) => width / 2 + (x / FULL - view.x) * scale();
  const toY = (y) => height / 2 - (y / FULL - view.y) * scale();
  const backX = (px) => Math.round(((px - width / 2) / scale() + view.x) * FULL);
  const backY = (py) => Math.round(((height / 2 - py) / scale() + view.y) * FULL);

  // The node nearest to a point on the screen, at most `most` pixels away; -1 if there is none.
  function nearest(px, py, most) {
    const x = backX(px), y = backY(py), reach = (most / scale()) * FULL;
    const low = (v) => gridCell(Math.max(0, v - reach)), high = (v) => gridCell(Math.min(FULL, Math.max(0, v + reach)));
    let best = -1, least = reach * reach;
    for (let cy = low(y); cy <= high(y); cy++) {
      for (let k = cells.start[low(x) + GRID * cy]; k < cells.start[high(x) + GRID * cy + 1]; k++) {
        const i = cells.items[k], dx = position[2 * i] - x, dy = position[2 * i + 1] - y, far = dx * dx + dy * dy;
        if (far <= least) { least = far; best = i; }
      }
    }
    return best;
  }

  function radius() {
    const plain = N > 20000 ? 1.7 : N > 5000 ? 2.3 : N > 800 ? 3.4 : 4.6;
    return Math.min(plain * Math.pow(view.zoom, 0.45), 9);
  }

  function draw() {
    waiting = false;
    const ratio = dense, s = scale() * ratio;
    for (let i = 0; i < N; i++) {
      xs[i] = (width / 2) * ratio + (position[2 * i] / FULL - view.x) * s;
      ys[i] = (height / 2) * ratio - (position[2 * i + 1] / FULL - view.y) * s;
    }
    paint(base, xs, ys, look, radius() * ratio, N > 20000 && view.zoom < 3 ? 0 : 0.8 * ratio, GROUND[theme()], faint);
    drawOver();
  }

  function drawOver() {
    over.setTransform(dense, 0, 0, dense, 0, 0);
    over.clearRect(0, 0, width, height);
    if (chosen >= 0) drawCloud(chosen);
    if (hovered >= 0 && hovered !== chosen) ring(hovered, 2);
  }

  function ring(i, weight) {
    const x = toX(position[2 * i]), y = toY(position[2 * i + 1]);
    over.beginPath();
    over.arc(x, y, radius() + 4, 0, 7);
    over.strokeStyle = GROUND[theme()]; over.lineWidth = weight + 3; over.stroke();
    over.strokeStyle = theme() === "dark" ? "#ffffff" : "#000000"; over.lineWidth = weight; over.stroke();
  }

  // Draws of view o are discs, draws of view t are triangles. A line connects each draw with its node.
  function drawCloud(i) {
    const ground = GROUND[theme()], x = toX(position[2 * i]), y = toY(position[2 * i + 1]);
    over.globalAlpha = 0.62; over.fillStyle = ground; over.fillRect(0, 0, width, height); over.globalAlpha = 1;
    const colors = [PALETTE[theme()][0], PALETTE[theme()][3]], points = [];
    for (let d = 0; d < payload.draws; d++) {
      const k = 2 * (i * payload.draws + d);
      points.push([toX(cloud[k]), toY(cloud[k + 1]), d % 2]);
    }
    over.lineWidth = 1; over.strokeStyle = theme() === "dark" ? "#aab3bd" : "#525a64"; over.globalAlpha = 0.6;
    for (const [px, py] of points) { over.beginPath(); over.moveTo(x, y); over.lineTo(px, py); over.stroke(); }
    over.globalAlpha = 1;
    for (const [px, py, kind] of points) {
      over.beginPath();
      if (kind === 0) over.arc(px, py, 5, 0, 7);
      else { over.moveTo(px, py - 6); over.lineTo(px + 5.5, py + 4.5); over.lineTo(px - 5.5, py + 4.5); over.closePath(); }
      over.lineWidth = 2.5; over.strokeStyle = ground; over.stroke();
      over.fillStyle = colors[kind]; over.fill();
    }
    ring(i, 2.5);
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function resize() {
    const box = stage.getBoundingClientRect();
    width = Math.max(1, Math.round(stage.clientWidth || box.width));
    height = Math.max(1, Math.round(stage.clientHeight || box.height));
    dense = Math.min(2, window.devicePixelRatio || 1);
    for (const { canvas: c } of [base, over]) { c.width = Math.round(width * dense); c.height = Math.round(height * dense); }
    if (look) draw();
  }

  function color(by = colorBy) {
    colorBy = by;
    look = looks(by);
    drawLegend(by);
    redraw();
  }

  function zoomBy(factor, px = width / 2, py = height / 2) {
    const zoom = Math.min(60, Math.max(0.8, view.zoom * factor)), before = scale();
    const fx = (px - width / 2) / before, fy = (height / 2 - py) / before;
    view.x += fx * (1 - view.zoom / zoom);
    view.y += fy * (1 - view.zoom / zoom);
    view.zoom = zoom;
    redraw();
  }

  function choose(i, { show = true, from = null } = {}) {
    chosen = i;
    if (i >= 0 && show) {
      const x = toX(position[2 * i]), y = toY(position[2 * i + 1]);
      if (x < 30 || y < 30 || x > width - 30 || y > height - 30) {
        view.x = position[2 * i] / FULL; view.y = position[2 * i + 1] / FULL;
        redraw();
      }
    }
    drawOver();
    listener(i, from);
  }

  function hover(i, px, py) {
    if (i !== hovered) {
      hovered = i;
      drawOver();
      tip.replaceChildren(...(i < 0 ? [] : tipLines(i)));
    }
    tip.hidden = i < 0;
    if (i < 0) return;
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = `${Math.max(4, Math.min(px + 14, width - w - 6))}px`;
    tip.style.top = `${py + h + 20 > height ? Math.max(4, py - h - 12) : py + 14}px`;
  }

  function tipLines(i) {
    const lines = [make("b", {}, idOf(i))];
    if (labeled) lines.push(`label ${nameOf(label[i])}`, make("br"));
    if (predicts) lines.push(`predicted ${nameOf(predicted(i))}, ${percent(sureness(i))}`, make("br"));
    const m = measures.get(colorBy) || measures.get(payload.first_measure);
    lines.push(`${m.title.toLowerCase()} ${number(m.values[i])}`);
    return lines;
  }

  // Go from the selected node to the nearest one in a direction. If none is selected, select the one nearest to the center.
  function step(dx, dy) {
    if (chosen < 0) return choose(nearest(width / 2, height / 2, 1e5));
    const x = position[2 * chosen], y = position[2 * chosen + 1];
    let best = -1, least = Infinity;
    for (let i = 0; i < N; i++) {
      const along = (position[2 * i] - x) * dx - (position[2 * i + 1] - y) * dy;
      if (along <= 0) continue;
      const across = Math.abs((position[2 * i] - x) * dy + (position[2 * i + 1] - y) * dx), far = along + 2 * across;
      if (far < least) { least = far; best = i; }
    }
    if (best >= 0) choose(best);
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = at(event), before = fingers.get(event.pointerId);
    if (!before) return hover(nearest(px, py, 14), px, py);
    hover(-1);
    const dx = px - before[0], dy = py - before[1];
    moved += Math.abs(dx) + Math.abs(dy);
    if (fingers.size === 1 && moved > 4) {
      view.x -= dx / scale(); view.y += dy / scale();
      redraw();
    } else if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      zoomBy(apart([px, py]) / apart(before), (px + other[0]) / 2, (py + other[1]) / 2);
    }
    fingers.set(event.pointerId, [px, py]);
  });
  canvas.addEventListener("pointerup", (event) => {
    const [px, py] = at(event);
    if (fingers.size === 1 && moved <= 4) choose(nearest(px, py, event.pointerType === "touch" ? 26 : 16));
    fingers.delete(event.pointerId);
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => hover(-1));
  // The wheel zooms only after a click on the map. Otherwise it scrolls the page.
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * 0.0016), ...at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (steps[event.key]) step(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") zoomBy(1.4);
    else if (event.key === "-") zoomBy(1 / 1.4);
    else if (event.key === "0" || event.key === "Home") all();
    else if (event.key === "Escape") choose(-1);
    else return;
    event.preventDefault();
  });
  function all() { Object.assign(view, { x: 0.5, y: 0.5, zoom: 1 }); redraw(); }
  byId("zoom-in").addEventListener("click", () => zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
  byId("zoom-all").addEventListener("click", all);
  new ResizeObserver(resize).observe(stage);

  return {
    color, choose, resize, redraw, draw,
    fade(which) {
      const same = which === null && faint === null;
      faint = which;
      if (!same) redraw();
    },
    onChoice(action) { listener = action; },
    get chosen() { return chosen; },
  };
})();

function drawLegend(by) {
  const legend = byId("legend"), rows = [];
  const key = (color, shape, text) => rows.push(make("span", {}, shapeKey(color, shape), text));
  if (by === "label" || by === "prediction") {
    classes.slice(0, 32).forEach((name, c) => key(classColor(c), classShape(c), name));
    if (classes.length > 32) rows.push(make("span", {}, `and ${classes.length - 32} more`));
    if (by === "label" && label.some((c) => c < 0)) key(classColor(-1), 0, "no label");
  } else if (by === "right") {
    const { colors } = looks(by);
    key(colors[1], 0, "predicted correctly");
    key(colors[2], 6, "predicted wrongly");
    if (label.some((c) => c < 0)) key(colors[0], 0, "no label");
  } else {
    const { values, title, meaning } = measures.get(by), [low, high] = ends(values, ascending(values));
    const bar = svg("svg", { width: 160, height: 12, "aria-hidden": "true" });
    for (let s = 0; s < 40; s++) bar.append(svg("rect", { x: s * 4, y: 0, width: 4.5, height: 12, fill: ramp(s / 39) }));
    rows.push(make("span", {}, `${number(low)} or less`, bar, `${number(high)} or more`));
    rows.push(make("span", {}, `${title}: ${meaning}`));
  }
  legend.replaceChildren(...rows);
}

function shapeKey(color, shape) {
  const paths = [
    "M7 1.5a5.5 5.5 0 1 0 .01 0z", "M2 2h10v10h-10z", "M7 1l6 11h-12z", "M7 .5l6.5 6.5-6.5 6.5-6.5-6.5z", "M7 13l6-11h-12z",
    "M5 1h4v4h4v4h-4v4h-4v-4h-4v-4h4z", "M3.5 1L7 4.5 10.5 1 13 3.5 9.5 7 13 10.5 10.5 13 7 9.5 3.5 13 1 10.5 4.5 7 1 3.5z",
  ];
  const picture = svg("svg", { width: 14, height: 14, "aria-hidden": "true" });
  picture.append(svg("path", { d: paths[shape], fill: color }));
  return picture;
}
