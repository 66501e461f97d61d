// The page of one finding: why it matters, what was seen where, and what to do.

function checkPage(check) {
  const taught = check.taught || {};
  const level = check.level || CLEAN;
  const told = (name, title = name) => (taught[name] ? section(title, h("p", {class: "prose"}, prose(taught[name]))) : null);
  return [
    h("p", {class: "crumbs"}, h("a", {href: "#/findings"}, "Findings"), " / ", h("a", {href: `#/findings?area=${encodeURIComponent(check.area)}`}, check.area)),
    h("h1", {tabindex: -1}, check.title),
    h("p", {class: "lead"}, level > 0 ? badge(level, true) : null, " ", h("span", {class: "id"}, check.id), " ",
      check.failing.length ? `on ${number(check.failing.length)} of ${plural(reached.length, "host")}` : "fails on no host",
      check.fresh ? `, new on ${number(check.fresh)}` : "", check.gone ? `, gone from ${number(check.gone)}` : ""),
    h("div", {class: "columns"},
      h("div", {}, told("Why it matters"),
        check.failing.length ? section("What was seen", variants(check.failing)) : null,
        check.unknown.length ? section("Could not be judged", reasonList(check.unknown)) : null,
        check.waived.length ? section("Waived", reasonList(check.waived)) : null),
      h("div", {}, check.failing.length ? section("Put it right", remedy(check)) : null,
        taught["Confirm manually"] ? section("Confirm manually", h("p", {class: "prose value"}, unbroken(taught["Confirm manually"]))) : null,
        told("Sources"))),
  ];
}

function remedy(check) {
  const [, found] = check.failing.find(([, each]) => each.fix) || check.failing[0];
  const values = new Set(check.failing.map(([, each]) => each.fix).filter(Boolean));
  const taught = check.taught || {};
  const selected = [check.id, ...(check.parts || [])].map((id) => "-s " + id).join(" ");
  return h("div", {class: "prose"},
    found.fix ? [
      h("p", {}, values.size === 1 ? h("code", {}, unbroken(found.fix)) : "Values are computed for each host.", ` Disruption: ${found.disruption}.`),
      h("p", {}, "What would be set, and where: ", command("nodetune plan", asked, selected)),
      appliesTo(asked) ? h("p", {}, "Set it, and audit again: ", command("nodetune apply", asked, selected, allowed(found.disruption))) : null,
    ] : [h("p", {}, unbroken(check.manual || check.fix || "Manual fix.")), h("p", {}, "More: ", command("nodetune explain", check.id, data.explaining))],
    taught["Side effects of the fix"] ? h("p", {}, h("b", {}, "Side effects: "), prose(taught["Side effects of the fix"])) : null);
}

// Saved facts and srun can be audited, but not changed.
const appliesTo = (options) => !/(^| )(--facts |--transport slurm)/.test(options);

// By default, apply does nothing that disrupts running work.
const allowed = (cost) => (["none", "new-sessions"].includes(cost) ? "" : `--max-disruption ${cost}`);

function variants(pairs) {
  const some = grouped(pairs, (found) => JSON.stringify([found.observed, found.wanted, found.reason]));
  return table("What was seen", [["Observed"], ["Wanted"], ["Hosts"]], some, ([found, on]) => h("tr", {},
    h("td", {class: "value"}, unbroken(found.observed), found.reason ? h("span", {class: "title"}, unbroken(found.reason)) : null),
    h("td", {class: "value"}, unbroken(found.wanted)), h("td", {}, hostNames(on.sort((a, b) => a.place - b.place)))), 25);
}

function reasonList(pairs, of = (found) => found.reason, part = 25) {
  return more(h("ul", {class: "plain"}), grouped(pairs, of), ([found, on]) => h("li", {}, unbroken(of(found)), " ", hostNames([...new Set(on)])), part);
}
