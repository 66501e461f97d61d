// The pages: each a function that gives its elements.

const asked = data.asked;
const since = data.since;
const fresh = since ? checks.filter((check) => check.fresh) : [];
const gone = since ? checks.filter((check) => check.gone) : [];

function heading(title, ...after) {
  return [h("h1", {tabindex: -1}, title), ...after];
}

// How many hosts come to each level, the worst first.
const spread = URGENCY.map((level) => [level, hosts.filter((host) => host.level === level).length]).filter(([, many]) => many);

function overview(query) {
  if (hosts.length === 1) return hostPage(hosts[0], query);
  return [
    ...heading(verdict()),
    h("p", {class: "lead"}, summary()),
    distribution(),
    measuredLine(),
    since && changes(),
    ...acts(),
    hosts.length > 24 && section("Every host", h("p", {class: "hint"}, "In the order of their names; neighbours in a rack are often neighbours here."), fleetMap(hosts)),
    section("Hosts by area", h("p", {class: "hint"}, "Hosts that come to the same in every area share a row, the worst first."), matrix()),
  ];
}

// What fails by who acts, the worst of each, and the command that acts on it. Low and info are counted.
function acts() {
  const lesser = failing.filter((check) => check.failing.some(([, found]) => found.lesser)).length, unknown = checks.filter((check) => check.unknown.length);
  return [
    ...SECTIONS.slice(0, UNREAD).map((its, at) => {
      const some = kindsOf(failing, (found) => found.section === at && !found.lesser);
      return some.length ? h("section", {class: "acts"}, h("h2", {}, its.title, h("span", {class: "quiet"}, ` ${plural(some.length, "check")}`)),
        checkTable(some, 5), todo(its)) : null;
    }),
    unknown.length ? h("section", {class: "acts"}, h("h2", {}, SECTIONS[UNREAD].title, h("span", {class: "quiet"}, ` ${plural(unknown.length, "check")}`)),
      reasonList(unknown.flatMap((check) => check.unknown), (found) => found.line, 3), todo(SECTIONS[UNREAD])) : null,
    failing.length ? h("p", {}, h("a", {href: "#/findings"}, `All ${plural(failing.length, "check")} that fail`), lesser ? `, ${number(lesser)} of them low or info` : "") : h("p", {}, "No check fails on any host."),
  ];
}

const todo = (its) => h("p", {class: "todo"}, h("span", {class: "quiet"}, "To do "), command(its.command));

function verdict() {
  const bad = hosts.filter((host) => host.level >= 4).length;
  if (bad) return `${number(bad)} of ${plural(hosts.length, "host")} ${bad === 1 ? "has" : "have"} critical or high findings`;
  if (!reached.length) return "No host was reached";
  const some = hosts.filter((host) => host.level > 0).length;
  return some ? `No critical or high findings; lesser ones on ${number(some)} of ${plural(hosts.length, "host")}`
    : `Nothing found on ${plural(reached.length, "host")}`;
}

function summary() {
  const lost = hosts.length - reached.length, aged = reached.filter((host) => host.message);
  const parts = [`${plural(reached.length, "host")} audited on ${date(data.time)}${aged.length ? `, ${number(aged.length)} by older facts` : ""}${lost ? `, ${number(lost)} not reached` : ""}.`];
  const fixable = failing.filter((check) => check.failing.some(([, found]) => found.fix)).length;
  if (failing.length) parts.push(`${plural(failing.length, "kind of finding", "kinds of findings")}, ${number(fixable)} of which nodetune can set right.`);
  const unknown = checks.filter((check) => check.unknown.length).length;
  if (unknown) parts.push(`${plural(unknown, "check")} could not be judged everywhere.`);
  return parts.join(" ");
}

function distribution() {
  const bar = h("div", {class: "spread", "aria-hidden": true}, spread.map(([level, many]) => {
    const piece = h("span", {class: `level${level}`}, SIGNS[level]);
    piece.style.flexGrow = many;
    return piece;
  }));
  const link = (level) => `#/hosts?level=${level}`;
  return h("div", {class: "distribution"}, bar, h("ul", {"aria-label": "Hosts by their worst finding"},
    spread.map(([level, many]) => h("li", {}, h("a", {href: link(level)}, badge(level, true), " ", h("b", {}, number(many)))))));
}

function changes() {
  const added = hosts.filter((host) => host.added);
  const nothing = !(fresh.length || gone.length || added.length || since.lost.length);
  return section(`Since ${date(since.time)}`,
    nothing ? h("p", {}, "No finding is new and none is gone.") : h("div", {class: "changes"},
      changed("New", fresh, (host, check) => host.fresh.has(check)),
      changed("Gone", gone, (host, check) => host.gone.some((each) => each.check === check)),
      added.length ? h("div", {}, h("h3", {}, "Hosts added"), hostNames(added)) : null,
      since.lost.length ? h("div", {}, h("h3", {}, "Hosts no longer audited"), h("p", {}, fold(since.lost))) : null));
}

function changed(title, some, has) {
  if (!some.length) return h("div", {}, h("h3", {}, title), h("p", {}, "none"));
  const sorted = [...some].sort((a, b) => b.level - a.level || (a.id < b.id ? -1 : 1));
  return h("div", {}, h("h3", {}, title), more(h("ul", {class: "plain"}), sorted, (check) =>
    h("li", {}, check.level ? badge(check.level) : badge(CLEAN), " ", linkToCheck(check), " ", hostNames(hosts.filter((host) => has(host, check)))), 6));
}

// Checks with those of their findings that are wanted.
function kindsOf(some, wanted = () => true) {
  return some.map((check) => ({check, pairs: check.failing.filter(([, found]) => wanted(found))})).filter(({pairs}) => pairs.length);
}

function checkTable(some, part) {
  const heads = [["Severity", "sign"], ["Finding", "name"], ["Mostly", "broad"], ["Area", "wide area"], ["Hosts", "number"], ["Fix", "wide fix"]];
  return table("Findings", heads, some, ({check, pairs}) => {
    const fixes = pairs.find(([, found]) => found.fix);
    return h("tr", {},
      h("td", {class: "sign"}, badge(check.level)),
      h("td", {}, linkToCheck(check), check.fresh ? h("span", {class: "new"}, ` new on ${number(check.fresh)}`) : null, h("span", {class: "title"}, check.title)),
      h("td", {class: "broad"}, mostly(pairs)),
      h("td", {class: "wide"}, check.area),
      h("td", {class: "number"}, share(pairs.length, reached.length, check.level)),
      h("td", {class: "wide"}, fixes ? disruption(fixes[1]) : check.failing[0][1].section === BROKEN ? "repair" : "manual"));
  }, part, "findings");
}

// The most common line of several findings.
function mostly(pairs) {
  const [[found], ...others] = grouped(pairs, (each) => each.subject + "\n" + each.line);
  return [h("span", {}, unbroken(`${found.subject}: ${found.line}`)), others.length ? h("span", {class: "quiet"}, `, and ${plural(others.length, "other")}`) : null];
}

const disruption = (found) => (found.disruption === "none" ? "no disruption" : found.disruption);

function matrix() {
  const shown = areas.filter((area) => hosts.some((host) => (host.levels.get(area) ?? NOTHING) > 0 || host.levels.get(area) === UNKNOWN));
  if (!shown.length && !unjudged.size) return h("p", {}, "Nothing was found in any area.");
  const head = h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Hosts"), shown.map((area) =>
    h("th", {scope: "col", class: "area"}, h("a", {href: `#/findings?area=${encodeURIComponent(area)}`}, area))),
  unjudged.size > 0 && h("th", {scope: "col", class: "area"}, h("a", {href: "#/findings"}, `${plural(unjudged.size, "check")} that most could not judge`))));
  const row = (group) => h("tr", {},
    h("th", {scope: "row"}, hostNames(group.hosts)),
    group.hosts[0].reached ? [shown.map((area) => cell(group.levels.get(area) ?? NOTHING)), unjudged.size > 0 && cell(group.hosts[0].unjudged ? UNKNOWN : CLEAN)]
      : h("td", {colspan: shown.length + Number(unjudged.size > 0), class: "quiet"}, group.state));
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts by area"},
    more(h("table", {class: "matrix", "aria-label": "Hosts by area"}, head), alike(hosts), row, 25));
}

function cell(level) {
  if (level === NOTHING) return h("td", {class: "cell", title: LEVELS[level]}, h("span", {class: "unseen"}, LEVELS[level]));
  return h("td", {class: "cell"}, h("span", {class: `mark level${level}`, title: LEVELS[level], "aria-hidden": true}, SIGNS[level]),
    h("span", {class: "unseen"}, LEVELS[level]));
}

function findingsPage(query) {
  const area = query.get("area") || "", level = Number(query.get("level") || 0), only = query.get("new"), who = query.get("who");
  const some = kindsOf(failing.filter((check) => (!area || check.area === area) && (!level || check.level === level) && (!only || check.fresh)), (found) => !who || SECTIONS[found.section].name === who);
  const open = checks.filter((check) => check.unknown.length && (!area || check.area === area));
  const waived = checks.filter((check) => check.waived.length && (!area || check.area === area));
  return [
    ...heading("Findings"),
    filters("#/findings", query,
      ["who", "Who acts", SECTIONS.slice(0, UNREAD).map((each) => [each.name, each.short])],
      ["level", "Severity", [5, 4, 3, 2, 1].map((each) => [each, LEVELS[each]])],
      ["area", "Area", [...new Set(failing.map((check) => check.area))].sort().map((each) => [each, each])],
      since && ["new", "Change", [["1", "new since the last audit"]]]),
    h("p", {class: "count"}, told(plural(some.length, "finding"))),
    some.length ? checkTable(some) : null,
    open.length ? section("Could not be judged", table("Checks that could not be judged", [["Check"], ["Hosts", "number"], ["Why"]], open, (check) =>
      h("tr", {}, h("td", {}, linkToCheck(check)), h("td", {class: "number"}, number(check.unknown.length)), h("td", {}, reasons(check.unknown))), 50)) : null,
    waived.length ? section("Waived", table("Waived", [["Check"], ["Hosts"], ["Why, who, until when"]], waived, (check) =>
      h("tr", {}, h("td", {}, linkToCheck(check)), h("td", {}, hostNames(check.waived.map(([host]) => host))), h("td", {}, reasons(check.waived))), 50)) : null,
  ];
}

function reasons(pairs) {
  const every = [...new Set(pairs.map(([, found]) => found.reason))];
  return every.slice(0, 3).join(" · ") + (every.length > 3 ? ` · and ${plural(every.length - 3, "other reason")}` : "");
}

function told(words) {
  say(words);
  return words;
}

// Choices that are kept in the address, so that a page can be sent on.
function filters(path, query, ...wanted) {
  const change = (event) => {
    const next = new URLSearchParams(query);
    if (event.target.value) next.set(event.target.name, event.target.value);
    else next.delete(event.target.name);
    keepFocus = event.target.id;
    location.hash = path + (next.size ? "?" + next : "");
  };
  return h("form", {class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault()},
    wanted.filter(Boolean).map(([name, title, options]) => h("label", {}, title, " ",
      h("select", {name, id: "filter-" + name, onchange: change}, h("option", {value: ""}, "all"),
        options.map(([value, words]) => h("option", {value, selected: query.get(name) === String(value)}, words))))));
}
let keepFocus = "";

function hostsPage(query) {
  const level = query.get("level"), profile = query.get("profile") || "";
  const some = urgent.filter((host) => (!level || host.level === Number(level)) && (!profile || host.profile === profile));
  return [
    ...heading("Hosts"),
    filters("#/hosts", query,
      ["level", "Worst finding", spread.map(([each]) => [each, LEVELS[each]])],
      ["profile", "Profile", [...new Set(reached.map((host) => host.profile))].sort().map((each) => [each, each])]),
    h("p", {class: "count"}, told(plural(some.length, "host"))),
    some.length ? hostTable(some) : null,
  ];
}

function hostTable(some, part) {
  const heads = [["Severity", "sign"], ["Host"], ["Findings"], ["Profile", "wide"]];
  return table("Hosts", heads, some, (host) => h("tr", {},
    h("td", {class: "sign"}, badge(host.level)),
    h("td", {}, linkToHost(host), host.fresh.size ? h("span", {class: "new"}, ` ${number(host.fresh.size)} new`) : null),
    h("td", {}, host.reached ? tally(host) : h("span", {class: "quiet"}, host.state)),
    h("td", {class: "wide quiet"}, host.profile)), part);
}

function tally(host) {
  const parts = [5, 4, 3, 2, 1].map((level) => [level, count(host, level)]).filter(([, many]) => many);
  return parts.length ? h("span", {class: "tally"}, parts.map(([level, many]) => h("span", {}, badge(level), number(many)))) : "none";
}

function searchPage(words) {
  const [someChecks, someHosts, figures, devices] = [matchingChecks(words), matchingHosts(words), matchingFigures(words), matchingDevices(words)];
  const also = (devices.length ? `, ${plural(devices.length, "device")}` : "") + (measured ? `, ${plural(figures.length, "measurement")} below target` : "");
  return [
    h("h1", {tabindex: -1}, "Search"),
    h("p", {class: "count"}, told(`${plural(someChecks.length, "finding")} and ${plural(someHosts.length, "host")}${also} with “${words}”`)),
    devices.length ? section("Devices", deviceTable(devices, true)) : null,
    someChecks.length ? section("Findings", checkTable(kindsOf(someChecks), 50)) : null,
    figures.length ? section("Measurements below target", shortTable(figures.map((each) => [each]), 50)) : null,
    someHosts.length ? section("Hosts", hostTable(someHosts, 100)) : null,
  ];
}

