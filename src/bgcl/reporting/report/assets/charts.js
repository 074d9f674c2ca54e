// Small charts as SVG.
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Round numbers that divide a range into about `count` parts.
function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const size = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let v = Math.ceil(low / size - 1e-9) * size; v <= high + size * 1e-9; v += size) found.push(Math.abs(v) < size / 1e6 ? 0 : v);
  return found;
}
const tickText = (value) => (Math.abs(value) >= 1e4 || (value && Math.abs(value) < 1e-3) ? value.toExponential(0) : String(+value.toPrecision(5)));

// An empty chart with axes. Returns functions that draw into it.
function chart(parent, { width, height = 260, x, y, xLabel = "", yLabel = "", title, yTicks = 5, format = tickText }) {
  const left = 52, right = 14, top = yLabel ? 26 : 12, bottom = xLabel ? 44 : 26;
  const px = (v) => left + ((v - x[0]) / (x[1] - x[0] || 1)) * (width - left - right);
  const py = (v) => height - bottom - ((v - y[0]) / (y[1] - y[0] || 1)) * (height - top - bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  for (const v of ticks(...y, yTicks)) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }));
    root.append(svg("text", { x: left - 7, y: py(v) + 4, "text-anchor": "end" }, format(v)));
  }
  for (const v of ticks(...x, width > 420 ? 6 : 4)) {
    if (xLabel === "epoch" && !Number.isInteger(v)) continue;
    root.append(svg("text", { x: px(v), y: height - bottom + 17, "text-anchor": "middle" }, tickText(v)));
  }
  root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  if (xLabel) root.append(svg("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, xLabel));
  if (yLabel) root.append(svg("text", { x: left, y: 13, class: "key" }, yLabel));
  parent.append(root);
  const path = (xs, ys) => {
    let d = "", pen = "M";
    for (let i = 0; i < xs.length; i++) {
      if (ys[i] === null || !Number.isFinite(ys[i])) { pen = "M"; continue; }
      d += `${pen}${px(xs[i]).toFixed(1)} ${py(ys[i]).toFixed(1)}`;
      pen = "L";
    }
    return d;
  };
  return {
    root, px, py,
    line(xs, ys, style, dash) {
      const line = svg("path", { class: `line ${style}`, d: path(xs, ys) });
      if (dash) line.setAttribute("stroke-dasharray", dash);
      root.append(line);
    },
    band(xs, lower, upper, style, opacity) {
      const back = [...xs.keys()].reverse();
      const d = path(xs, lower) + path(back.map((i) => xs[i]), back.map((i) => upper[i])).replace("M", "L") + "Z";
      root.append(svg("path", { class: style, d, "fill-opacity": opacity, stroke: "none" }));
    },
    bar(x0, x1, y0, y1, style, opacity) {
      root.append(svg("rect", {
        class: style, x: px(x0) + 0.5, width: Math.max(0, px(x1) - px(x0) - 1), y: py(y1), height: Math.max(0, py(y0) - py(y1)),
        "fill-opacity": opacity,
      }));
    },
    text(v, w, words, anchor = "start", style = "key") {
      root.append(svg("text", { x: px(v), y: py(w), "text-anchor": anchor, class: style }, words));
    },
  };
}

// The legend below a chart: color, dash and name of each line.
function keys(entries) {
  return make("div", { class: "legend" }, ...entries.map(([style, dash, words]) => {
    const line = svg("line", { class: `line ${style}`, x1: 0, x2: 30, y1: 6, y2: 6 });
    if (dash) line.setAttribute("stroke-dasharray", dash);
    return make("span", {}, svg("svg", { width: 30, height: 12, "aria-hidden": "true" }, line), words);
  }));
}

const DASH = ["", "7 4", "2 4"];
const redrawn = []; // functions to call again when the width of the page changes
function drawnToFit(parent, action) {
  const again = () => { parent.replaceChildren(); action(Math.max(260, Math.min(1100, parent.clientWidth || 600))); };
  redrawn.push(again);
  again();
}
