// The data of the page, from JSON and base64.
const byId = (id) => document.getElementById(id);
const payload = JSON.parse(byId("payload").textContent);

function unpack(text, Kind) {
  const bytes = atob(text), array = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
  return new Kind(array.buffer);
}

const N = payload.nodes, classes = payload.classes, FULL = 65535;
const label = unpack(payload.label, Int16Array); // an index into `classes`, -1 for none
const position = unpack(payload.map.position, Uint16Array); // x, y of each node
const cloud = unpack(payload.map.cloud, Uint16Array); // x, y of each draw of each node
const predicts = payload.likeliest !== undefined;
const shownClasses = payload.shown_classes || 0;
const likeliest = predicts ? unpack(payload.likeliest, Uint16Array) : null;
const probability = predicts ? unpack(payload.probability, Uint16Array) : null;
const measures = new Map(payload.measures.map((m) => [m.name, { ...m, values: unpack(m.values, Float64Array) }]));

const idOf = (i) => (payload.ids ? payload.ids[i] : String(i));
const predicted = (i) => (predicts ? likeliest[i * shownClasses] : -1);
const sureness = (i) => probability[i * shownClasses] / FULL;
const correct = (i) => predicted(i) === label[i];
const nameOf = (c) => (c < 0 ? "none" : classes[c]);
const labeled = label.some((c) => c >= 0);
const judged = predicts && labeled; // some predictions can be compared with a label

// Small numbers keep their significant digits.
function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0 || size >= 0.1) return value.toFixed(digits);
  return size < 0.0001 ? value.toExponential(digits - 1) : value.toPrecision(digits);
}
const percent = (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "–");
const whole = (value) => value.toLocaleString("en");

// An element with attributes and children. Text is added as text, so that no id or class name can become markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Indices sorted by value, ascending; equal values keep their order.
function ascending(values, among) {
  const order = among ? Uint32Array.from(among) : Uint32Array.from({ length: values.length }, (_, i) => i);
  return order.sort((i, j) => values[i] - values[j] || i - j);
}
