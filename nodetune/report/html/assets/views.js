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

function overview() {
  if (hosts.length === 1) return hostPage(hosts[0]);
  const first = failing.slice(0, 10);
  return [
    ...heading(verdict()),
    h("p", {class: "lead"}, summary()),
    distribution(),
    measuredLine(),
    since && changes(),
    section("What to look at first", first.length ? checkTable(first) : h("p", {}, "No check fails on any host."),
      failing.length > first.length && h("p", {}, h("a", {href: "#/findings"}, `All ${plural(failing.length, "finding")}`))),
    hosts.length > 24 && section("Every host", h("p", {class: "hint"}, "In the order of their names; neighbours in a rack are often neighbours here."), fleetMap(hosts)),
    section("Hosts by area", h("p", {class: "hint"}, "Hosts that come to the same in every area share a row, the worst first."), matrix()),
  ];
}

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
    const piece = h("span", {class: `level${level}`});
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

function checkTable(some, part) {
  const heads = [["", "sign"], ["Finding"], ["Area", "wide"], ["Hosts", "number"], ["Fix", "wide"]];
  return table("Findings", heads, some, (check) => {
    const fixes = check.failing.find(([, found]) => found.fix);
    return h("tr", {},
      h("td", {class: "sign"}, badge(check.level)),
      h("td", {}, linkToCheck(check), check.fresh ? h("span", {class: "new"}, ` new on ${number(check.fresh)}`) : null, h("span", {class: "title"}, check.title)),
      h("td", {class: "wide"}, check.area),
      h("td", {class: "number"}, share(check.failing.length, reached.length, check.level)),
      h("td", {class: "wide"}, fixes ? disruption(fixes[1]) : "manual"));
  }, part);
}

const disruption = (found) => (found.disruption === "none" ? "no disruption" : found.disruption);

function matrix() {
  const shown = areas.filter((area) => hosts.some((host) => (host.levels.get(area) ?? NOTHING) > 0 || host.levels.get(area) === UNKNOWN));
  if (!shown.length) return h("p", {}, "Nothing was found in any area.");
  const head = h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Hosts"), shown.map((area) =>
    h("th", {scope: "col", class: "area"}, h("a", {href: `#/findings?area=${encodeURIComponent(area)}`}, area)))));
  const row = (group) => h("tr", {},
    h("th", {scope: "row"}, hostNames(group.hosts)),
    group.hosts[0].reached ? shown.map((area) => cell(group.levels.get(area) ?? NOTHING)) : h("td", {colspan: shown.length, class: "quiet"}, group.state));
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts by area"},
    more(h("table", {class: "matrix", "aria-label": "Hosts by area"}, head), alike(hosts), row, 25));
}

function cell(level) {
  if (level === NOTHING) return h("td", {class: "cell", title: LEVELS[level]}, h("span", {class: "unseen"}, LEVELS[level]));
  return h("td", {class: "cell"}, h("span", {class: `mark level${level}`, title: LEVELS[level], "aria-hidden": true}, level > 0 ? LETTERS[level] : level === UNKNOWN ? "?" : ""),
    h("span", {class: "unseen"}, LEVELS[level]));
}

function findingsPage(query) {
  const area = query.get("area") || "", level = Number(query.get("level") || 0), only = query.get("new");
  const some = failing.filter((check) => (!area || check.area === area) && (!level || check.level === level) && (!only || check.fresh));
  const open = checks.filter((check) => check.unknown.length && (!area || check.area === area));
  const waived = checks.filter((check) => check.waived.length && (!area || check.area === area));
  return [
    ...heading("Findings"),
    filters("#/findings", query,
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
  const heads = [["", "sign"], ["Host"], ["Findings"], ["Profile", "wide"]];
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
  const [someChecks, someHosts, figures] = [matchingChecks(words), matchingHosts(words), matchingFigures(words)];
  const also = measured ? `, ${plural(figures.length, "measurement")} below target` : "";
  return [
    h("h1", {tabindex: -1}, "Search"),
    h("p", {class: "count"}, told(`${plural(someChecks.length, "finding")} and ${plural(someHosts.length, "host")}${also} with “${words}”`)),
    someChecks.length ? section("Findings", checkTable(someChecks, 50)) : null,
    figures.length ? section("Measurements below target", shortTable(figures.map((each) => [each]), 50)) : null,
    someHosts.length ? section("Hosts", hostTable(someHosts, 100)) : null,
  ];
}

function checkPage(check) {
  const taught = check.taught || {};
  const level = check.level || CLEAN;
  return [
    h("p", {class: "crumbs"}, h("a", {href: "#/findings"}, "Findings"), " / ", h("a", {href: `#/findings?area=${encodeURIComponent(check.area)}`}, check.area)),
    h("h1", {tabindex: -1}, check.title),
    h("p", {class: "lead"}, level > 0 ? badge(level, true) : null, " ", h("span", {class: "id"}, check.id), " ",
      check.failing.length ? `on ${number(check.failing.length)} of ${plural(reached.length, "host")}` : "fails on no host",
      check.fresh ? `, new on ${number(check.fresh)}` : "", check.gone ? `, gone from ${number(check.gone)}` : ""),
    taught["Why it matters"] ? section("Why it matters", h("p", {class: "prose"}, prose(taught["Why it matters"]))) : null,
    check.failing.length ? section("What was seen", variants(check.failing)) : null,
    check.failing.length ? section("Put it right", remedy(check)) : null,
    taught["Confirm manually"] ? section("Confirm manually", h("p", {class: "prose value"}, prose(taught["Confirm manually"]))) : null,
    taught.Sources ? section("Sources", h("p", {class: "prose"}, prose(taught.Sources))) : null,
    check.unknown.length ? section("Could not be judged", reasonList(check.unknown)) : null,
    check.waived.length ? section("Waived", reasonList(check.waived)) : null,
  ];
}

function remedy(check) {
  const [, found] = check.failing.find(([, each]) => each.fix) || check.failing[0];
  const values = new Set(check.failing.map(([, each]) => each.fix).filter(Boolean));
  const taught = check.taught || {};
  const selected = [check.id, ...(check.parts || [])].map((id) => "-s " + id).join(" ");
  return h("div", {class: "prose"},
    found.fix ? [
      h("p", {}, values.size === 1 ? h("code", {}, found.fix) : "Values are computed for each host.", ` Disruption: ${found.disruption}.`),
      h("p", {}, "What would be set, and where: ", command("nodetune plan", asked, selected)),
      appliesTo(asked) ? h("p", {}, "Set it, and audit again: ", command("nodetune apply", asked, selected, allowed(found.disruption))) : null,
    ] : [h("p", {}, check.manual || check.fix || "Manual fix."), h("p", {}, "More: ", command("nodetune explain", check.id, data.explaining))],
    taught["Side effects of the fix"] ? h("p", {}, h("b", {}, "Side effects: "), prose(taught["Side effects of the fix"])) : null);
}

// Saved facts and srun can be audited, but not changed.
const appliesTo = (options) => !/(^| )(--facts |--transport slurm)/.test(options);

// By default, apply does nothing that disrupts running work.
const allowed = (cost) => (["none", "new-sessions"].includes(cost) ? "" : `--max-disruption ${cost}`);

function variants(pairs) {
  const some = grouped(pairs, (found) => JSON.stringify([found.observed, found.wanted, found.reason]));
  return table("What was seen", [["Observed"], ["Wanted"], ["Hosts"]], some, ([found, on]) => h("tr", {},
    h("td", {class: "value"}, found.observed, found.reason ? h("span", {class: "title"}, found.reason) : null),
    h("td", {class: "value"}, found.wanted), h("td", {}, hostNames(on.sort((a, b) => a.place - b.place)))), 25);
}

function reasonList(pairs) {
  return more(h("ul", {class: "plain"}), grouped(pairs, (found) => found.reason), ([found, on]) => h("li", {}, found.reason, " ", hostNames(on)), 25);
}

function hostPage(host) {
  const of = (status) => host.told.filter((found) => found.status === status).sort((a, b) => b.level - a.level || b.cost - a.cost);
  const [fails, unknown, waived] = ["fail", "unknown", "waived"].map(of);
  return [
    hosts.length > 1 ? h("p", {class: "crumbs"}, h("a", {href: "#/hosts"}, "Hosts")) : null,
    h("h1", {tabindex: -1, class: "hostname"}, host.name),
    h("p", {class: "lead"}, host.reached ? [tallyWords(host), host.profile ? ` Profile ${host.profile}.` : "", host.message ? ` Judged by ${host.message}.` : ` Audited on ${date(data.time)}.`] : [badge(UNREACHED, true), ` ${host.state}`]),
    host.reached ? null : h("p", {class: "prose"}, host.message),
    host.added ? h("p", {}, "This host was not in the last audit.") : null,
    fails.length ? section("Findings", fails.map((found) => findingOf(host, found))) : null,
    host.devices.length ? section("Devices named here", h("ul", {class: "plain"}, host.devices.map((names) => h("li", {}, names.filter(Boolean).join(" "))))) : null,
    host.gone.length ? section("Gone since the last audit", h("ul", {class: "plain"}, host.gone.map(({check, now}) =>
      h("li", {}, linkToCheck(check), " ", h("span", {class: "quiet"}, {pass: "passes now", skip: "does not apply any more", waived: "is waived now"}[now] || now))))) : null,
    unknown.length ? section("Could not be judged", more(h("ul", {class: "plain"}), unknown, (found) =>
      h("li", {}, linkToCheck(found.check), " ", h("span", {class: "quiet"}, found.reason)), 25)) : null,
    waived.length ? section("Waived", h("ul", {class: "plain"}, waived.map((found) => h("li", {}, linkToCheck(found.check), " ", h("span", {class: "quiet"}, found.reason))))) : null,
    measuredOn(host),
    host.reached ? rest(host) : null,
  ];
}

function tallyWords(host) {
  const parts = [5, 4, 3, 2, 1].map((level) => [level, count(host, level)]).filter(([, many]) => many);
  return parts.length ? parts.map(([level, many]) => [h("span", {class: "named"}, badge(level), ` ${number(many)} ${LEVELS[level]}`), " "]) : "Nothing found.";
}

function findingOf(host, found) {
  const row = (name, value) => (value ? [h("dt", {}, name), h("dd", {}, value)] : null);
  return h("article", {},
    h("h3", {}, badge(found.level), " ", linkToCheck(found.check), host.fresh.has(found.check) ? h("span", {class: "new"}, " new") : null,
      found.gates ? h("span", {class: "quiet"}, " holds jobs") : null),
    h("p", {}, found.check.title + "."),
    h("dl", {}, row("Observed", found.observed), row("Wanted", found.wanted), row("Because", found.reason),
      row(found.fix ? "Fix" : "Manual fix", found.fix ? [h("code", {}, found.fix), ` (${disruption(found)})`] : found.check.manual)));
}

// What passed and what does not apply: there, but out of the way.
function rest(host) {
  const skipped = new Map(data.skipped[host.skipped]), told = new Set(host.told.map((found) => found.check));
  const passed = data.judged[host.judged].filter((each) => !skipped.has(each) && !told.has(checks[each]));
  const list = (title, rows) => rows.length > 0 && h("details", {}, h("summary", {}, title), h("ul", {class: "plain columns"}, rows));
  return section("Everything else",
    list(`${plural(passed.length, "check")} passed`, passed.map((each) => h("li", {title: checks[each].title}, checks[each].id))),
    list(`${plural(skipped.size, "check")} not applicable`, [...skipped].map(([each, reason]) => h("li", {}, checks[each].id, " ", h("span", {class: "quiet"}, text(reason))))),
    isPlainWord(host.name) && /(^| )-i /.test(asked) && appliesTo(asked) ? h("p", {}, "Look again: ", command("nodetune audit", asked, "-l " + host.name)) : null);
}
