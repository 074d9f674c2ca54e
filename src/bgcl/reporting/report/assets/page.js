// The page as a whole: header, menus, search, the selected node, colors, print.
const facts = byId("facts");
for (const [name, value] of Object.entries(payload.facts)) {
  facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
}
byId("notes").append(...payload.notes.map((note) => make("p", { class: "note" }, note)));

const s = payload.scores, recommended = `auroc:${payload.first_measure}`;
if (judged) {
  byId("summary-section").hidden = false;
  const best = certainty(payload.first_measure), t = best.coverage.findIndex((share) => share >= 0.8);
  byId("lead").textContent =
    `The model predicts ${percent(s.accuracy)} of the labeled nodes correctly, and ${percent(best.accuracy[t])} of the ` +
    `${Math.round(100 * best.coverage[t])}\u00a0% that it is most certain about.`;
  const tiles = [
    ["Accuracy", percent(s.accuracy), "of the labeled nodes are predicted correctly; higher is better"],
    ["Calibration error", number(s.ece), "difference between confidence and accuracy (ECE); lower is better"],
    ["Error detection", number(s[recommended]), "AUROC of the uncertainty; 1: every error is more uncertain than every correct prediction, 0.5: chance"],
    ["Area under PAvPU", number(s[`pavpu:${payload.first_measure}`]), "correct and certain, or wrong and uncertain, over all thresholds; higher is better"],
  ];
  byId("summary").append(...tiles.map(([name, value, sub]) => make("div", { class: "tile" },
    make("p", { class: "name" }, name), make("span", { class: "value" }, value), make("p", { class: "sub" }, sub))));
}

for (const menu of ["measure", "review-measure"]) {
  byId(menu).append(...payload.measures.map((m) => make("option", { value: m.name }, m.title)));
  byId(menu).value = payload.first_measure;
}
const kinds = [
  ...(labeled ? [["label", "label"]] : []),
  ...(predicts ? [["prediction", "prediction"]] : []),
  ...(judged ? [["right", "correct or wrong"]] : []),
];
if (kinds.length) {
  byId("color").append(make("optgroup", { label: "Class" }, ...kinds.map(([value, words]) => make("option", { value }, words))));
}
byId("color").append(make("optgroup", { label: "Uncertainty" },
  ...payload.measures.map((m) => make("option", { value: m.name }, m.title.toLowerCase()))));
byId("color").value = kinds.length ? kinds[0][0] : payload.first_measure;
byId("color").addEventListener("change", (event) => nodeMap.color(event.target.value));
byId("map").setAttribute("aria-label", `Map of ${whole(N)} nodes`);
byId("map-how").textContent =
  (payload.map.method === "t-SNE"
    ? "Nodes with similar mean embeddings are close to each other (t-SNE). Large distances and the sizes of groups have little meaning. "
    : "The axes are the two directions in which the mean embeddings differ most (PCA). To separate groups more clearly with t-SNE, install bgcl[report]. ") +
  `Select a node to see ${payload.draws} draws of its embedding. Each draw is placed between the nodes with the most similar mean embeddings. ` +
  "If the draws are close together, the model is sure about the node. If they spread over several groups, the node could belong to any of them. " +
  "Discs are draws of view o, triangles are draws of view t. Keyboard: the arrow keys move from node to node, + and − zoom, 0 shows all nodes, Escape clears the selection. " +
  "The mouse wheel zooms after a click on the map.";

// The selected node.
function showDetails(i) {
  byId("details-title").textContent = i < 0 ? "No node selected" : `Node ${idOf(i)}`;
  const box = byId("details");
  if (i < 0) {
    box.replaceChildren(make("p", { class: "how" }, "Select a node on the map, in the search or in the table below to see its draws."));
    return;
  }
  const rows = [], row = (name, value, style) => rows.push(make("dt", {}, name), make("dd", style ? { class: style } : {}, value));
  if (labeled) row("Label", nameOf(label[i]));
  if (predicts) row("Predicted", nameOf(predicted(i)), label[i] >= 0 && !correct(i) ? "differs" : "");
  const set = setsPanel.of(i);
  if (set) row(...set);
  const parts = [make("dl", {}, ...rows)];
  if (predicts) parts.push(probabilityBars(i));
  const shares = [...measures.values()].flatMap((m) => {
    let less = 0;
    for (let j = 0; j < N; j++) less += m.values[j] < m.values[i] ? 1 : 0;
    return [make("dt", { title: m.meaning }, m.title), make("dd", {}, `${number(m.values[i])} · ${Math.round((100 * less) / N)} %`)];
  });
  parts.push(make("dl", {}, ...shares), make("p", { class: "how" }, "Each measure of uncertainty, and the share of nodes that are less uncertain."));
  box.replaceChildren(...parts);
}

function probabilityBars(i) {
  const high = 24 * shownClasses, picture = svg("svg", { viewBox: `0 0 260 ${high}`, role: "img" });
  const words = [];
  for (let k = 0; k < shownClasses; k++) {
    const c = likeliest[i * shownClasses + k], p = probability[i * shownClasses + k] / FULL, name = classes[c];
    words.push(`${name} ${percent(p)}`);
    picture.append(svg("rect", { x: 0, y: 24 * k + 16, width: 260, height: 5, rx: 2, class: "fp", "fill-opacity": 0.2 }));
    picture.append(svg("rect", { x: 0, y: 24 * k + 16, width: 260 * p, height: 5, rx: 2, class: "f0" }));
    picture.append(svg("text", { x: 0, y: 24 * k + 12, class: "key" }, name.length > 26 ? `${name.slice(0, 25)}…` : name));
    picture.append(svg("text", { x: 260, y: 24 * k + 12, "text-anchor": "end" }, percent(p)));
  }
  picture.setAttribute("aria-label", `Probabilities: ${words.join(", ")}`);
  return picture;
}

nodeMap.onChoice((i, from) => {
  showDetails(i);
  reviewTable.mark(i);
  byId("announce").textContent = i < 0 ? "No node selected" :
    `Node ${idOf(i)}${labeled ? `, label ${nameOf(label[i])}` : ""}${predicts ? `, predicted ${nameOf(predicted(i))} with ${percent(sureness(i))}` : ""}`;
  if (from === "table") byId("stage").scrollIntoView({ block: "nearest" });
});

// Search by id: first equal ids, then ids that begin with the text, then ids that contain it.
const search = byId("search"), list = byId("found");
let hits = [], active = 0;
function find() {
  const text = search.value.trim().toLowerCase(), groups = [[], [], []];
  if (text) {
    for (let i = 0; i < N; i++) {
      const at = idOf(i).toLowerCase().indexOf(text);
      if (at >= 0) {
        const kind = at > 0 ? 2 : idOf(i).length === text.length ? 0 : 1;
        if (groups[kind].length < 8) groups[kind].push(i);
      }
    }
  }
  hits = groups.flat().slice(0, 8);
  active = 0;
  showHits(Boolean(text));
}
function showHits(open) {
  list.hidden = !open;
  search.setAttribute("aria-expanded", String(open));
  list.replaceChildren(...hits.map((i, k) => {
    const line = make("li", { role: "option", id: `hit-${k}`, "aria-selected": String(k === active) }, idOf(i));
    line.addEventListener("pointerdown", (event) => { event.preventDefault(); take(k); });
    return line;
  }));
  if (open && !hits.length) list.append(make("li", { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "No node has this id"));
  if (open && hits.length) search.setAttribute("aria-activedescendant", `hit-${active}`);
  else search.removeAttribute("aria-activedescendant");
}
function take(k) {
  if (!hits.length) return;
  nodeMap.choose(hits[k]);
  search.value = idOf(hits[k]);
  hits = [];
  showHits(false);
}
search.addEventListener("input", find);
search.addEventListener("blur", () => showHits(false));
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { if (!hits.length) find(); take(active); }
  else if (event.key === "Escape") showHits(false);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && hits.length) {
    active = (active + (event.key === "ArrowDown" ? 1 : hits.length - 1)) % hits.length;
    showHits(true);
  } else return;
  event.preventDefault();
});

// Colors of the page: as the system, light or dark.
const themes = [["", "system"], ["light", "light"], ["dark", "dark"]];
let chosenTheme = 0;
byId("theme").addEventListener("click", () => {
  chosenTheme = (chosenTheme + 1) % themes.length;
  const [value, words] = themes[chosenTheme];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = `Colors: ${words}`;
  byId("theme").setAttribute("aria-label", `Colors: ${words}. Change.`);
  nodeMap.color();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => nodeMap.color());
// Printed pages are light, whatever the screen is.
const paper = (on) => () => { printing = on; nodeMap.color(); nodeMap.draw(); };
window.addEventListener("beforeprint", paper(true));
window.addEventListener("afterprint", paper(false));

if (payload.reliability && judged) drawReliability();
drawFigures();
if (payload.training) drawTraining();
if (payload.rates.length) drawRates();
let lastWidth = document.documentElement.clientWidth;
new ResizeObserver(() => {
  const width = document.documentElement.clientWidth;
  if (width === lastWidth || printing) return;
  lastWidth = width;
  redrawn.forEach((again) => again());
}).observe(document.documentElement);
nodeMap.resize();
nodeMap.color(byId("color").value);
nodeMap.draw();
document.documentElement.dataset.ready = "yes";
