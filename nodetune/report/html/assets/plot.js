// Drawing figures: as dots or bars along one axis, or as curves over message sizes. What is below target is always a triangle.

const DOT = 9, LANE = 108, MAX_DOTS = 400, MAX_LINES = 12;
// How much of its end an axis spans at least: differences of a per mille are none to look at.
const LEAST = 0.08;

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// A picture with its words, as wide as there is room; text stays as large as it is.
function plot(label, draw) {
  const box = h("div", {class: "plot"});
  let width = 0;
  const observer = new ResizeObserver(() => (box.isConnected ? requestAnimationFrame(redraw) : observer.disconnect()));
  observer.observe(box);
  redraw();
  return box;

  function redraw() {
    const room = box.clientWidth || width || main.clientWidth;
    if (room === width) return;
    width = room;
    const [height, parts] = draw(width);
    box.replaceChildren(svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label}, parts));
  }
}

function digits(value) {
  return Math.abs(value) >= 1000 ? number(Math.round(value)) : Math.abs(value) >= 100 ? String(Number(value.toFixed(1))) : String(Number(value.toPrecision(3)));
}

function bytes(value) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${Number(value.toPrecision(3))} ${units[at]}`;
}

// Round values between two ends, some `most` of them.
function ticks(low, high, most) {
  const raw = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  const out = [];
  for (let at = Math.ceil(low / step); at * step <= high * 1.000001; at += 1) out.push(Number((at * step).toPrecision(12)));
  return out;
}

const range = ([, low, high]) => (low === high ? digits(low) : `${digits(low)} to ${digits(high)}`);
const caption = (x, y, words, more) => svg("text", {x, y, ...more}, words);
const line = (x1, y1, x2, y2, kind) => svg("line", {x1, y1, x2, y2, class: kind});

// Where the axis begins and ends: at zero, unless the figures are so close together that nothing would be seen of them.
function domain(kind) {
  const bounds = kind.sizes[0][5], [first, step, good] = kind.bins;
  const ends = [first, first + step * (good.length), ...bounds.flatMap(([, low, high]) => [low, high])];
  let [low, high] = [Math.min(...ends), Math.max(...ends)];
  const limits = kind.limits.filter(([, , most]) => most - low < 5 * Math.max(high - low, high * 0.02));
  high = Math.max(high, ...limits.map(([, , most]) => most));
  const room = Math.max((high - low) * 0.05, (high * LEAST - (high - low)) / 2) || 1;
  const start = low - room < high * 0.4 ? 0 : low - room;
  return {start, end: high + room, limits};
}

// One axis: what is as expected stands on the line, what is below target hangs below it.
function strip(kind, singles) {
  const {start, end, limits} = domain(kind);
  const lines = [...kind.sizes[0][5].map((each) => ["bound", kind.higher ? "≥" : "≤", each]), ...limits.map((each) => ["limit", "limit", each])].slice(0, 4);
  return (width) => {
    const x = (value) => 6 + ((value - start) / (end - start)) * (width - 12);
    const ordered = inOrder(lines, x, width), head = 16 * lines.length + 8;
    const marks = singles ? dots(kind, singles, x) : null;
    const {up, down, top, under} = marks && marks.top <= LANE * 1.5 ? marks : bars(kind, x);
    const floor = head + Math.max(top, 24), bottom = floor + under + 5;
    const drawn = [
      ordered.map(([its, sign, each], row) => border(its, `${sign} ${range(each)}${its === "bound" ? " " + each[0] : ""}`, each, x, row, bottom, width)),
      svg("g", {transform: `translate(0 ${floor})`}, up, down),
      line(0, floor, width, floor, "floor"), axis(start, end, x, bottom, width, kind.unit),
    ];
    return [bottom + 34, drawn];
  };
}

// So that no line crosses the words of another: these stand right of lines on the left side, left of those on the right.
function inOrder(lines, x, width) {
  const rightward = ([, , each]) => x(each[2]) < width * 0.6;
  return [...lines].sort((a, b) => rightward(b) - rightward(a) || (rightward(a) ? a[2][1] - b[2][1] : b[2][2] - a[2][2]));
}

// A bound or limit: a line where it is the same for all, else a band; its words above.
function border(its, words, [, low, high], x, row, bottom, width) {
  const left = x(low), right = x(high), y = 12 + 16 * row, after = right < width * 0.6;
  return svg("g", {class: its},
    right - left > 2 ? svg("rect", {x: left, y: y + 4, width: right - left, height: bottom - y - 4}) : null,
    line(left, y - 8, left, bottom), right - left > 2 ? line(right, y - 8, right, bottom) : null,
    caption(after ? right + 5 : left - 5, y, words, {"text-anchor": after ? "start" : "end"}));
}

function axis(start, end, x, bottom, width, unit) {
  const shown = ticks(start, end, Math.floor(width / 110));
  return svg("g", {class: "axis"}, line(0, bottom, width, bottom), shown.map((value, place) => {
    const at = x(value), last = place === shown.length - 1, near = at < 20 ? "start" : at > width - 50 ? "end" : "middle";
    return [line(at, bottom, at, bottom + 5), caption(at, bottom + 19, digits(value) + (last && unit ? ` ${unit}` : ""), {"text-anchor": near})];
  }));
}

function dots(kind, singles, x) {
  const stacks = [new Map(), new Map()];
  const parts = [[], []];
  for (const each of singles) {
    const fell = each.status === 1 ? 1 : 0, column = Math.round(x(each.value) / DOT), its = stacks[fell];
    const high = its.get(column) || 0;
    its.set(column, high + 1);
    const words = svg("title", {}, `${each.host.name} ${each.subject}: ${digits(each.value)} ${kind.unit}`);
    parts[fell].push(fell ? triangle(column * DOT, 3 + high * DOT, 5.5, words)
      : svg("circle", {cx: column * DOT, cy: -5 - high * DOT, r: 3.5, class: each.status === 2 ? "unheld" : "good"}, words));
  }
  const tallest = (its) => Math.max(0, ...its.values()) * DOT;
  return {up: parts[0], down: parts[1], top: tallest(stacks[0]) + 4, under: stacks[1].size ? Math.min(tallest(stacks[1]), LANE) + 8 : 0};
}

function triangle(x, y, half, ...more) {
  return svg("path", {d: `M${x - half} ${y}h${2 * half}l${-half} ${1.7 * half}z`, class: "short"}, more);
}

function bars(kind, x) {
  const [first, step, good, short] = kind.bins;
  const most = Math.max(...good, 1), mostShort = Math.max(...short, 1), under = short.some(Boolean) ? 36 : 0;
  const piece = (draw) => (many, place) => {
    const left = x(first + place * step), wide = Math.max(2, x(first + (place + 1) * step) - left - 1);
    return many ? draw(left, step ? wide : 4, many, svg("title", {}, `${number(many)} of ${digits(first + place * step)} to ${digits(first + (place + 1) * step)} ${kind.unit}`)) : null;
  };
  const bar = piece((left, wide, many, words) => {
    const high = Math.max(1.5, (many / most) * LANE);
    return svg("rect", {x: left, y: -high, width: wide, height: high, class: "good"}, words);
  });
  const peak = piece((left, wide, many, words) => {
    const half = Math.max(5, wide / 2), high = Math.max(9, (many / mostShort) * 30);
    return svg("path", {d: `M${left + wide / 2 - half} 4h${2 * half}l${-half} ${high}z`, class: "short"}, words);
  });
  return {up: good.map(bar), down: short.map(peak), top: LANE, under};
}

// Curves over sizes: a line each where hosts are few, else the range and the median of all, and those below target.
function curves(kind, singles) {
  const sizes = kind.sizes, most = Math.max(...sizes.flatMap(([, , high, median]) => [high || 0, median]), ...singles.map((each) => each.value));
  const bounds = [...new Set(sizes.flatMap((each) => each[5].map(([name]) => name)))];
  const limits = kind.limits.filter(([, , limit]) => limit < most * 2);
  const end = 1.06 * (Math.max(most, ...sizes.flatMap((each) => each[5].map(([, , high]) => high)), ...limits.map(([, , limit]) => limit)) || 1);
  return (width) => {
    const left = 46, top = 20, bottom = 216, logs = sizes.map(([size]) => Math.log2(size || 1));
    const span = Math.max(1e-9, logs[logs.length - 1] - logs[0]);
    const x = (size) => left + 8 + ((Math.log2(size || 1) - logs[0]) / span) * (width - left - 24);
    const y = (value) => bottom - (value / end) * (bottom - top);
    const path = (points) => points.map(([size, value], place) => `${place ? "L" : "M"}${x(size)} ${y(value)}`).join("");
    const good = sizes.filter(([, low]) => low !== null);
    const band = good.length > 1 && kind.hosts[0] > MAX_LINES ? path(good.map(([size, , high]) => [size, high])) + path(good.map(([size, low]) => [size, low]).reverse()).replace("M", "L") + "z" : "";
    return [bottom + 30, [
      grid(end, y, width, kind.unit), below(sizes, x, bottom, width),
      band && svg("path", {d: band, class: "band"}),
      limits.map(([what, , limit]) => svg("g", {class: "limit"}, line(left, y(limit), width, y(limit)), caption(width - 4, y(limit) - 5, `limit ${digits(limit)}`, {"text-anchor": "end"}))),
      bounds.map((name) => worst(kind, name, path)),
      kind.hosts[0] > MAX_LINES && svg("path", {d: path(sizes.map(([size, , , median]) => [size, median])), class: "median"}),
      lines(singles).map((one) => traced(one, path, x, y)),
    ]];
  };
}

function grid(end, y, width, unit) {
  return svg("g", {class: "axis"}, ticks(0, end, 4).map((value) => [line(46, y(value), width, y(value), value ? "grid" : ""), caption(40, y(value) + 4, digits(value), {"text-anchor": "end"})]),
    caption(0, 12, unit));
}

function below(sizes, x, bottom, width) {
  let free = 0;
  return svg("g", {class: "axis"}, sizes.map(([size]) => {
    const at = x(size), words = bytes(size), half = words.length * 3.6;
    if (at - half < free) return line(at, bottom, at, bottom + 4);
    free = at + half + 10;
    return [line(at, bottom, at, bottom + 4), caption(Math.min(at, width - half), bottom + 19, words, {"text-anchor": "middle"})];
  }));
}

// The worst that passed anywhere, size by size.
function worst(kind, name, path) {
  const points = kind.sizes.flatMap((each) => each[5].filter(([its]) => its === name).map(([, low, high]) => [each[0], kind.higher ? low : high]));
  return svg("g", {class: "bound"}, svg("path", {d: points.length > 1 ? path(points) : `${path(points)}m-14 0h28`}));
}

function lines(singles) {
  const by = new Map();
  for (const each of singles) {
    const key = `${each.host.name}\n${each.subject}`;
    if (!by.has(key)) by.set(key, []);
    by.get(key).push(each);
  }
  return [...by.values()].map((one) => one.sort((a, b) => a.size - b.size));
}

function traced(one, path, x, y) {
  const short = one.filter((each) => each.status === 1);
  const words = svg("title", {}, `${one[0].host.name} ${one[0].subject}`);
  return svg("g", {class: short.length ? "line fell" : "line"}, words, svg("path", {d: path(one.map((each) => [each.size, each.value]))}),
    short.map((each) => triangle(x(each.size), y(each.value) - 5, 6)));
}
