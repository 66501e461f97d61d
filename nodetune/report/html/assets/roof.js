// The roofline of a host's GPUs: how fast work can be by its operations per byte, and where the usual products come.

const FORMATS = ["int8", "fp8", "fp16", "bf16", "tf32", "fp32"], MEMORIES = [["hbm_read", "memory"], ["l2_read", "L2 cache"]];
const PRODUCTS = /^(prefill|decode_\d+|even|odd)$/;

function roofline(figures) {
  const its = figures.filter((each) => each.kind.measurement === "roofline");
  const of = (metric) => its.filter((each) => each.kind.metric === metric);
  const middle = (metric) => median(of(metric).map((each) => each.value));
  const roofs = FORMATS.filter((metric) => of(metric).length).map((metric) => [metric, middle(metric)]).sort((a, b) => b[1] - a[1]);
  const slopes = MEMORIES.filter(([metric]) => of(metric).length).map(([metric, name]) => [name, middle(metric)]);
  if (!roofs.length || !slopes.length || slopes[0][0] !== "memory" || !slopes.every(([, speed]) => speed > 0)) return null;
  const works = [...new Set(its.filter((each) => each.intensity && PRODUCTS.test(each.kind.metric)).map((each) => each.kind.metric))].map((metric) => {
    const some = of(metric);
    return {metric, x: median(some.map((each) => each.intensity)), y: middle(metric), short: some.some((each) => each.status === SHORT)};
  }).filter(({x, y}) => x > 0 && y > 0);
  const ridge = (1000 * (roofs.find(([metric]) => metric === "bf16") || roofs[0])[1]) / slopes[0][1];
  const gpus = new Set(its.map((each) => each.subject)).size, who = gpus > 1 ? `Median of ${plural(gpus, "GPU")}` : "One GPU";
  const words = `Roofline. ${who}: ${slopes.map(([name, speed]) => `${name} ${digits(speed)} GB/s`).join(", ")}, ${roofs.map(([metric, speed]) => `${metric} ${digits(speed)} TFLOP/s`).join(", ")}; `
    + `below ${digits(ridge)} operations per byte the memory bounds work, above it the tensor cores`;
  return h("figure", {class: "roofline"},
    h("figcaption", {}, h("h3", {}, "Roofline"), h("p", {class: "hint"}, `${who}. Left of the ridge at ${digits(ridge)} operations per byte the memory bounds work, right of it the tensor cores (bf16). Points are products in bf16.`)),
    plot(`${words}.`, (width) => drawnRoofs(width, roofs, slopes, works, ridge)));
}

function median(values) {
  const some = [...values].sort((a, b) => a - b), at = some.length / 2;
  return some.length % 2 ? some[Math.floor(at)] : (some[at - 1] + some[at]) / 2;
}

function drawnRoofs(width, roofs, slopes, works, ridge) {
  const left = 46, right = width - 92, top = 20, bottom = 300, most = roofs[0][1];
  const [low, high] = [Math.min(ridge / 64, ...works.map(({x}) => x)) / 1.5, Math.max(ridge * 8, ...works.map(({x}) => x)) * 1.5];
  const floor = Math.min((slopes[0][1] * low) / 1000, ...works.map(({y}) => y)) / 1.5, ceiling = most * 1.5;
  const along = (value, start, end, from, to) => from + ((Math.log(value) - Math.log(start)) / (Math.log(end) - Math.log(start))) * (to - from);
  const x = (value) => along(value, low, high, left, right), y = (value) => along(value, floor, ceiling, bottom, top);
  return [bottom + 40, [
    decades(floor, ceiling).map((value) => svg("g", {class: "axis"}, line(left, y(value), right, y(value), "grid"), caption(left - 6, y(value) + 4, digits(value), {"text-anchor": "end"}))),
    decades(low, high).map((value) => svg("g", {class: "axis"}, line(x(value), bottom, x(value), bottom + 5), caption(x(value), bottom + 19, digits(value), {"text-anchor": "middle"}))),
    svg("g", {class: "axis"}, line(left, bottom, right, bottom), caption(0, 12, "TFLOP/s"), caption(right, bottom + 36, "operations per byte", {"text-anchor": "end"})),
    svg("g", {class: "limit"}, line(x(ridge), top, x(ridge), bottom), caption(x(ridge) + 5, bottom - 6, `ridge ${digits(ridge)}`)),
    slopes.map(([name, speed], place) => slope(name, speed, place, {x, y, low, floor, most})),
    flats(roofs, slopes[slopes.length - 1][1], {x, y, high, right}),
    works.map((work, place) => point(work, works.slice(0, place), x, y)),
  ]];
}

// Powers of ten between two ends.
function decades(low, high) {
  const out = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power += 1) out.push(Number((10 ** power).toPrecision(3)));
  return out;
}

// What a memory can feed: a line up to the highest roof.
function slope(name, speed, place, {x, y, low, floor, most}) {
  const start = Math.max(low, (1000 * floor) / speed), end = (1000 * most) / speed, at = start * (end / start) ** (place ? 0.55 : 0.3);
  return svg("g", {class: place ? "roof second" : "roof"}, line(x(start), y((speed * start) / 1000), x(end), y(most)),
    caption(x(at) - 8, y((speed * at) / 1000) - 4, `${name} ${digits(speed)} GB/s`, {"text-anchor": "end"}));
}

// What the tensor cores can do in each format. Words of roofs that are near each other stand below each other.
function flats(roofs, fastest, {x, y, high, right}) {
  let free = 0;
  return roofs.map(([metric, speed]) => {
    const at = Math.max(y(speed) + 4, free);
    free = at + 14;
    return svg("g", {class: "roof"}, line(x((1000 * speed) / fastest), y(speed), x(high), y(speed)), caption(right + 6, at, `${metric} ${digits(speed)}`));
  });
}

// A product: named unless another one is in the way.
function point({metric, x: work, y: speed, short}, others, x, y) {
  const words = svg("title", {}, `${metric}: ${digits(speed)} TFLOP/s at ${digits(work)} operations per byte`), [at, high] = [x(work), y(speed)];
  const near = others.some((each) => Math.abs(x(each.x) - at) < 62 && Math.abs(y(each.y) - high) < 14);
  return svg("g", {}, short ? triangle(at, high - 5, 6, words) : svg("circle", {cx: at, cy: high, r: 4, class: "good"}, words),
    near ? null : caption(at + 8, high + 12, metric.replaceAll("_", " ")));
}
