// Tables of figures: each class, the confusion matrix, predictions that need no training.
function drawFigures() {
  payload.figures.forEach((figures, k) => {
    const id = `figures-${k}`, head = make("tr"), body = make("tbody");
    figures.head.forEach((name, i) => head.append(make("th", { scope: "col", class: i ? "number" : "" }, name)));
    figures.rows.forEach((row, r) => {
      const line = make("tr"), look = (i) => (!figures.matrix ? "" : i === r + 1 ? " own" : row[i] === "0" ? " none" : "");
      row.forEach((cell, i) => line.append(
        i ? make("td", { class: `number${look(i)}` }, cell) : make("th", { scope: "row" }, cell)));
      body.append(line);
    });
    byId("figures").append(make("section", { "aria-labelledby": id },
      make("h2", { id }, figures.title),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": id },
        make("table", { class: figures.matrix ? "matrix" : "" }, make("thead", {}, head), body)),
      make("p", { class: "how" }, figures.words)));
  });
}
