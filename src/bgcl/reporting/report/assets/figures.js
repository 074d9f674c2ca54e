// Tables of figures: each class, the confusion matrix, predictions that need no training.
function drawFigures() {
  payload.figures.forEach((figures, k) => {
    const id = `figures-${k}`, head = make("tr"), body = make("tbody");
    for (const name of figures.head) head.append(make("th", { scope: "col" }, name));
    for (const row of figures.rows) {
      const line = make("tr");
      row.forEach((cell, i) => line.append(make(i ? "td" : "th", i ? {} : { scope: "row" }, cell)));
      body.append(line);
    }
    byId("figures").append(make("section", { "aria-labelledby": id },
      make("h2", { id }, figures.title),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": id },
        make("table", {}, make("thead", {}, head), body)),
      make("p", { class: "how" }, figures.words)));
  });
}
