// The search of the site in place of mkdocs' own: a browser starts no worker and loads no JSON from a folder on disk, so
// this one loads two scripts, lunr.js and index.js (written by generate.py), and works from disk and from a server alike.

function load(name, then) {
  const script = document.createElement("script");
  script.src = `${base_url}/search/${name}`;
  script.onload = then;
  document.head.append(script);
}

function build(pages) {
  lunr.tokenizer.separator = /[\s\-]+/;
  return lunr(function () {
    this.field("title", {boost: 10});
    this.field("text");
    this.ref("location");
    pages.forEach((page) => this.add(page));
  });
}

// What is typed is words, not lunr's own language: a colon or a tilde in a command is no operator.
function find(index, typed) {
  const words = lunr.tokenizer(typed).map(String);
  return words.length ? index.query((query) => words.forEach((word) => query.term(word))) : [];
}

function show(box, found, pages) {
  const articles = found.slice(0, 100).map(({ref}) => {
    const page = pages.get(ref), link = document.createElement("a");
    link.href = `${base_url}/${ref}`;
    link.textContent = page.title;
    const article = document.createElement("article"), head = document.createElement("h3"), text = document.createElement("p");
    head.append(link);
    text.textContent = page.text.slice(0, 200);
    article.append(head, text);
    return article;
  });
  box.replaceChildren(...(articles.length ? articles : [box.dataset.noResultsText]));
}

function start() {
  const field = document.getElementById("mkdocs-search-query"), box = document.getElementById("mkdocs-search-results");
  const pages = new Map(searchIndex.docs.map((page) => [page.location, page]));
  const index = build(searchIndex.docs);
  const search = () => show(box, find(index, field.value), pages);
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.addEventListener("input", search);
  search();
}

if (document.getElementById("mkdocs-search-results")) load("lunr.js", () => load("index.js", start));
