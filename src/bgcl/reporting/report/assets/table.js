// The table of nodes to review: filter, sort, select, download.
const reviewTable = (() => {
  const PART = 20, head = byId("table").tHead.rows[0], body = byId("table").tBodies[0];
  const filters = [["all", "all nodes", () => true]];
  if (judged) filters.push(["differ", "prediction differs from the label", (i) => label[i] >= 0 && !correct(i)]);
  if (labeled && label.some((c) => c < 0)) filters.push(["unlabeled", "nodes without a label", (i) => label[i] < 0]);
  for (const [key, words] of filters) byId("filter").append(make("option", { value: key }, words));
  const collator = new Intl.Collator("en", { numeric: true });
  let measure = payload.first_measure, sort = { key: "measure", down: true }, shown = PART, order = [];

  const columns = () => [
    { key: "node", title: "Node", of: idOf, text: true, numeric: !payload.ids },
    ...(labeled ? [{ key: "label", title: "Label", of: (i) => (label[i] < 0 ? "" : classes[label[i]]), text: true }] : []),
    ...(predicts ? [
      { key: "predicted", title: "Predicted", of: (i) => classes[predicted(i)], text: true },
      { key: "probability", title: "Probability", of: sureness },
    ] : []),
    { key: "measure", title: measures.get(measure).title, csv: measure, of: (i) => measures.get(measure).values[i] },
    ...(measure === "astd" ? [] : [{ key: "astd", title: "ASTD", of: (i) => measures.get("astd").values[i] }]),
  ];

  function arrange() {
    const keep = filters.find(([key]) => key === byId("filter").value)[2];
    const column = columns().find((c) => c.key === sort.key) || columns().find((c) => c.key === "measure");
    const sign = sort.down ? -1 : 1, nodes = Uint32Array.from({ length: N }, (_, i) => i).filter(keep);
    if (column.key === "node" && column.numeric) order = sort.down ? nodes.reverse() : nodes;
    else {
      const value = Array.from({ length: N });
      for (const i of nodes) value[i] = column.of(i);
      const compare = column.text ? collator.compare : (a, b) => a - b;
      order = nodes.sort((i, j) => sign * compare(value[i], value[j]) || i - j);
    }
    shown = PART;
    fill();
  }

  function fill() {
    const all = columns();
    head.replaceChildren(...all.map((column) => {
      const on = column.key === sort.key;
      const button = make("button", { type: "button", "data-key": column.key }, `${column.title} ${on ? (sort.down ? "▾" : "▴") : ""}`.trim());
      button.addEventListener("click", () => {
        sort = { key: column.key, down: on ? !sort.down : !column.text };
        arrange();
        head.querySelector(`[data-key="${column.key}"]`).focus();
      });
      const cell = make("th", { scope: "col", class: column.text ? "" : "number" }, button);
      if (on) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      return cell;
    }));
    body.replaceChildren(...Array.from(order.subarray(0, shown), (i) => row(i, all)));
    byId("more").hidden = shown >= order.length;
    byId("count").textContent = `${whole(Math.min(shown, order.length))} of ${whole(order.length)} nodes`;
  }

  function row(i, all) {
    const line = make("tr", i === nodeMap.chosen ? { class: "chosen" } : {});
    for (const column of all) {
      const cell = make("td", { class: column.text ? "text" : "number" });
      if (column.key === "node") {
        const button = make("button", { type: "button", title: idOf(i), "aria-label": `Show node ${idOf(i)} on the map` }, idOf(i));
        button.addEventListener("click", () => nodeMap.choose(i, { from: "table" }));
        cell.append(button);
      } else if (column.key === "predicted" && label[i] >= 0 && !correct(i)) {
        cell.append(make("span", { class: "differs" }, `≠ ${column.of(i)}`));
      } else cell.append(column.text ? column.of(i) : number(column.of(i)));
      line.append(cell);
    }
    line.dataset.node = i;
    return line;
  }

  function csv() {
    const all = columns(), quote = (v) => (/[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
    // As `as_text` in bgcl.data.output: a spreadsheet takes such text for a formula.
    const formula = /^ *[=+\-@|\t\r\n\uff1d\uff0b\uff0d\uff20]/, plain = /^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$/;
    const safe = (v) => (byId("safe").checked && formula.test(v) && !plain.test(v) ? `'${v}` : v);
    // The names of the columns are those of `bgcl predict`: node is the row, id what the user calls it.
    if (payload.ids) all.splice(0, 1, { key: "id", of: idOf, text: true }, { key: "node", of: (i) => i });
    const lines = [all.map((c) => c.csv || c.key).join(",")];
    for (const i of order) lines.push(all.map((c) => quote(c.text ? safe(String(c.of(i))) : String(c.of(i)))).join(","));
    return lines.join("\r\n") + "\r\n";
  }

  byId("filter").addEventListener("change", arrange);
  byId("review-measure").addEventListener("change", (event) => {
    measure = event.target.value;
    sort = { key: "measure", down: true };
    arrange();
  });
  byId("more").addEventListener("click", () => { shown += PART; fill(); });
  byId("download").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    make("a", { href: address, download: "nodes-to-review.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
  byId("review-how").textContent =
    "The most uncertain nodes come first. Select the heading of a column to sort by it. " +
    (judged
      ? "If the prediction differs from the label (≠), one of them is wrong. Sort these nodes by probability to find the labels " +
        "that are most likely to be wrong. "
      : "") +
    "The download contains all nodes that match the filter, in the order shown.";
  arrange();
  return {
    mark(i) {
      for (const line of body.rows) line.classList.toggle("chosen", +line.dataset.node === i);
    },
  };
})();
