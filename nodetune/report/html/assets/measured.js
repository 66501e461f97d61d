// What was measured: the figures of nodetune verify, along with what the audit found.

const [PASSED, SHORT, UNHELD] = [0, 1, 2];
const VERDICTS = ["as expected", "below target", "nothing to compare it with"];
const measured = data.measured && understood(data.measured);

function understood(given) {
  const words = (place) => given.texts[place];
  const kinds = given.kinds.map((kind, index) => ({...kind, index, higher: kind.better === "higher", all: kind.counts.reduce((a, b) => a + b), failed: 0}));
  const of = given.hosts.map(([name, state, message, shape, values, held, odd, missing, found, notes]) => ({
    name, state: words(state), message: words(message), shape: given.shapes[shape], values, held: given.held[held],
    odd: new Map(odd.map(([place, status, ...told]) => [place, [status, ...told.map(words)]])),
    missing: missing.map((place) => given.missing[place]).map(([status, ...told]) => ({failed: status === 0, told: told.map(words)})),
    found: found.map((place) => given.findings[place]).map(([status, ...told]) => ({short: status === 1, told: told.map(words)})),
    notes: notes.map(words),
  }));
  const all = {given, kinds, hosts: of, byName: new Map(of.map((host) => [host.name, host])), single: of.reduce((sum, host) => sum + host.values.length, 0)};
  for (const host of of) {
    host.short = [...host.odd].filter(([, [status]]) => status === SHORT).map(([place]) => figureAt(all, host, place));
    host.bad = host.found.filter((found) => found.short);
    host.failed = host.missing.some((each) => each.failed);
    host.unheld = host.values.length > 0 && [...host.odd.values()].filter(([status]) => status === UNHELD).length === host.values.length;
    host.sound = !host.short.length && !host.bad.length && !host.failed && !host.unheld;
  }
  all.short = of.flatMap((host) => host.short).sort((a, b) => shortfall(a) - shortfall(b));
  countFailed(all);
  all.worstFirst = [...kinds].sort((a, b) => b.hosts[1] - a.hosts[1] || b.counts[SHORT] - a.counts[SHORT] || b.failed - a.failed || a.index - b.index);
  return all;
}

// A kind of figure failed on the hosts where its measurement did, as a whole or this metric of it.
function countFailed({kinds, hosts: of}) {
  const failures = new Map();
  for (const host of of) {
    for (const {failed, told: [measurement, metric]} of host.missing) {
      const key = measurement + "\n" + metric;
      if (failed) failures.set(key, (failures.get(key) || new Set()).add(host));
    }
  }
  for (const kind of kinds) {
    const some = ["", kind.metric].flatMap((metric) => [...(failures.get(kind.measurement + "\n" + metric) || [])]);
    kind.failed = new Set(some).size;
  }
}

function figureAt({given, kinds}, host, place) {
  const [kind, subject, size, command, limit, intensity] = given.slots[host.shape[place]];
  const [status, provenance, reason, suspect, again] = host.odd.get(place) || [PASSED, "", "", "", ""];
  const bound = given.expected[host.held[place]], most = given.limits[limit];
  return {
    host, kind: kinds[kind], subject: given.texts[subject], size, intensity, value: host.values[place], status, provenance, reason, suspect, again,
    bound: bound && {kind: given.texts[bound[0]], value: bound[1]}, limit: most && {what: most[0], value: most[1]},
    command: given.texts[command].replaceAll("{host}", host.name),
  };
}

const figuresOf = (host) => host.values.map((_, place) => figureAt(measured, host, place)).sort((a, b) => rank(a) - rank(b));
const rank = (figure) => [SHORT, UNHELD, PASSED].indexOf(figure.status);

// How much of what was expected is there: the smaller, the worse.
function shortfall({kind, value, bound}) {
  if (!bound) return 1;
  return kind.higher ? value / (bound.value || 1) : bound.value / (value || 1);
}

// The single figures that a plot draws: all where they are few; of curves those of few hosts, or of those below target.
let drawn = null;
function singlesOf(kind) {
  if (!drawn) drawn = singlesByKind();
  return drawn.get(kind.index) || [];
}

function singlesByKind() {
  const by = new Map(), {slots} = measured.given;
  for (const host of measured.hosts) {
    const fell = new Set(host.short.map((each) => each.kind));
    host.shape.forEach((slot, place) => {
      const kind = measured.kinds[slots[slot][0]];
      if (!(kind.bins ? kind.all <= MAX_DOTS : kind.hosts[0] <= MAX_LINES || fell.has(kind))) return;
      if (!by.has(kind.index)) by.set(kind.index, []);
      by.get(kind.index).push(figureAt(measured, host, place));
    });
  }
  return by;
}

const amount = (value, unit) => `${digits(value)}${unit ? " " + unit : ""}`;
const sign = (kind) => (kind.higher ? "≥" : "≤");
const named = (figure) => figure.kind.title + (figure.size ? " " + bytes(figure.size) : "");
const least = (figure) => (figure.bound ? `${sign(figure.kind)} ${digits(figure.bound.value)} ${figure.bound.kind}` : "–");

// A verdict by shape, colour and word.
function verdictSign(status, word) {
  const sign = h("span", {class: `sign${status}`, "aria-hidden": true}, ["●", "▼", "○"][status]);
  return h("span", {class: "named"}, sign, word ? " " + VERDICTS[status] : h("span", {class: "unseen"}, VERDICTS[status]));
}

function linkToMeasured(host) {
  const known = hostOf.get(host.name);
  return known ? linkToHost(known) : h("span", {}, host.name);
}

function measuredNames(some) {
  const known = some.map((host) => hostOf.get(host.name)).filter(Boolean), others = some.filter((host) => !hostOf.has(host.name));
  return [known.length ? hostNames(known) : null, others.length ? h("span", {}, `${known.length ? " and " : ""}${fold(others.map((host) => host.name))}`) : null];
}

// One line for the overview.
function measuredLine() {
  if (!measured) return null;
  const seen = measured.hosts.filter((host) => host.values.length), short = seen.filter((host) => host.short.length || host.bad.length);
  const sound = seen.filter((host) => host.sound).length, failed = measured.hosts.filter((host) => host.failed && !short.includes(host)).length;
  const unheld = seen.filter((host) => host.unheld && !host.failed).length;
  const figures = short.reduce((sum, host) => sum + host.short.length, 0), wrong = short.reduce((sum, host) => sum + host.bad.length, 0);
  const names = fold(short.slice(0, 50).map((host) => host.name));
  const fell = [figures && `in ${plural(figures, "figure")}`, wrong && `by ${plural(wrong, "finding")}`].filter(Boolean).join(" and ");
  const parts = [
    `${number(sound)} of ${plural(seen.length, "host")} as expected`,
    short.length && `${short.length > 50 || names.length > LONGEST ? plural(short.length, "host") : names} ${short.length === 1 ? "is" : "are"} below target ${fell}`,
    unheld && `${plural(unheld, "host")} with nothing to compare figures with`,
    failed && `something failed on ${plural(failed, "host")}`,
    measured.hosts.length > seen.length && `${number(measured.hosts.length - seen.length)} not measured`,
  ].filter(Boolean);
  return h("p", {class: "measuredline"}, short.length ? [verdictSign(SHORT), " "] : null, h("a", {href: "#/measurements"}, "Measured"), `: ${parts.join("; ")}.`);
}

function measurementsPage(query) {
  const of = query.get("of") || "", verdict = query.get("verdict") || "";
  const names = [...new Set(measured.kinds.map((kind) => kind.measurement))].sort();
  const right = {short: (kind) => kind.counts[SHORT], failed: (kind) => kind.failed, unheld: (kind) => kind.counts[UNHELD]}[verdict] || (() => true);
  const some = measured.worstFirst.filter((kind) => (!of || kind.measurement === of) && right(kind));
  return [
    ...heading("Measurements"),
    h("p", {class: "lead"}, measuredSummary()),
    statuses(),
    left(),
    belowTarget(),
    wrongPaths(),
    section("Every kind of figure", h("p", {class: "hint"}, "The worst first. Names are those of nodetune verify."),
      filters("#/measurements", query, ["of", "Measurement", names.map((each) => [each, each])],
        ["verdict", "Verdict", [["short", "something is below target"], ["failed", "failed somewhere"], ["unheld", VERDICTS[UNHELD]]]]),
      h("p", {class: "count"}, told(plural(some.length, "kind of figure", "kinds of figures"))),
      more(h("div"), some, kindSection, 20)),
    unmeasured(),
  ];
}

function measuredSummary() {
  const seen = measured.hosts.filter((host) => host.values.length).length, [first, last] = measured.given.times;
  const when = first === last || date(first) === date(last) ? `on ${date(last)}` : `between ${date(first)} and ${date(last)}`;
  return `${plural(measured.given.every, "figure")} on ${plural(seen, "host")}, measured ${when} by nodetune verify.`;
}

function statuses() {
  const sums = VERDICTS.map((_, status) => measured.kinds.reduce((sum, kind) => sum + kind.counts[status], 0));
  const missing = (failed) => measured.hosts.reduce((sum, host) => sum + host.missing.filter((each) => each.failed === failed).length, 0);
  const item = (many, ...words) => (many ? h("li", {}, words, " ", h("b", {}, number(many))) : null);
  return h("ul", {class: "counts", "aria-label": "Figures by verdict"},
    [SHORT, UNHELD, PASSED].map((status) => item(sums[status], verdictSign(status, true))), item(missing(true), "× failed"), item(missing(false), "skipped"));
}

// What the page does not have.
function left() {
  const strange = measured.hosts.filter((host) => host.values.length && !hostOf.has(host.name)), few = measured.single < measured.given.every;
  return [
    strange.length ? h("p", {class: "hint"}, `Measured, but not in this audit: ${fold(strange.map((host) => host.name))}.`) : null,
    few ? h("p", {class: "hint"}, "These are too many figures to tell each. Hosts' pages show all figures below target, and the worst one of each other kind; the plots count all.") : null,
  ];
}

function belowTarget() {
  if (!measured.short.length) return null;
  const groups = new Map();
  for (const figure of measured.short) {
    const key = JSON.stringify([figure.host.name, figure.suspect]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(figure);
  }
  return section("Below target", shortTable([...groups.values()], 10));
}

function shortTable(groups, part) {
  return table("Below target", [["Host"], ["Figures, and what to suspect"]], groups, (some) => h("tr", {},
    h("td", {}, linkToMeasured(some[0].host)),
    h("td", {}, some.slice(0, 3).map((each) => h("div", {}, verdictSign(SHORT), ` ${named(each)} ${each.subject}: `, h("b", {}, amount(each.value, each.kind.unit)), h("span", {class: "quiet"}, ` ${least(each)}`))),
      some.length > 3 ? h("div", {class: "quiet"}, `and ${number(some.length - 3)} more`) : null,
      some[0].suspect ? h("span", {class: "title"}, `Suspect: ${some[0].suspect}`) : null)), part);
}

function grouping(pairs) {
  const groups = new Map();
  for (const [key, host] of pairs) {
    if (!groups.has(key)) groups.set(key, [JSON.parse(key), new Set()]);
    groups.get(key)[1].add(host);
  }
  return [...groups.values()].map(([told, some]) => [told, [...some]]).sort((a, b) => b[1].length - a[1].length);
}

// Right figures over wrong paths, and what a verify noted.
function wrongPaths() {
  const some = grouping(measured.hosts.flatMap((host) => [
    ...host.found.map((found) => [JSON.stringify([found.short ? "short" : "note", found.told[0], found.told[2]]), host]),
    ...host.notes.map((note) => [JSON.stringify(["note", note, ""]), host])]));
  if (!some.length) return null;
  some.sort((a, b) => (a[0][0] < b[0][0] ? 1 : a[0][0] > b[0][0] ? -1 : 0));
  return section("Seen while measuring", table("Seen while measuring", [["Verdict", "sign"], ["What"], ["Hosts"]], some, ([[kind, title, next], on]) => h("tr", {},
    h("td", {class: "sign"}, kind === "short" ? verdictSign(SHORT) : "note"),
    h("td", {}, title, next ? h("span", {class: "title"}, next) : null), h("td", {}, measuredNames(on))), 25));
}

function unmeasured() {
  const some = grouping(measured.hosts.flatMap((host) => [
    ...(host.state !== "ok" ? [[JSON.stringify([host.state, "", host.message]), host]] : []),
    ...host.missing.map(({failed, told: [measurement, metric, subject, reason]}) =>
      [JSON.stringify([failed ? "failed" : "skipped", [measurement, metric, subject].filter(Boolean).join(" "), reason]), host])]));
  const order = (word) => (word === "skipped" ? 2 : word === "failed" ? 1 : 0);
  some.sort((a, b) => order(a[0][0]) - order(b[0][0]));
  return some.length ? section("Could not be measured", table("Could not be measured", [["State"], ["What"], ["Hosts"]], some, ([[state, what, why], on]) => h("tr", {},
    h("td", {}, state), h("td", {}, what || "the host", why ? h("span", {class: "title"}, why) : null), h("td", {}, measuredNames(on))), 25)) : null;
}

// What a host's own page says.
function measuredOn(host) {
  const its = measured && measured.byName.get(host.name);
  if (!its || hostOf.get(its.name) !== host) return null;
  const few = measured.single < measured.given.every && its.values.length;
  const list = [...its.found.map((found) => [found.short, found.told[0] + (found.told[1] ? `: ${found.told[1]}` : ""), found.told[2]]), ...its.notes.map((note) => [false, note, ""])];
  return section("Measurements",
    its.state === "ok" ? null : h("p", {}, `${its.state}: ${its.message}`),
    list.length ? h("ul", {class: "plain"}, list.map(([short, words, next]) => h("li", {}, short ? [verdictSign(SHORT), " "] : null, words, next ? h("span", {class: "title"}, next) : null))) : null,
    its.short.length ? more(h("div"), byPart(its.short), shortPart, 12) : null,
    roofline(figuresOf(its)),
    its.values.length ? h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of this host"}, figureTable(figuresOf(its))) : null,
    few ? h("p", {class: "hint"}, "The fleet has too many figures to show each: of those not below target, this page shows the worst of each kind.") : null,
    its.missing.length ? h("details", {}, h("summary", {}, `${number(its.missing.length)} could not be measured`), h("ul", {class: "plain"}, its.missing.map(({failed, told: [measurement, metric, subject, reason]}) =>
      h("li", {}, `${failed ? "failed" : "skipped"}: ${[measurement, metric, subject].filter(Boolean).join(" ")} `, h("span", {class: "quiet"}, reason))))) : null);
}

// Figures that point at the same part, together.
function byPart(short) {
  const groups = new Map();
  for (const figure of short) {
    const key = JSON.stringify([figure.kind.measurement, figure.suspect || figure.subject]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(figure);
  }
  return [...groups.values()];
}

function shortPart(some) {
  const row = (name, value) => (value ? [h("dt", {}, name), h("dd", {}, value)] : null);
  const [first] = some, subjects = [...new Set(some.map((each) => each.subject))];
  return h("article", {}, h("h3", {}, verdictSign(SHORT), ` ${first.kind.measurement} `, subjects.length > 3 ? plural(subjects.length, "subject") : subjects.join(", ")),
    h("dl", {}, row("Measured", h("ul", {class: "plain"}, some.slice(0, 8).map((figure) => h("li", {}, shortWords(figure))), some.length > 8 ? h("li", {}, `and ${number(some.length - 8)} more`) : null)),
      row("Suspect", first.suspect), row("Look again", first.command && command(first.command))));
}

function shortWords(figure) {
  const {kind, bound, again, reason, provenance} = figure;
  const expected = bound ? `, expected ${kind.higher ? "at least" : "at most"} ${digits(bound.value)} (${[bound.kind, provenance].filter(Boolean).join("; ")})` : "";
  return [`${named(figure)} ${figure.subject}: `, h("b", {}, amount(figure.value, kind.unit)), expected, again ? `; measured again: ${again}` : reason ? `; ${reason}` : ""];
}

function figureTable(some) {
  const heads = [["Verdict", "sign"], ["Measurement"], ["Of"], ["Value"], ["Expected"], ["Of limit"], ["Measure again"]];
  return table("Figures", heads, some, (each) => h("tr", {},
    h("td", {class: "sign"}, verdictSign(each.status)), h("td", {}, named(each), each.reason && each.status !== SHORT ? h("span", {class: "title"}, each.reason) : null),
    h("td", {}, each.subject), h("td", {class: "figure"}, amount(each.value, each.kind.unit)), h("td", {class: "figure"}, least(each)),
    h("td", {class: "figure", title: each.limit ? each.limit.what : null}, each.limit ? `${Math.round((100 * each.value) / each.limit.value)} %` : ""),
    h("td", {}, each.command ? command(each.command) : null)), 40);
}

function matchingFigures(query) {
  const match = matcher(query);
  return measured ? measured.short.filter((each) => match(each.host.name, named(each), each.subject, each.suspect, each.provenance, "below target")) : [];
}
