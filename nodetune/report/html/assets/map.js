// Every host as one square, in the order of their names: thousands at once, and neighbours side by side.

function fleetMap(some) {
  let area = "", at = -1, columns = 1, size = 10;
  const canvas = h("canvas", {
    tabindex: 0, role: "application", "aria-roledescription": "map of hosts",
    "aria-label": `${plural(some.length, "host")}, a square each, worst severity by colour. Arrow keys move, Enter opens the host.`,
    onkeydown: key, onmousemove: (event) => point(under(event)), onmouseleave: () => point(-1), onclick: (event) => open(under(event)),
    onfocus: () => point(Math.max(0, at)), onblur: () => point(-1),
  });
  const cursor = h("span", {class: "cursor", hidden: true});
  const told = h("p", {class: "told", "aria-live": "polite"}, "\u00a0");
  const choose = h("select", {id: "map-area", onchange: () => { area = choose.value; draw(); }},
    h("option", {value: ""}, "all areas"), areas.map((each) => h("option", {value: each}, each)));
  const level = (host) => (!host.reached ? UNREACHED : area ? host.levels.get(area) ?? NOTHING : host.level);
  const redraw = () => (canvas.isConnected ? draw() : stop());
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const observer = new ResizeObserver(redraw);
  const box = h("div", {class: "map"}, h("p", {}, h("label", {for: "map-area"}, "Show "), choose), h("div", {class: "squares"}, canvas, cursor), told);
  observer.observe(box);
  scheme.addEventListener("change", redraw);
  return box;

  function stop() {
    observer.disconnect();
    scheme.removeEventListener("change", redraw);
  }

  function draw() {
    const width = canvas.parentElement.clientWidth, ratio = window.devicePixelRatio || 1;
    size = some.length <= 200 ? 24 : some.length <= 1000 ? 18 : 14;
    columns = Math.max(1, Math.floor(width / size));
    const rows = Math.ceil(some.length / columns);
    if (canvas.width !== columns * size * ratio || canvas.height !== rows * size * ratio) {
      canvas.width = columns * size * ratio;
      canvas.height = rows * size * ratio;
      canvas.style.width = `${columns * size}px`;
      canvas.style.height = `${rows * size}px`;
    }
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, columns * size, rows * size);
    const colour = (name) => style.getPropertyValue(name).trim();
    const colours = new Map([0, 1, 2, 3, 4, 5].map((each) => [each, [colour(`--level${each}`), colour(`--on${each}`)]]));
    const pens = {pen, colours, quiet: colour("--quiet")};
    pen.font = `600 ${Math.floor(size * 0.6)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    some.forEach((host, place) => square(pens, level(host), (place % columns) * size, Math.floor(place / columns) * size));
    outline();
  }

  function outline() {
    cursor.hidden = at < 0;
    Object.assign(cursor.style, {left: `${(at % columns) * size}px`, top: `${Math.floor(at / columns) * size}px`, width: `${size - 1}px`, height: `${size - 1}px`});
  }

  function square({pen, colours, quiet}, its, x, y) {
    const side = size - (size > 12 ? 2 : 1);
    if (its >= 0) {
      pen.fillStyle = colours.get(its)[0];
      pen.fillRect(x, y, side, side);
    } else if (its !== NOTHING) {
      pen.strokeStyle = quiet;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      if (its === UNREACHED) cross(pen, x + 2, y + 2, side - 4);
    } else {
      pen.fillStyle = quiet;
      pen.fillRect(x + side / 2 - 0.5, y + side / 2 - 0.5, 1, 1);
    }
    if (its > 0 || its === UNKNOWN) {
      pen.fillStyle = its > 0 ? colours.get(its)[1] : quiet;
      pen.fillText(SIGNS[its], x + side / 2, y + side / 2 + 0.5);
    }
  }

  function cross(pen, x, y, side) {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + side, y + side);
    pen.moveTo(x + side, y);
    pen.lineTo(x, y + side);
    pen.stroke();
  }

  function under(event) {
    const column = Math.floor(event.offsetX / size), place = Math.floor(event.offsetY / size) * columns + column;
    return column >= 0 && column < columns && place < some.length ? place : -1;
  }

  function point(place) {
    if (place === at) return;
    at = place;
    outline();
    const host = some[at];
    const bad = host ? host.told.filter((found) => found.status === "fail" && (!area || found.check.area === area)).length : 0;
    told.textContent = !host ? "\u00a0" : `${host.name}: ${LEVELS[level(host)]}${bad ? ", " + plural(bad, "finding") : ""}${host.reached ? "" : ", " + host.state}`;
  }

  function key(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: some.length - 1 - at}[event.key];
    if (event.key === "Enter" || event.key === " ") open(at);
    else if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    else point(Math.min(some.length - 1, Math.max(0, at + step)));
    event.preventDefault();
  }

  function open(place) {
    if (some[place]) location.hash = "#/host/" + encodeURIComponent(some[place].key);
  }
}
