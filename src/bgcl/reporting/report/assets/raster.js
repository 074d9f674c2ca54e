// Draws nodes directly into pixels: tens of thousands in a few milliseconds, without a GPU.
const INSIDE = [
  (x, y) => x * x + y * y <= 1, // circle
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.86, // square
  (x, y) => y <= 0.75 && y >= 1.9 * Math.abs(x) - 1.15, // triangle
  (x, y) => Math.abs(x) + Math.abs(y) <= 1.18, // diamond
  (x, y) => -y <= 0.75 && -y >= 1.9 * Math.abs(x) - 1.15, // triangle, upside down
  (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.36 && Math.max(Math.abs(x), Math.abs(y)) <= 1.1, // plus
  (x, y) => Math.abs(Math.abs(x) - Math.abs(y)) <= 0.5 && Math.max(Math.abs(x), Math.abs(y)) <= 1.1, // cross
];

// How much of each pixel a shape and its halo cover, 0 to 255.
function sprite(shape, radius, halo) {
  const reach = Math.ceil(radius * 1.2 + halo), side = 2 * reach + 1;
  const fill = new Uint8Array(side * side), rim = new Uint8Array(side * side);
  const grown = 1 + halo / radius;
  for (let p = 0; p < side * side; p++) {
    let inside = 0, around = 0;
    for (let s = 0; s < 16; s++) {
      const x = ((p % side) - reach + ((s % 4) - 1.5) / 4) / radius;
      const y = (Math.floor(p / side) - reach + (Math.floor(s / 4) - 1.5) / 4) / radius;
      if (INSIDE[shape](x, y)) inside++;
      if (halo && INSIDE[shape](x / grown, y / grown)) around++;
    }
    fill[p] = Math.round((255 * inside) / 16);
    rim[p] = Math.round((200 * around) / 16);
  }
  return { side, reach, fill, rim };
}

const kept = { key: "", sprites: [], image: null }; // reused from one drawing to the next

// Draw nodes at the pixels `xs`, `ys`. Nodes with `faint` are faded and drawn first.
function paint(context, xs, ys, look, radius, halo, ground, faint) {
  const { width, height } = context.canvas, base = rgb(ground), key = `${radius} ${halo}`;
  if (kept.key !== key) {
    kept.key = key;
    kept.sprites = INSIDE.map((_, shape) => sprite(shape, shape === 6 ? radius * 1.25 : radius, halo));
  }
  if (!kept.image || kept.image.width !== width || kept.image.height !== height) {
    kept.image = context.createImageData(width, height);
  }
  const data = kept.image.data;
  new Uint32Array(data.buffer).fill(((255 << 24) | (base[2] << 16) | (base[1] << 8) | base[0]) >>> 0);
  const strong = Uint8Array.from(look.colors.flatMap(rgb));
  const weak = Uint8Array.from(look.colors.flatMap((c) => rgb(mix(c, ground, 0.86))));
  for (let pass = faint ? 0 : 1; pass < 2; pass++) {
    const colors = pass === 0 ? weak : strong;
    for (let k = 0; k < look.order.length; k++) {
      const i = look.order[k];
      if (!faint || faint[i] !== pass) stamp(data, width, height, xs[i], ys[i], kept.sprites[look.shapeOf[i]], colors, 3 * look.colorOf[i], base);
    }
  }
  context.putImageData(kept.image, 0, 0);
}

function stamp(data, width, height, x, y, { side, reach, fill, rim }, colors, c, base) {
  const left = Math.round(x) - reach, top = Math.round(y) - reach;
  if (left + side <= 0 || top + side <= 0 || left >= width || top >= height) return;
  const r = colors[c], g = colors[c + 1], b = colors[c + 2], r0 = base[0], g0 = base[1], b0 = base[2];
  const x0 = Math.max(0, -left), x1 = Math.min(side, width - left), y1 = Math.min(side, height - top);
  for (let row = Math.max(0, -top); row < y1; row++) {
    let s = row * side + x0, p = ((top + row) * width + left + x0) * 4;
    for (let column = x0; column < x1; column++, s++, p += 4) {
      const f = fill[s], h = rim[s];
      if (f === 255) {
        data[p] = r; data[p + 1] = g; data[p + 2] = b;
        continue;
      }
      if (h) {
        data[p] += ((r0 - data[p]) * h) >> 8;
        data[p + 1] += ((g0 - data[p + 1]) * h) >> 8;
        data[p + 2] += ((b0 - data[p + 2]) * h) >> 8;
      }
      if (f) {
        data[p] += ((r - data[p]) * f) >> 8;
        data[p + 1] += ((g - data[p + 1]) * f) >> 8;
        data[p + 2] += ((b - data[p + 2]) * f) >> 8;
      }
    }
  }
}
