// Charts of calibration, training and drop rates.
function drawReliability() {
  const bins = payload.reliability;
  byId("reliability-section").hidden = false;
  drawnToFit(byId("reliability"), (width) => {
    const parent = byId("reliability"), count = bins.count.length, total = bins.count.reduce((a, b) => a + b, 0);
    const c = chart(parent, {
      width, height: Math.min(380, width * 0.8), x: [0, 1], y: [0, 1], xLabel: "probability of the predicted class", yLabel: "Share of correct predictions",
      title: "Share of correct predictions by their probability", format: (v) => `${Math.round(100 * v)} %`,
    });
    const full = [...bins.count.keys()].filter((b) => bins.count[b] > 0);
    for (const b of full) c.bar(b / count, (b + 1) / count, 0, bins.accuracy[b], "f0", 0.28);
    c.line([0, 1], [0, 1], "plain", "5 4");
    c.line(full.map((b) => bins.confidence[b]), full.map((b) => bins.accuracy[b]), "s0");
    for (const b of full) {
      c.root.append(svg("circle", { class: "f0", cx: c.px(bins.confidence[b]), cy: c.py(bins.accuracy[b]), r: 3.5 }));
    }
    const most = Math.max(...bins.count) / total;
    const h = chart(parent, {
      width, height: 120, x: [0, 1], y: [0, most], yTicks: 2, format: (v) => `${Math.round(100 * v)} %`,
      yLabel: "Share of nodes with this probability", title: "Share of nodes by the probability of the predicted class",
    });
    for (const b of full) h.bar(b / count, (b + 1) / count, 0, bins.count[b] / total, "fp", 0.6);
  });
  byId("reliability-how").textContent =
    `Of the nodes that are predicted with a probability of 80 %, 80 % should be correct. Then the points lie on the dashed line. ` +
    `Above the line the model is underconfident, below it overconfident. The expected calibration error (ECE) is the mean ` +
    `distance from the line, weighted by the number of nodes: ${number(payload.scores.ece)}.`;
}

function range(values, share = 0.05) {
  const seen = values.filter((v) => v !== null && Number.isFinite(v));
  const low = Math.min(...seen), high = Math.max(...seen), room = (high - low) * share || 0.1;
  return [low - room, high + room];
}

function drawTraining() {
  byId("training-section").hidden = false;
  const t = payload.training, epochs = [Math.min(t.epoch[0], t.epoch[t.epoch.length - 1] - 1), t.epoch[t.epoch.length - 1]];
  const second = t.recognized ? ["recognized", "How well a node is recognized"] : ["kl", "KL divergence of the drop rates"];
  byId("training-how").textContent = t.recognized
    ? "Left: the contrastive loss, which should fall and level off. Right: how well a node is recognized by another view of it, as a log likelihood. Training ends when the second half of the epochs has added little to it."
    : "Left: the contrastive loss, which should fall and level off. Right: the KL divergence between the posterior of the drop rates and their prior. At 0 the model has learned nothing about what to drop.";
  for (const [key, title] of [["loss", "Loss"], second]) {
    const parent = make("div");
    byId("training").append(parent);
    drawnToFit(parent, (width) => {
      const c = chart(parent, { width, height: 230, x: epochs, y: range(t[key]), xLabel: "epoch", yLabel: title, title: `${title} by epoch` });
      c.line(t.epoch, t[key], key === "loss" ? "s0" : "s1");
    });
  }
}

function drawRates() {
  byId("rates-section").hidden = false;
  const views = [["o", "0", ""], ["t", "1", "7 4"]];
  for (const rate of payload.rates) {
    const parent = make("div", { class: "charts" }), over = make("div"), density = make("div");
    const learned = views.filter(([view]) => rate.views[view].quantiles);
    const means = views.map(([view]) => `view ${view}: mean ${number(rate.views[view].mean.at(-1), 2)}`).join(", ");
    parent.append(make("h3", {}, `${rate.name}${learned.length ? "" : " (fixed)"}`), over, density);
    byId("rates").append(parent);
    drawnToFit(over, (width) => {
      const first = Math.min(rate.epoch[0], rate.epoch.at(-1) - 1);
      const c = chart(over, { width, height: 220, x: [first, rate.epoch.at(-1)], y: [0, 1], xLabel: "epoch", yLabel: "Drop rate", title: `Drop rate of ${rate.name} by epoch; ${means}` });
      for (const [view, color] of learned) {
        const q = rate.views[view].quantiles;
        c.band(rate.epoch, q[0], q[4], `f${color}`, 0.1);
        c.band(rate.epoch, q[1], q[3], `f${color}`, 0.16);
      }
      for (const [view, color, dash] of views) {
        const part = rate.views[view];
        c.line(rate.epoch, part.quantiles ? part.quantiles[2] : part.mean, `s${color}`, dash);
      }
      over.append(keys(views.map(([view, color, dash]) => [`s${color}`, dash, `view ${view}, mean ${number(rate.views[view].mean.at(-1), 2)}`])));
    });
    if (!learned.length) continue;
    drawnToFit(density, (width) => {
      const top = Math.min(12, 1.08 * Math.max(1, ...learned.flatMap(([view]) => [...rate.views[view].last, ...rate.views[view].first])));
      const c = chart(density, { width, height: 220, x: [0, 1], y: [0, top], yTicks: 4, xLabel: "drop rate", yLabel: "Density", title: `Posterior density of the drop rate of ${rate.name}` });
      const capped = (values) => values.map((v) => Math.min(v, top));
      for (const [view, color, dash] of learned) {
        c.line(payload.grid, capped(rate.views[view].first), `s${color}`, "1 4");
        c.band(payload.grid, payload.grid.map(() => 0), capped(rate.views[view].last), `f${color}`, 0.1);
        c.line(payload.grid, capped(rate.views[view].last), `s${color}`, dash);
      }
    });
  }
}
