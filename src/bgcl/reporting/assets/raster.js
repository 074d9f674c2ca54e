// Nodes drawn into pixels by hand: tens of thousands in a few milliseconds, with no graphics processor.
const INSIDE = [
  (x, y) => x * x + y * y <= 1, // circle
  (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.86, // square
  (x, y) => y <= 0.75 && y >= 1.9 * Math.abs(x) - 1.15, // triangle
  (x, y) => Math.abs(x) + Math.abs(y) <= 1.18, // diamond
  (x, y) => -y <= 0.75 && -y >= 1.9 * Math.abs(x) - 1.15, // triangle on its point
  (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.36 && Math.max(Math.abs(x), Math.abs(y)) <= 1.1, // plus
  (x, y) => Math.abs(Math.abs(x) - Math.abs(y)) <= 0.5 && Math.max(Math.abs(x), Math.abs(y)) <= 1.1, // cross
];

// How much of each pixel a shape covers, 0 to 255, and how much its halo does.
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

// Draw nodes at pixel places `xs`, `ys` in `order`; `faint` says which to fade.
function paint(context, xs, ys, look, radius, halo, ground, faint) {
  const { width, height } = context.canvas, image = context.createImageData(width, height), data = image.data;
  const base = rgb(ground), pixels = new Uint32Array(data.buffer);
  pixels.fill((255 << 24) | (base[2] << 16) | (base[1] << 8) | base[0]);
  const sprites = INSIDE.map((_, shape) => sprite(shape, shape === 6 ? radius * 1.25 : radius, halo));
  const strong = look.colours.map(rgb), weak = look.colours.map((c) => rgb(mix(c, ground, 0.86)));
  for (let pass = faint ? 0 : 1; pass < 2; pass++) {
    for (let k = 0; k < look.order.length; k++) {
      const i = look.order[k];
      if (faint && faint[i] !== 1 - pass) continue;
      const { side, reach, fill, rim } = sprites[look.shapeOf[i]];
      const left = Math.round(xs[i]) - reach, top = Math.round(ys[i]) - reach;
      if (left + side <= 0 || top + side <= 0 || left >= width || top >= height) continue;
      const [r, g, b] = (pass === 0 ? weak : strong)[look.colourOf[i]];
      const x0 = Math.max(0, -left), x1 = Math.min(side, width - left);
      const y1 = Math.min(side, height - top);
      for (let y = Math.max(0, -top); y < y1; y++) {
        let s = y * side + x0, p = ((top + y) * width + left + x0) * 4;
        for (let x = x0; x < x1; x++, s++, p += 4) {
          const h = rim[s], f = fill[s];
          if (h && f < 255) {
            data[p] += ((base[0] - data[p]) * h) >> 8;
            data[p + 1] += ((base[1] - data[p + 1]) * h) >> 8;
            data[p + 2] += ((base[2] - data[p + 2]) * h) >> 8;
          }
          if (f) {
            data[p] += ((r - data[p]) * f) / 255;
            data[p + 1] += ((g - data[p + 1]) * f) / 255;
            data[p + 2] += ((b - data[p + 2]) * f) / 255;
          }
        }
      }
    }
  }
  context.putImageData(image, 0, 0);
}
