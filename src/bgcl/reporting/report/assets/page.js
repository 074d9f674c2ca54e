// Everything together: head, menus, search, the chosen node, colours of the page, print.
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
    `The model is right for ${percent(s.accuracy)} of the labelled nodes, and for ${percent(best.accuracy[t])} of the ` +
    `${Math.round(100 * best.coverage[t])} % it is most certain of.`;
  const tiles = [
    ["Accuracy", percent(s.accuracy), "of the labelled nodes are predicted right; more is better"],
    ["Calibration error", number(s.ece), "between confidence and accuracy (ECE); less is better"],
    ["Finding errors", number(s[recommended]), "AUROC of its uncertainty: 1 finds every error first, 0.5 is chance"],
    ["PAvPU, area", number(s[`pavpu:${payload.first_measure}`]), "of justified certainty over all thresholds; more is better"],
  ];
  byId("summary").append(...tiles.map(([name, value, sub]) => make("div", { class: "tile" },
    make("p", { class: "name" }, name), make("span", { class: "value" }, value), make("p", { class: "sub" }, sub))));
}

for (const menu of ["measure", "review-measure"]) {
  byId(menu).append(...payload.measures.map((m) => make("option", { value: m.name }, m.title)));
  byId(menu).value = payload.first_measure;
}
const kinds = [
  ...(labelled ? [["label", "label"]] : []),
  ...(predicts ? [["prediction", "prediction"]] : []),
  ...(judged ? [["right", "right or wrong"]] : []),
];
if (kinds.length) {
  byId("colour").append(make("optgroup", { label: "Class" }, ...kinds.map(([value, words]) => make("option", { value }, words))));
}
byId("colour").append(make("optgroup", { label: "Uncertainty" },
  ...payload.measures.map((m) => make("option", { value: m.name }, m.title.toLowerCase()))));
byId("colour").value = kinds.length ? kinds[0][0] : payload.first_measure;
byId("colour").addEventListener("change", (event) => nodeMap.colour(event.target.value));
byId("map").setAttribute("aria-label", `Map of ${whole(N)} nodes`);
byId("map-how").textContent =
  (payload.map.method === "t-SNE"
    ? "Nodes with similar mean embeddings are near each other (t-SNE). Near means alike; far means little, and so does the size of a group. "
    : "The two directions in which the mean embeddings differ most (PCA). For groups that stand apart more clearly install bgcl[report], which brings t-SNE. ") +
  `Choose a node and see ${payload.draws} draws of its embedding, each put among the nodes whose mean embeddings are most like it: ` +
  "a tight cloud is a node the model is sure about, a cloud over several groups one that could belong to any of them. " +
  "Discs are draws of view o, triangles of view t. With the keyboard: arrows go from node to node, + and − zoom, 0 shows all, Escape lets go. " +
  "The wheel zooms once the map has been clicked on.";

// The chosen node.
function showDetails(i) {
  byId("details-title").textContent = i < 0 ? "No node chosen" : `Node ${idOf(i)}`;
  const box = byId("details");
  if (i < 0) {
    box.replaceChildren(make("p", { class: "how" }, "Choose a node on the map, in the search or in the table below, and see its draws as a cloud."));
    return;
  }
  const rows = [], row = (name, value, style) => rows.push(make("dt", {}, name), make("dd", style ? { class: style } : {}, value));
  if (labelled) row("Label", nameOf(label[i]));
  if (predicts) row("Predicted", nameOf(predicted(i)), label[i] >= 0 && !correct(i) ? "differs" : "");
  const parts = [make("dl", {}, ...rows)];
  if (predicts) parts.push(probabilityBars(i));
  const shares = [...measures.values()].flatMap((m) => {
    let less = 0;
    for (let j = 0; j < N; j++) less += m.values[j] < m.values[i] ? 1 : 0;
    return [make("dt", { title: m.meaning }, m.title), make("dd", {}, `${number(m.values[i])} · ${Math.round((100 * less) / N)} %`)];
  });
  parts.push(make("dl", {}, ...shares), make("p", { class: "how" }, "Each measure, and the share of nodes that are less uncertain by it."));
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
  byId("announce").textContent = i < 0 ? "No node chosen" :
    `Node ${idOf(i)}${labelled ? `, label ${nameOf(label[i])}` : ""}${predicts ? `, predicted ${nameOf(predicted(i))} with ${percent(sureness(i))}` : ""}`;
  if (from === "table") byId("stage").scrollIntoView({ block: "nearest" });
});

// Search by id: those that are the same, begin alike, or hold the text, in this order.
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

// Colours of the page: as the system has them, light or dark.
const themes = [["", "system"], ["light", "light"], ["dark", "dark"]];
let chosenTheme = 0;
byId("theme").addEventListener("click", () => {
  chosenTheme = (chosenTheme + 1) % themes.length;
  const [value, words] = themes[chosenTheme];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = `Colours: ${words}`;
  byId("theme").setAttribute("aria-label", `Colours: ${words}. Change.`);
  nodeMap.colour();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => nodeMap.colour());
// Paper is light, whatever the screen is.
const paper = (on) => () => { printing = on; nodeMap.colour(); nodeMap.draw(); };
window.addEventListener("beforeprint", paper(true));
window.addEventListener("afterprint", paper(false));

if (payload.reliability && judged) drawReliability();
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
nodeMap.colour(byId("colour").value);
nodeMap.draw();
document.documentElement.dataset.ready = "yes";
