// A node is certain if its uncertainty is at most the threshold. The numbers are those of bgcl.measures.pavpu with one
// threshold for each step of the slider. 0/0 counts as 1.
const STEPS_OF_SLIDER = 1000;
const judgedNodes = Uint32Array.from({ length: N }, (_, i) => i).filter((i) => !judged || label[i] >= 0);

const curvesOf = new Map();
function certainty(name) {
  if (!curvesOf.has(name)) curvesOf.set(name, allThresholds(measures.get(name).values));
  return curvesOf.get(name);
}

function allThresholds(values) {
  const order = ascending(values, judgedNodes), count = order.length, T = STEPS_OF_SLIDER;
  const sorted = Float64Array.from(order, (i) => values[i]);
  const accurateAmong = new Uint32Array(count + 1); // how many of the k most certain nodes are accurate
  for (let k = 0; k < count; k++) accurateAmong[k + 1] = accurateAmong[k] + (judged && correct(order[k]) ? 1 : 0);
  const low = sorted[0], high = sorted[count - 1], size = (high - low) / T, wrong = count - accurateAmong[count];
  const found = { threshold: [], certain: [], accuracy: [], coverage: [], pavpu: [], caught: [], count, wrong };
  for (let t = 0, k = 0; t <= T; t++) {
    const threshold = t === T ? high : t * size + low;
    while (k < count && sorted[k] <= threshold) k++;
    const accurate = accurateAmong[k], caught = wrong - (k - accurate);
    found.threshold.push(threshold);
    found.certain.push(k);
    found.coverage.push(k / count);
    found.accuracy.push(k ? accurate / k : 1);
    found.caught.push(wrong ? caught / wrong : 1);
    found.pavpu.push((accurate + caught) / count);
  }
  return found;
}

const certaintyPanel = (() => {
  const slider = byId("threshold"), tiles = byId("numbers"), shown = {};
  let name = payload.first_measure, marker = null, drawn = null, announcing = 0;
  const TILES = [
    ...(judged ? [["accuracy", "Accuracy of certain nodes", "of the certain nodes are predicted correctly"]] : []),
    ["coverage", "Coverage", "of the nodes are certain"],
    ...(judged ? [
      ["pavpu", "PAvPU", "of the nodes are correct and certain, or wrong and uncertain"],
      ["caught", "Errors found", "of the wrong predictions are uncertain"],
    ] : []),
  ];
  for (const [key, title] of TILES) {
    shown[key] = make("output", { class: "value", id: `number-${key}`, for: "threshold" });
    shown[key + "-sub"] = make("p", { class: "sub" });
    tiles.append(make("div", { class: "tile" }, make("p", { class: "name" }, title), shown[key], shown[key + "-sub"]));
  }

  function update() {
    const c = certainty(name), t = +slider.value, threshold = c.threshold[t];
    byId("threshold-value").textContent = number(threshold, 4);
    slider.setAttribute("aria-valuetext", `${measures.get(name).title} of at most ${number(threshold, 4)}`);
    for (const [key, , words] of TILES) {
      shown[key].textContent = percent(c[key][t]);
      shown[key].dataset.value = c[key][t];
      shown[key + "-sub"].textContent = words;
    }
    const certain = c.certain[t], right = Math.round(c.accuracy[t] * certain);
    shown["coverage-sub"].textContent = `${whole(certain)} of ${whole(c.count)} ${judged ? "labeled " : ""}nodes are certain`;
    if (judged) {
      shown["accuracy-sub"].textContent = `${certain ? whole(right) : 0} of ${whole(certain)} certain nodes are predicted correctly`;
      shown["caught-sub"].textContent = `${whole(Math.round(c.caught[t] * c.wrong))} of ${whole(c.wrong)} wrong predictions are uncertain`;
    }
    if (marker) {
      const x = drawn.px(threshold);
      marker.setAttribute("x1", x);
      marker.setAttribute("x2", x);
    }
    // Screen readers announce the numbers when the slider rests, not at every step.
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      byId("announce").textContent = TILES.map(([key, title]) => `${title} ${percent(c[key][t])}`).join(", ");
    }, 400);
    fade();
  }

  function fade() {
    if (!byId("fade").checked) return nodeMap.fade(null);
    const { values } = measures.get(name), threshold = certainty(name).threshold[+slider.value];
    const faint = new Uint8Array(N);
    for (let i = 0; i < N; i++) faint[i] = values[i] > threshold ? 1 : 0;
    nodeMap.fade(faint);
  }

  function drawChart(width) {
    const c = certainty(name), xs = c.threshold, parent = byId("threshold-chart");
    drawn = chart(parent, {
      width, height: 280, x: [xs[0], xs[STEPS_OF_SLIDER]], y: [0, 1], format: (v) => `${Math.round(100 * v)} %`,
      xLabel: `threshold of ${measures.get(name).title.toLowerCase()}`,
      title: judged ? "Accuracy of certain nodes, coverage and PAvPU by threshold" : "Coverage by threshold",
    });
    if (judged) drawn.line(xs, c.accuracy, "s0");
    drawn.line(xs, c.coverage, "s1", DASH[1]);
    if (judged) drawn.line(xs, c.pavpu, "s2", DASH[2]);
    marker = svg("line", { class: "mark", y1: drawn.py(0), y2: drawn.py(1) });
    drawn.root.append(marker);
    parent.append(keys([
      ...(judged ? [["s0", "", "accuracy of certain nodes"]] : []), ["s1", DASH[1], "coverage"],
      ...(judged ? [["s2", DASH[2], "PAvPU"]] : []),
    ]));
    update();
  }

  // The slider starts at the highest PAvPU. Without labels it starts at the median, where half of the nodes are certain.
  function begin() {
    const c = certainty(name);
    let t = c.coverage.findIndex((share) => share >= 0.5);
    if (judged) t = c.pavpu.indexOf(Math.max(...c.pavpu));
    slider.value = t;
  }

  function measure(chosen) {
    name = chosen;
    begin();
    byId("threshold-chart").replaceChildren();
    drawChart(Math.max(260, Math.min(1100, byId("threshold-chart").clientWidth || 600)));
  }

  slider.addEventListener("input", update);
  byId("fade").addEventListener("change", fade);
  byId("measure").addEventListener("change", (event) => measure(event.target.value));
  begin();
  drawnToFit(byId("threshold-chart"), drawChart);
  byId("threshold-how").textContent = judged
    ? "Move the slider to the left: fewer nodes are certain, and more of them should be correct. PAvPU is the share of " +
      "nodes that are correct and certain, or wrong and uncertain. The slider starts where PAvPU is highest. " +
      "It goes from the lowest to the highest uncertainty of a labeled node."
    : "Move the slider to the left: fewer nodes are certain. If more nodes had labels, this page would also show how many " +
      "of the certain nodes are predicted correctly.";
})();
