// The page of one host: what is wrong by who acts, one line a cause. What each line means is folded below it.

function hostPage(host, query = new URLSearchParams()) {
  const of = (status) => host.told.filter((found) => found.status === status).sort((a, b) => b.level - a.level || b.cost - a.cost);
  const [fails, unknown, waived] = ["fail", "unknown", "waived"].map(of);
  const base = hosts.length > 1 ? "#/host/" + encodeURIComponent(host.key) : "#/";
  const content = [
    host.reached ? null : h("p", {class: "prose"}, host.message),
    host.added ? h("p", {}, "This host was not in the last audit.") : null,
    ...actsOf(host, fails, unknown, query),
    host.gone.length ? section("Gone since the last audit", h("ul", {class: "plain"}, host.gone.map(({check, now}) =>
      h("li", {}, linkToCheck(check), " ", h("span", {class: "quiet"}, {pass: "passes now", skip: "does not apply any more", waived: "is waived now"}[now] || now))))) : null,
    measuredOn(host),
    host.reached ? rest(host, waived) : null,
  ];
  return [
    hosts.length > 1 ? h("p", {class: "crumbs"}, h("a", {href: "#/hosts"}, "Hosts")) : null,
    h("h1", {tabindex: -1, class: "hostname"}, host.name),
    h("p", {class: "lead"}, host.reached ? [tallyWords(host), host.profile ? ` Profile ${host.profile}.` : "", host.message ? ` Judged by ${host.message}.` : ` Audited on ${date(data.time)}.`] : [badge(UNREACHED, true), ` ${host.state}`]),
    fails.some((found) => found.fix) ? forHost(host, "Plan", "nodetune plan", asked) : null,
    fails.length > 1 ? h("div", {class: "indexed"}, index(base, host, fails, unknown, query), h("div", {}, content)) : content,
  ];
}

// A command for this host alone, unless its name is one that a shell would change.
function forHost(host, what, ...words) {
  if (hosts.length > 1 && !isPlainWord(host.name)) return null;
  return h("p", {class: "todo"}, h("span", {class: "quiet"}, what, " "), command(...words, hosts.length > 1 && "-l " + host.name));
}

function tallyWords(host) {
  const parts = [5, 4, 3, 2, 1].map((level) => [level, count(host, level)]).filter(([, many]) => many);
  return parts.length ? parts.map(([level, many]) => [h("span", {class: "named"}, badge(level), ` ${number(many)} ${LEVELS[level]}`), " "]) : "Nothing found.";
}

// The findings by who acts, by severity and by area. An entry shows only its own; the address keeps which.
function index(base, host, fails, unknown, query) {
  const entry = (name, value, many, ...label) => {
    const id = `index-${name}-${value}`, here = name ? query.get(name) === String(value) : !query.size;
    return h("li", {}, h("a", {id, href: base + (name ? `?${name}=${encodeURIComponent(value)}` : ""), "aria-current": here && "true", onclick: () => { keepFocus = id; }},
      h("span", {}, label), h("span", {class: "quiet"}, number(many))));
  };
  const part = (title, entries) => h("div", {}, h("h2", {}, title), h("ul", {}, entries));
  const sum = (test) => fails.filter(test).length, lesser = sum((found) => found.lesser);
  const its = areas.filter((area) => fails.some((found) => found.check.area === area));
  return h("nav", {class: "index", "aria-label": "Findings of this host"},
    part("Show", [entry("", "", fails.length, "All findings"), ...SECTIONS.map(({name, short}, at) => [name, short, at === UNREAD ? unknown.length : sum((found) => found.section === at && !found.lesser)])
      .filter(([, , many]) => many).map(([name, short, many]) => entry("who", name, many, short)), lesser > 0 && entry("who", "lesser", lesser, "Low and info")]),
    part("Severity", [5, 4, 3, 2, 1].filter((level) => count(host, level)).map((level) => entry("level", level, count(host, level), badge(level, true)))),
    part("Area", its.map((area) => entry("area", area, sum((found) => found.check.area === area), area))));
}

function actsOf(host, fails, unknown, query) {
  const [who, level, area] = ["who", "level", "area"].map((name) => query.get(name));
  const wanted = (found) => (!level || found.level === Number(level)) && (!area || found.check.area === area);
  const folded = (found) => found.lesser && !level;
  const parts = SECTIONS.map((its, at) => [its, at === UNREAD ? unknown.filter((found) => !level && wanted(found)) : fails.filter((found) => found.section === at && !folded(found) && wanted(found))])
    .filter(([its, some]) => some.length && (!who || who === its.name));
  const lesser = fails.filter((found) => folded(found) && wanted(found) && (!who || who === "lesser"));
  if (query.size) say(plural(parts.reduce((sum, [, some]) => sum + some.length, lesser.length), "finding"));
  return [
    ...parts.map(([its, some]) => h("section", {class: "acts"}, sectionHead(its.title, some),
      its === SECTIONS[UNREAD] ? unread(some) : linesOf(host, some), forHost(host, "To do", its.command))),
    lesser.length > 0 && h("details", {class: "lesser", open: !parts.length}, h("summary", {}, sectionHead("Low and info", lesser)), linesOf(host, lesser)),
  ];
}

const sectionHead = (title, some) => h("h2", {}, title, h("span", {class: "quiet"}, ` ${number(some.length)}${plus(some.reduce((sum, found) => sum + found.parts, 0))}`));
const linesOf = (host, some) => h("ul", {class: "lines"}, some.map((found) => lineOf(host, found)));

// What could not be read, by the reason.
function unread(some) {
  return more(h("ul", {class: "plain"}), grouped(some.map((found) => [found.check, found]), (found) => found.line), ([found, on]) =>
    h("li", {}, unbroken(found.line), " ", on.length > 3 ? h("details", {class: "inline"}, h("summary", {}, plural(on.length, "check")), h("ul", {class: "plain columns"}, on.map((check) => h("li", {}, linkToCheck(check)))))
      : on.map((check) => [linkToCheck(check), " "])), 25);
}

function lineOf(host, found) {
  return h("li", {}, h("details", {class: "line"},
    h("summary", {}, h("span", {}, badge(found.level)), h("span", {class: "subject"}, unbroken(found.subject)), h("span", {}, unbroken(found.line)),
      h("span", {class: "id"}, found.check.id, plus(found.parts), host.fresh.has(found.check) ? h("span", {class: "new"}, " new") : null),
      h("span", {class: "title"}, found.line.startsWith(found.check.title) ? "" : found.check.title)),
    explained(found)));
}

// Other checks whose findings one reports too.
const plus = (many) => (many ? ` +${many}` : "");

function explained(found) {
  const {check} = found, taught = check.taught || {};
  const row = (name, value, ...more) => (value ? [h("dt", {}, name), h("dd", {}, typeof value === "string" ? unbroken(value) : value, more)] : null);
  return h("div", {class: "explained"},
    h("dl", {}, row("Finding", `${check.title}.`, found.gates && " It holds jobs."), row("Observed", found.observed), row("Wanted", found.wanted), row("Because", found.reason),
      found.fix ? row("Fix", h("code", {}, unbroken(found.fix)), ` (${disruption(found)})`) : row("Manual fix", check.manual),
      row("More", linkToCheck(check))),
    h("dl", {}, row("Why", taught["Why it matters"] && prose(taught["Why it matters"])), row("Confirm", taught["Confirm manually"] && h("span", {class: "value"}, unbroken(taught["Confirm manually"]))),
      row("Side effects", found.fix && taught["Side effects of the fix"] && prose(taught["Side effects of the fix"]))));
}

// What passed, what does not apply, what is waived: there, but out of the way.
function rest(host, waived) {
  const skipped = new Map(data.skipped[host.skipped]), told = new Set(host.told.map((found) => found.check));
  const passed = data.judged[host.judged].filter((each) => !skipped.has(each) && !told.has(checks[each]));
  const list = (title, rows) => rows.length > 0 && h("details", {}, h("summary", {}, title), h("ul", {class: "plain columns"}, rows));
  return section("Everything else",
    host.devices.length > 0 && h("details", {}, h("summary", {}, `${plural(host.devices.length, "device")} named here`), deviceTable(host.devices.map((device) => [host, device]), false)),
    list(`${plural(waived.length, "check")} waived`, waived.map((found) => h("li", {}, linkToCheck(found.check), " ", h("span", {class: "quiet"}, found.reason)))),
    list(`${plural(passed.length, "check")} passed`, passed.map((each) => h("li", {title: checks[each].title}, checks[each].id))),
    list(`${plural(skipped.size, "check")} not applicable`, [...skipped].map(([each, reason]) => h("li", {}, checks[each].id, " ", h("span", {class: "quiet"}, text(reason))))),
    /(^| )-i /.test(asked) && appliesTo(asked) ? forHost(host, "Look again", "nodetune audit", asked) : null);
}

function deviceTable(some, named) {
  const heads = [["Device"], ...(named ? [["Host"]] : []), ["Address"], ["UUID"], ["Serial"], ["Link"]];
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Devices"}, table("Devices", heads, some, ([host, [name, address, uuid, serial, link]]) =>
    h("tr", {}, h("th", {scope: "row"}, name), named ? h("td", {}, linkToHost(host)) : null, [address, uuid, serial, link].map((each) => h("td", {class: "figure value"}, each))), 50));
}
