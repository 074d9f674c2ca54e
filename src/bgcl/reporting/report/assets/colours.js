// Colours that the colour-blind tell apart (Okabe and Ito, 2008), with shapes, for light and dark grounds.
const PALETTE = {
  light: ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8400", "#4d4d4d"],
  dark: ["#4aa8e8", "#f0b02e", "#1cc296", "#ff7b33", "#e5a0c6", "#a5dcff", "#f0e442", "#c4c4c4"],
};
const UNKNOWN = { light: "#a3a9b0", dark: "#68717b" };
const GROUND = { light: "#ffffff", dark: "#14171b" };
// Viridis, as its values at nine places.
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];

let printing = false;
function theme() {
  if (printing) return "light";
  const chosen = document.documentElement.dataset.theme;
  return chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const hexOf = (parts) => "#" + parts.map((p) => Math.round(p).toString(16).padStart(2, "0")).join("");
const mix = (a, b, share) => hexOf(rgb(a).map((part, i) => part + (rgb(b)[i] - part) * share));

const classColour = (c) => (c < 0 ? UNKNOWN[theme()] : PALETTE[theme()][c % 8]);
// Beyond eight classes colours come again, with another shape.
const classShape = (c) => (c < 0 ? 0 : classes.length <= 8 ? c % 4 : (c + Math.floor(c / 8)) % 6);

// 0 (least) to 1 (greatest). What is most uncertain stands out: dark on a light ground, bright on a dark one.
function ramp(share) {
  const at = (theme() === "dark" ? 0.14 + 0.86 * share : 0.9 - 0.9 * share) * (VIRIDIS.length - 1);
  const left = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return mix(VIRIDIS[left], VIRIDIS[left + 1], at - left);
}

const STEPS = 64;
// How nodes look: for each a colour and a shape by number, and the order in which they are drawn.
function looks(by) {
  const colourOf = new Uint16Array(N), shapeOf = new Uint8Array(N);
  if (by === "label" || by === "prediction") {
    const of = by === "label" ? (i) => label[i] : predicted;
    for (let i = 0; i < N; i++) { colourOf[i] = of(i) + 1; shapeOf[i] = classShape(of(i)); }
    const colours = [-1, ...classes.keys()].map(classColour);
    const order = ascending(colourOf.map((c, i) => (c === 0 ? 0 : 1 + ((i * 7919) % 97))));
    return { colourOf, shapeOf, colours, order };
  }
  if (by === "right") {
    for (let i = 0; i < N; i++) {
      colourOf[i] = label[i] < 0 ? 0 : correct(i) ? 1 : 2;
      shapeOf[i] = colourOf[i] === 2 ? 6 : 0;
    }
    const palette = PALETTE[theme()];
    return { colourOf, shapeOf, colours: [UNKNOWN[theme()], palette[5], palette[3]], order: ascending(colourOf) };
  }
  const { values } = measures.get(by), order = ascending(values), [low, high] = ends(values, order);
  for (let i = 0; i < N; i++) {
    colourOf[i] = Math.round((STEPS - 1) * Math.min(Math.max((values[i] - low) / (high - low || 1), 0), 1));
  }
  return { colourOf, shapeOf, colours: Array.from({ length: STEPS }, (_, s) => ramp(s / (STEPS - 1))), order };
}

// The range of a colour scale: all but the hundredth at either end.
function ends(values, order) {
  const at = (share) => values[order[Math.round(share * (N - 1))]];
  return [at(0.01), at(0.99)];
}
