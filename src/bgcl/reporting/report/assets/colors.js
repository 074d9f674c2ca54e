// Colors that color-blind people can tell apart (Okabe and Ito, 2008), and shapes, for light and dark backgrounds.
const PALETTE = {
  light: ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8400", "#4d4d4d"],
  dark: ["#4aa8e8", "#f0b02e", "#1cc296", "#ff7b33", "#e5a0c6", "#a5dcff", "#f0e442", "#c4c4c4"],
};
const UNKNOWN = { light: "#a3a9b0", dark: "#68717b" };
const GROUND = { light: "#ffffff", dark: "#14171b" };
// Viridis at nine equally spaced points.
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

const classColor = (c) => (c < 0 ? UNKNOWN[theme()] : PALETTE[theme()][c % 8]);
// With more than eight classes, colors repeat with another shape: 48 classes look different.
const classShape = (c) => (c < 0 ? 0 : classes.length <= 8 ? c % 4 : (c + 5 * Math.floor(c / 8)) % 6);

// Color for a share from 0 (lowest) to 1 (highest). High uncertainty stands out: dark on light, bright on dark.
function ramp(share) {
  const at = (theme() === "dark" ? 0.14 + 0.86 * share : 0.9 - 0.9 * share) * (VIRIDIS.length - 1);
  const left = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return mix(VIRIDIS[left], VIRIDIS[left + 1], at - left);
}

const STEPS = 64;
// How nodes look: an index of color and of shape for each node, and the order in which they are drawn.
function looks(by) {
  const colorOf = new Uint16Array(N), shapeOf = new Uint8Array(N);
  if (by === "label" || by === "prediction") {
    const of = by === "label" ? (i) => label[i] : predicted;
    for (let i = 0; i < N; i++) { colorOf[i] = of(i) + 1; shapeOf[i] = classShape(of(i)); }
    const colors = [-1, ...classes.keys()].map(classColor);
    const order = ascending(colorOf.map((c, i) => (c === 0 ? 0 : 1 + ((i * 7919) % 97))));
    return { colorOf, shapeOf, colors, order };
  }
  if (by === "right") {
    for (let i = 0; i < N; i++) {
      colorOf[i] = label[i] < 0 ? 0 : correct(i) ? 1 : 2;
      shapeOf[i] = colorOf[i] === 2 ? 6 : 0;
    }
    const palette = PALETTE[theme()];
    return { colorOf, shapeOf, colors: [UNKNOWN[theme()], palette[5], palette[3]], order: ascending(colorOf) };
  }
  const { values } = measures.get(by), order = ascending(values), [low, high] = ends(values, order);
  for (let i = 0; i < N; i++) {
    colorOf[i] = Math.round((STEPS - 1) * Math.min(Math.max((values[i] - low) / (high - low || 1), 0), 1));
  }
  return { colorOf, shapeOf, colors: Array.from({ length: STEPS }, (_, s) => ramp(s / (STEPS - 1))), order };
}

// The range of a color scale: from the 1st to the 99th percentile.
function ends(values, order) {
  const at = (share) => values[order[Math.round(share * (N - 1))]];
  return [at(0.01), at(0.99)];
}
