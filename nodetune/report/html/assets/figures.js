// The section of one kind of figure: its picture in words, its legend and its tables.

// One kind of figure: what it is, how it came out, the picture, the worst by name, and all of it as a table.
function kindSection(kind) {
  const singles = singlesOf(kind), dotted = kind.bins && singles.length === kind.all;
  const short = worstOf(kind);
  const draw = kind.bins ? strip(kind, dotted ? singles : null) : curves(kind, singles);
  return h("section", {class: "kind"},
    h("h3", {}, kind.title, h("span", {class: "quiet"}, ` ${kind.unit}, ${kind.higher ? "higher" : "lower"} is better`)),
    h("p", {class: "hint"}, [kind.machine, kind.conditions].filter(Boolean).join(" · ")),
    h("ul", {class: "counts"}, [SHORT, UNHELD, PASSED].map((status) => (kind.counts[status] ? h("li", {}, verdictSign(status, true), " ", h("b", {}, number(kind.counts[status])),
      status === SHORT ? ` on ${plural(kind.hosts[1], "host")}` : "") : null)), kind.failed ? h("li", {}, `× failed on ${plural(kind.failed, "host")}`) : null),
    plot(spoken(kind, short), draw),
    h("p", {class: "hint key"}, legend(kind, singles)),
    short.length ? h("p", {class: "worst"}, "Worst: ", short.slice(0, 5).map((each, place) => [place ? ", " : "", linkToMeasured(each.host), ` ${each.subject}${each.size ? " " + bytes(each.size) : ""} `, h("b", {}, amount(each.value, kind.unit))]),
      short.length > 5 ? `, and ${number(short.length - 5)} more` : "") : null,
    asTable(kind, dotted ? singles : null));
}

// The figures of this kind below target, the worst first; of several sizes that with which it is the worst.
function worstOf(kind) {
  const by = new Map();
  for (const each of measured.short) {
    const key = `${each.host.name}\n${each.subject}`;
    if (each.kind === kind && !by.has(key)) by.set(key, each);
  }
  return [...by.values()];
}

function legend(kind, singles) {
  const bounds = [...new Set(kind.sizes.flatMap((each) => each[5].map(([name]) => name)))];
  const swatch = (its, words) => h("span", {class: "named"}, h("span", {class: `swatch ${its}`, "aria-hidden": true}), " ", words);
  const limit = kind.limits.map((each) => swatch("limit", `the hardware's limit: ${each[0]}${[String(each[2]), digits(each[2])].some((its) => each[0].includes(its)) ? "" : `, ${range(each)} ${kind.unit}`}`));
  const start = kind.bins ? domain(kind).start : 0;
  const one = kind.higher ? "least" : "most";
  return [
    bounds.length ? swatch("bound", `the ${one} that passes, by ${bounds.map((name) => ({baseline: "this site's baseline", shipped: "shipped figures"})[name] || name).join(" and ")}`) : null,
    ...limit,
    kind.bins && singles.length < kind.all ? h("span", {class: "named"}, `The tallest bar is ${plural(Math.max(...kind.bins[2]), "figure")}.`) : null,
    !kind.bins && kind.hosts[0] > MAX_LINES ? [swatch("median", "median of all"), swatch("band", "range of what is not below target")] : null,
    !kind.bins && singles.length ? swatch(kind.hosts[0] <= MAX_LINES ? "line" : "line fell", kind.hosts[0] <= MAX_LINES ? "a host each" : "hosts below target") : null,
    start ? h("span", {class: "named"}, `The axis starts at ${digits(start)}, not at 0.`) : null,
  ];
}

function spoken(kind, short) {
  const [size, , , median, , bounds] = kind.sizes[kind.sizes.length - 1];
  const where = kind.bins ? "" : ` at ${bytes(size)}, the largest of ${plural(kind.sizes.length, "size")}`;
  const worst = short[0] ? `, the worst ${short[0].host.name} ${short[0].subject} with ${amount(short[0].value, kind.unit)}` : "";
  return `${kind.title}: ${plural(kind.all, "figure")} on ${plural(kind.hosts[0], "host")}, median ${amount(median, kind.unit)}${where}`
    + bounds.map(([name, ...ends]) => `, expected ${kind.higher ? "at least" : "at most"} ${range([name, ...ends])} (${name})`).join("")
    + `. ${kind.counts[SHORT] ? number(kind.counts[SHORT]) + " below target" + worst : "None below target"}.`;
}

function asTable(kind, singles) {
  const details = h("details", {class: "figures", ontoggle: fill}, h("summary", {}, "As a table"));
  return details;

  function fill() {
    if (details.open && details.children.length < 2) details.append(singles ? singleTable(kind, singles) : kind.bins ? binTable(kind) : sizeTable(kind));
  }
}

function singleTable(kind, singles) {
  const way = kind.higher ? 1 : -1, some = [...singles].sort((a, b) => rank(a) - rank(b) || way * (a.value - b.value));
  return table(kind.title, [["Host"], ["Of"], [kind.unit || "Value", "number"], ["Verdict"]], some, (each) => h("tr", {},
    h("td", {}, linkToMeasured(each.host)), h("td", {}, each.subject), h("td", {class: "number"}, digits(each.value)), h("td", {}, verdictSign(each.status, true))), 50);
}

function binTable(kind) {
  const [first, step, good, short] = kind.bins;
  const some = good.map((many, place) => [place, many, short[place]]).filter(([, many, fell]) => many || fell);
  return table(kind.title, [[`From ${kind.unit}`, "number"], ["To", "number"], ["Not below target", "number"], ["Below target", "number"]], some, ([place, many, fell]) => h("tr", {},
    [digits(first + place * step), digits(first + (place + 1) * step), number(many), number(fell)].map((words) => h("td", {class: "number"}, words))), 100);
}

function sizeTable(kind) {
  const bound = (bounds) => bounds.map(([name, ...ends]) => `${sign(kind)} ${range([name, ...ends])} ${name}`).join(", ");
  return table(kind.title, [["Size"], ["Median", "number"], ["From-to", "number"], ["Expected"], ["Below target", "number"]], kind.sizes, ([size, low, high, median, short, bounds]) => h("tr", {},
    h("td", {}, bytes(size)), h("td", {class: "number"}, amount(median, kind.unit)), h("td", {class: "number"}, low === null ? "–" : range(["", low, high])),
    h("td", {}, bound(bounds)), h("td", {class: "number"}, number(short))), 100);
}
