// Building the page. Texts become text nodes and nothing else, whatever is in them.

function h(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const number = (value) => value.toLocaleString("en");
const plural = (value, word, many) => `${number(value)} ${value === 1 ? word : many || word + "s"}`;
const date = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";

// A severity by colour and by letter; `word` says it in full.
function badge(level, word) {
  const sign = SIGNS[level];
  const mark = h("span", {class: `mark level${level}`, title: word ? null : LEVELS[level], "aria-hidden": Boolean(word)}, sign);
  return word ? h("span", {class: "named"}, mark, " ", LEVELS[level]) : [mark, h("span", {class: "unseen"}, LEVELS[level])];
}

const linkToHost = (host) => h("a", {href: "#/host/" + encodeURIComponent(host.key)}, host.name);
const linkToCheck = (check) => h("a", {class: "id", href: "#/check/" + encodeURIComponent(check.id)}, check.id);

// Commands are there to be copied, and break at spaces only. No command contains a name that a shell would change.
function command(...parts) {
  const whole = parts.filter(Boolean).join(" "), code = h("code", {}, unbroken(whole));
  const button = h("button", {type: "button", class: "copy", "aria-label": `Copy ${whole}`, onclick: () => copy(whole, code, button)}, "Copy");
  return h("span", {class: "command"}, code, " ", button);
}

async function copy(whole, code, button) {
  try {
    await navigator.clipboard.writeText(whole);
  } catch { // an old browser, or one that forbids it to pages on disk
    getSelection().selectAllChildren(code);
    if (!document.execCommand("copy")) return;
  }
  say("Copied");
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// A line breaks between words, never within an option, an address or a path that fits on a line.
function unbroken(given) {
  return given.split(/([^ ]*[-/:=_,][^ ]*)/).map((piece, place) => (place % 2 ? h("span", {class: "word"}, piece) : piece)).filter(Boolean);
}

const isPlainWord = (name) => /^[A-Za-z0-9][\w.-]*$/.test(name);

const LONGEST = 160;

// Names of hosts, folded; the single ones are links in a list that opens.
function hostNames(some) {
  if (some.length === 1) return linkToHost(some[0]);
  const folded = fold(some.map((host) => host.name));
  const shown = folded.length > LONGEST ? folded.slice(0, folded.lastIndexOf(",", LONGEST) + 1) + " …" : folded;
  return h("details", {class: "hosts", ontoggle: fill}, h("summary", {}, h("b", {}, plural(some.length, "host")), " ", shown));

  function fill() {
    if (this.open && this.children.length < 2) this.append(more(h("ul", {class: "names"}), some, (host) => h("li", {}, linkToHost(host))));
  }
}

// A list or table body that shows a part and offers the rest.
function more(parent, items, row, part = 200) {
  let shown = 0;
  const button = h("button", {type: "button", onclick: grow});
  const box = h("div", {class: "more"}, parent, button);
  const body = parent.tBodies ? parent.appendChild(h("tbody")) : parent;
  grow();
  return box;

  function grow(event) {
    const added = items.slice(shown, shown + part).map(row);
    body.append(...added);
    shown += added.length;
    button.hidden = shown >= items.length;
    button.textContent = `Show ${number(Math.min(part, items.length - shown))} more of ${number(items.length)}`;
    if (event && added.length) (added[0].querySelector("a, button") || button).focus();
  }
}

function table(label, heads, items, row, part, kind) {
  const head = h("thead", {}, h("tr", {}, heads.map(([title, kind]) => h("th", {scope: "col", class: kind}, kind === "sign" ? h("span", {class: "unseen"}, title) : title))));
  return more(h("table", {"aria-label": label, class: kind}, head), items, row, part);
}

// A share of all hosts as a bar; the figure next to it says the same.
function share(part, whole, level) {
  const bar = h("span", {class: `bar level${level}`, "aria-hidden": true});
  bar.style.width = `${Math.max(2, (100 * part) / Math.max(1, whole))}%`;
  return h("span", {class: "share"}, h("span", {class: "track", "aria-hidden": true}, bar), number(part));
}

// Addresses in our own texts as links; only https, as the checks have them.
function prose(given) {
  return given.split(/(https:\/\/[^\s,;]+[^\s,;.)])/).map((piece, place) =>
    place % 2 ? h("a", {href: piece, rel: "noopener noreferrer", target: "_blank"}, piece) : unbroken(piece));
}

function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}

const say = (told) => { document.getElementById("status").textContent = told; };
