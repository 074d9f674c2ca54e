// Unknown nodes: where they are, why they are strange, and which known nodes are nearest. Sets of classes at a level.
const nodeButton = (i) => {
  const button = make("button", { type: "button", title: idOf(i), "aria-label": `Show node ${idOf(i)} on the map` }, idOf(i));
  button.addEventListener("click", () => nodeMap.choose(i, { from: "table" }));
  return button;
};

if (payload.unknown) {
  const found = payload.unknown, body = byId("unknown").tBodies[0], PART = 20;
  byId("unknown-section").hidden = false;
  const titles = ["Node", "Novelty", "Why", ...(predicts ? ["Predicted"] : []), "Nearest known nodes"];
  byId("unknown").tHead.append(make("tr", {}, ...titles.map((name) =>
    make("th", { scope: "col", class: name === "Novelty" ? "number" : "" }, name))));
  const show = () => {
    const from = body.rows.length;
    for (let k = from; k < Math.min(from + PART, found.nodes.length); k++) {
      const i = found.nodes[k], near = make("td", { class: "text near" });
      for (const j of found.nearest[k].filter((node) => node >= 0)) {
        near.append(make("span", {}, nodeButton(j), label[j] >= 0 ? ` ${nameOf(label[j])}` : ""));
      }
      body.append(make("tr", {}, make("td", { class: "text" }, nodeButton(i)), make("td", { class: "number" }, number(found.novelty[k])),
        make("td", {}, found.reasons[k]), ...(predicts ? [make("td", { class: "text" }, nameOf(predicted(i)))] : []), near));
    }
    byId("unknown-more").hidden = body.rows.length >= found.nodes.length;
  };
  byId("unknown-more").addEventListener("click", show);
  show();
  byId("unknown-how").textContent =
    "Novelty is the share of known nodes that are at least as strange: by their attributes, by how they fit their neighbors" +
    (predicts ? ", and by how far they are from labeled nodes. " : ". ") +
    "Nodes of this graph are compared with each other, so some are always strange: look at the reasons. Select a node to see where it is; " +
    "the map can show the strangeness of all nodes. Nearest known nodes are those with the most similar embeddings" +
    (labeled ? ", with their labels." : ".");
}

const setsPanel = (() => {
  if (!payload.sets) return { of: () => null };
  const { levels, needed, calibration } = payload.sets, size = unpack(payload.sets.size, Uint16Array), slider = byId("level");
  const counts = levels.map((_, k) => {
    const sizes = size.subarray(k * N, (k + 1) * N), mean = sizes.reduce((sum, s) => sum + s, 0) / N;
    const share = (test) => sizes.reduce((sum, s) => sum + (test(s) ? 1 : 0), 0) / N;
    return { mean, one: share((s) => s === 1), several: share((s) => s > 1), none: share((s) => s === 0) };
  });
  const TILES = [
    ["mean", "Classes in a set", (c) => number(c.mean, 2), "on average"],
    ["one", "One class", (c) => percent(c.one), "of the sets have exactly one class: an answer"],
    ["several", "Several classes", (c) => percent(c.several), "of the sets: the model cannot decide"],
    ["none", "No class", (c) => percent(c.none), "of the sets: no class fits as well as that of a labeled node"],
  ];
  byId("sets-section").hidden = false;
  slider.max = levels.length - 1;
  slider.value = Math.max(0, levels.indexOf(0.9));
  let marker = null, drawn = null;
  for (const [key, title, , words] of TILES) {
    byId("set-numbers").append(make("div", { class: "tile" }, make("p", { class: "name" }, title),
      make("output", { class: "value", id: `sets-${key}`, for: "level" }), make("p", { class: "sub" }, words)));
  }
  const levelText = (k) => `${+(100 * levels[k]).toFixed(1)} %`;

  function update() {
    const k = +slider.value;
    byId("level-value").textContent = levelText(k);
    slider.setAttribute("aria-valuetext", levelText(k));
    for (const [key, , text] of TILES) {
      byId(`sets-${key}`).textContent = text(counts[k]);
      byId(`sets-${key}`).dataset.value = counts[k][key];
    }
    marker.setAttribute("x1", drawn.px(levels[k]));
    marker.setAttribute("x2", drawn.px(levels[k]));
    byId("sets-how").textContent =
      `A class is in the set of a node if its probability is at least ${number(Math.max(0, needed[k]))}. ${whole(calibration)} labeled nodes, ` +
      "whose labels were held out, say which probability that has to be (split conformal prediction). The level holds on average over nodes that " +
      "are like the labeled ones, as if these had been chosen at random. bgcl predict --level writes the sets.";
    if (nodeMap.chosen >= 0) showDetails(nodeMap.chosen);
  }

  drawnToFit(byId("sets-chart"), (width) => {
    drawn = chart(byId("sets-chart"), {
      width, height: 240, x: [levels[0], levels[levels.length - 1]], y: [0, 1], format: (v) => `${Math.round(100 * v)} %`,
      xLabel: "level", title: "Share of sets with one class, several and none, by level",
    });
    drawn.line(levels, counts.map((c) => c.one), "s0");
    drawn.line(levels, counts.map((c) => c.several), "s1", DASH[1]);
    drawn.line(levels, counts.map((c) => c.none), "s2", DASH[2]);
    marker = svg("line", { class: "mark", y1: drawn.py(0), y2: drawn.py(1) });
    drawn.root.append(marker);
    byId("sets-chart").append(keys([["s0", "", "one class"], ["s1", DASH[1], "several classes"], ["s2", DASH[2], "no class"]]));
    update();
  });
  slider.addEventListener("input", update);
  return {
    // The set of a node in words. The page has the likeliest classes alone.
    of(i) {
      const count = size[+slider.value * N + i], shown = Math.min(count, shownClasses);
      const names = Array.from({ length: shown }, (_, k) => nameOf(likeliest[i * shownClasses + k]));
      return [`Set at ${levelText(+slider.value)}`, (names.join(", ") || "empty") + (count > shown ? ` and ${count - shown} more` : "")];
    },
  };
})();
