// The address says which page is shown: #/, #/findings?area=gpu, #/check/ID, #/host/NAME, #/measurements, #/search/WORDS.

const main = document.getElementById("main");
const field = document.getElementById("search");

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [kind, ...others] = path.split("/");
  const name = decoded(others.join("/"));
  const pages = {
    "": () => overview(new URLSearchParams(query)),
    findings: () => findingsPage(new URLSearchParams(query)),
    hosts: () => hostsPage(new URLSearchParams(query)),
    check: () => found(checks.find((check) => check.id === name), checkPage),
    host: () => found(hostOf.get(name), (host) => hostPage(host, new URLSearchParams(query))),
    measurements: () => found(measured, () => measurementsPage(new URLSearchParams(query))),
    search: () => searchPage(name),
  };
  return [kind, Object.hasOwn(pages, kind) ? pages[kind]() : found()];
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function found(thing, page) {
  return thing ? page(thing) : [...heading("Not in this audit"), h("p", {}, h("a", {href: "#/"}, "Overview"))];
}

// `moved`: a person went to another page, and reading begins at its top.
function draw(moved) {
  say("");
  const [kind, parts] = route();
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  for (const link of document.querySelectorAll("header a")) {
    const its = link.getAttribute("href").replace("#/", "");
    const here = !link.classList.contains("brand") && (its === kind || (its === "findings" && kind === "check") || (its === "hosts" && kind === "host"));
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = main.querySelector("h1");
  document.title = `${title ? title.textContent : "audit"} · nodetune audit`;
  place();

  function place() {
    if (kind === "search") {
      if (document.activeElement !== field) field.value = decoded(location.hash.replace("#/search/", ""));
      return;
    }
    field.value = "";
    const kept = keepFocus && document.getElementById(keepFocus);
    keepFocus = "";
    if (kept) kept.focus();
    else if (moved && title) {
      window.scrollTo(0, 0);
      title.focus({preventScroll: true});
    }
  }
}

let waiting = 0;
function search() {
  const words = field.value.trim(), wanted = words ? "#/search/" + encodeURIComponent(words) : "#/";
  if (location.hash.startsWith("#/search/")) history.replaceState(null, "", wanted);
  else history.pushState(null, "", wanted);
  draw(false);
}
field.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, hosts.length > 2000 ? 150 : 30);
});
document.querySelector("form[role=search]").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    field.focus();
  }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// On paper nothing can be opened: the overview brings the findings along, and what is folded is open.
let extra = null;
window.addEventListener("beforeprint", () => {
  if (/^#?\/?$/.test(location.hash) && hosts.length > 1) {
    extra = h("div", {class: "paper"}, failing.slice(0, 100).map((check) => h("section", {class: "leaf"}, checkPage(check))));
    main.append(extra);
  }
  for (const details of main.querySelectorAll("details:not(.hosts, .figures, [open])")) details.open = true;
});
window.addEventListener("afterprint", () => {
  if (extra) extra.remove();
  extra = null;
});

if (!measured) document.querySelector('nav a[href="#/measurements"]').remove();
if (hosts.length === 1) document.querySelector('nav a[href="#/hosts"]').remove();
document.querySelector("footer").textContent = `nodetune ${data.nodetune} · ${date(data.time)} · this page loads and sends nothing`;
window.addEventListener("hashchange", () => draw(true));
draw(false);
