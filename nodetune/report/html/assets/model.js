"use strict";
// What the page knows: the data of the audit, turned into objects that point at one another.

const SEVERITIES = ["info", "low", "medium", "high", "critical"];
// What a host or an area comes to: 0 nothing wrong, 1 to 5 a severity; below zero what is not known.
const CLEAN = 0, UNKNOWN = -1, UNREACHED = -2, NOTHING = -3;
const LEVELS = {
  5: "critical", 4: "high", 3: "medium", 2: "low", 1: "info",
  0: "nothing found", [-1]: "not known", [-2]: "not reached", [-3]: "does not apply",
};
// No colour stands alone: each has its sign.
const SIGNS = {5: "C", 4: "H", 3: "M", 2: "L", 1: "I", [CLEAN]: "✓", [UNKNOWN]: "?", [UNREACHED]: "×", [NOTHING]: ""};
const URGENCY = [5, 4, -2, 3, 2, 1, -1, 0];

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.texts[number];

const checks = data.checks.map((check) => ({...check, failing: [], unknown: [], waived: [], fresh: 0, gone: 0, level: 0, cost: 0}));
const areas = [...new Set(checks.map((check) => check.area))].sort();

// By who acts, in the order of the report. The last is what could not be read.
const SECTIONS = data.sections.map(([name, title, command]) => ({
  name, title, command, short: name.startsWith("apply") ? name[0].toUpperCase() + name.slice(1).replace("-", " ") : title.split(/[:,]/)[0],
}));
const BROKEN = 0, UNREAD = SECTIONS.length - 1;

const findings = data.findings.map(([check, status, severity, observed, wanted, reason, fix, disruption, gates, cost, section, subject, line, parts]) => ({
  check: checks[check], status: ["fail", "unknown", "waived"][status], level: severity + 1, observed: text(observed),
  wanted: text(wanted), reason: text(reason), fix: text(fix), disruption: text(disruption), gates: Boolean(gates), cost,
  section, subject: text(subject), line: text(line), parts, lesser: severity < 2 && section !== BROKEN,
}));

// Which areas have a check that applies: the same for all hosts that were judged and skipped alike.
const applying = new Map();
function applies(judged, skipped) {
  const key = judged + "/" + skipped;
  if (!applying.has(key)) {
    const left = new Set(data.skipped[skipped].map(([check]) => check));
    applying.set(key, new Set(data.judged[judged].filter((check) => !left.has(check)).map((check) => checks[check].area)));
  }
  return applying.get(key);
}

const taken = new Map();
const hosts = data.hosts.map(([name, state, message, profile, judged, skipped, told, devices, change], index) => {
  const host = {
    index, name, devices: devices.map((number) => data.devices[number]), state: text(state), message: text(message), profile: text(profile), judged, skipped,
    told: told.map((number) => findings[number]), fresh: new Set(), gone: [], added: false, levels: new Map(), level: CLEAN, unjudged: false,
  };
  host.reached = host.state === "ok";
  const count = (taken.get(name) || 0) + 1;
  taken.set(name, count);
  host.key = count > 1 ? name + "~" + count : name;
  if (change) {
    host.fresh = new Set(change[0].map((check) => checks[check]));
    host.gone = change[1].map(([check, now]) => ({check: checks[check], now}));
    host.added = Boolean(change[2]);
  }
  return settle(host);
});
const hostOf = new Map(hosts.map((host) => [host.key, host]));

function settle(host) {
  if (!host.reached) {
    host.level = UNREACHED;
    return host;
  }
  for (const found of host.told) {
    const check = found.check;
    check[found.status === "fail" ? "failing" : found.status].push([host, found]);
    host.level = worse(host.level, levelOf(found));
    if (found.status === "fail") check.level = Math.max(check.level, found.level);
    check.cost = Math.max(check.cost, found.cost);
  }
  for (const check of host.fresh) check.fresh += 1;
  for (const {check} of host.gone) check.gone += 1;
  return host;
}

function levelOf(found) {
  return found.status === "fail" ? found.level : found.status === "unknown" ? UNKNOWN : CLEAN;
}

function worse(one, other) {
  return URGENCY.indexOf(one) <= URGENCY.indexOf(other) ? one : other;
}

const reached = hosts.filter((host) => host.reached);

// Checks that most hosts could not judge say something about the audit, not about an area of one host: they are counted apart.
const unjudged = new Set(reached.length > 1 ? checks.filter((check) => check.unknown.length > reached.length / 2) : []);
for (const host of reached) {
  for (const area of applies(host.judged, host.skipped)) host.levels.set(area, CLEAN);
  for (const found of host.told) {
    const {area} = found.check;
    if (found.status === "unknown" && unjudged.has(found.check)) host.unjudged = true;
    else host.levels.set(area, worse(host.levels.get(area) ?? CLEAN, levelOf(found)));
  }
}
const failing = checks.filter((check) => check.failing.length)
  .sort((a, b) => b.level - a.level || b.cost - a.cost || b.failing.length - a.failing.length || (a.id < b.id ? -1 : 1));
const natural = new Intl.Collator("en", {numeric: true});
hosts.sort((a, b) => natural.compare(a.name, b.name));
hosts.forEach((host, place) => { host.place = place; });
const urgent = [...hosts].sort((a, b) => URGENCY.indexOf(a.level) - URGENCY.indexOf(b.level)
  || count(b, b.level) - count(a, a.level) || a.place - b.place);

function count(host, level) {
  return host.told.reduce((sum, found) => sum + (found.status === "fail" && found.level === level), 0);
}

// Hosts whose areas all come to the same, together: [{levels, hosts}], the worst first.
function alike(some) {
  const groups = new Map();
  for (const host of some) {
    const key = host.reached ? [...areas.map((area) => host.levels.get(area) ?? NOTHING), host.unjudged].join() : host.state;
    if (!groups.has(key)) groups.set(key, {levels: host.levels, level: host.level, state: host.state, hosts: []});
    groups.get(key).hosts.push(host);
  }
  const weight = (group) => [5, 4, 3, 2, 1].map((level) => [...group.levels.values()].filter((one) => one === level).length);
  const compare = (a, b) => {
    const [one, other] = [weight(a), weight(b)];
    const at = one.findIndex((each, place) => each !== other[place]);
    return at < 0 ? b.hosts.length - a.hosts.length : other[at] - one[at];
  };
  return [...groups.values()].sort((a, b) => URGENCY.indexOf(a.level) - URGENCY.indexOf(b.level) || compare(a, b));
}

// gpu001, gpu002, gpu004 → gpu[001-002,004]; numbers that stand last in the name only.
function fold(names) {
  const stems = new Map(), out = [];
  for (const name of names) {
    const [, stem, digits, tail] = /^(.*?)(\d{1,9})?(\D*)$/s.exec(name) || [, name];
    if (digits === undefined) out.push(name);
    else {
      const key = JSON.stringify([stem, digits[0] === "0" ? digits.length : 0, tail]);
      if (!stems.has(key)) stems.set(key, {stem, tail, width: digits[0] === "0" ? digits.length : 0, numbers: new Set()});
      stems.get(key).numbers.add(Number(digits));
    }
  }
  for (const {stem, tail, width, numbers} of joined(stems)) {
    const pieces = ranges([...numbers].sort((a, b) => a - b), width);
    out.push(numbers.size > 1 ? `${stem}[${pieces.join()}]${tail}` : stem + pieces[0] + tail);
  }
  return out.sort(natural.compare).join(", ");
}

// 098, 099 and 100 are one row of numbers, although only the first two begin with a zero.
function joined(stems) {
  for (const [key, wide] of stems) {
    const [stem, width, tail] = JSON.parse(key);
    const plain = width ? stems.get(JSON.stringify([stem, 0, tail])) : undefined;
    if (!plain) continue;
    for (const number of [...plain.numbers]) {
      if (String(number).length === width) {
        wide.numbers.add(number);
        plain.numbers.delete(number);
      }
    }
    if (!plain.numbers.size) stems.delete(JSON.stringify([stem, 0, tail]));
  }
  return stems.values();
}

function ranges(numbers, width) {
  const told = (number) => String(number).padStart(width, "0");
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? told(first) : `${told(first)}-${told(last)}`));
}

// Every word must be somewhere.
function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (...texts) => {
    const all = texts.join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  };
}

function matchingHosts(query) {
  const match = matcher(query);
  return urgent.filter((host) => match(host.name, host.profile, host.reached ? "" : `${host.state} ${host.message}`));
}

// Devices by index, address, UUID, serial number, link and host; those of which a word is a whole name come first.
function matchingDevices(query) {
  const match = matcher(query), asked = query.toLowerCase().split(/\s+/);
  const own = (names) => names.join("\n").toLowerCase();
  const some = hosts.flatMap((host) => host.devices.filter((names) => match(host.name, ...names) && asked.some((word) => word && own(names).includes(word))).map((names) => [host, names]));
  const whole = ([, names]) => names.some((name) => asked.includes(name.toLowerCase()));
  return [...some.filter(whole), ...some.filter((each) => !whole(each))];
}

function matchingChecks(query) {
  const match = matcher(query);
  const values = (check) => [...new Set(check.failing.map(([, found]) => found))].flatMap((found) => [found.observed, found.reason, found.fix]);
  return failing.filter((check) => match(check.id, check.title, check.area, SEVERITIES[check.level - 1], ...values(check)));
}

// [finding, its hosts] of each kind, the most hosts first.
function grouped(pairs, keyOf) {
  const groups = new Map();
  for (const pair of pairs) {
    const key = keyOf(pair[1]);
    if (!groups.has(key)) groups.set(key, [pair[1], []]);
    groups.get(key)[1].push(pair[0]);
  }
  return [...groups.values()].sort((a, b) => b[1].length - a[1].length);
}
