"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const hidden = new Set();
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const pause = (wait, action) => {
    let timer;
    return (...given) => {
      clearTimeout(timer);
      timer = setTimeout(() => action(...given), wait);
    };
  };

  // What a chart shows: the systems that are not hidden, in colours that fit the screen.
  const shade = { "#333333": "#dcdfe2", "#555555": "#a7adb5", "#EAEAEA": "#33383d" };
  const tint = { "#0072B2": "#4aa3df", "#117733": "#44b06a", "#882255": "#cf6591", "#AA4499": "#cf7cc0" };
  const recoloured = (part, colours) =>
    JSON.parse(
      JSON.stringify(part).replace(/"(#[0-9a-f]{6})"/gi, (text, code) => (colours[code] ? `"${colours[code]}"` : text))
    );
  // Parts of a specification that draw, from the whole down to each layer and panel.
  function walk(node, visit) {
    visit(node);
    for (const key of ["layer", "hconcat", "vconcat", "concat"]) (node[key] || []).forEach((part) => walk(part, visit));
    if (node.spec) walk(node.spec, visit);
  }
  function themed(spec) {
    const { datasets, ...rest } = spec;
    if (!dark.matches) return { ...structuredClone(rest), datasets };
    const copy = recoloured(rest, tint);
    copy.config = recoloured(copy.config || {}, shade);
    // Colours of text on cells stay: the cells do.
    walk(copy, (node) => {
      if (node.mark) node.mark = recoloured(node.mark, shade);
    });
    const light = shade["#333333"];
    copy.config.text = { color: light, ...copy.config.text };
    copy.config.rule = { color: light, ...copy.config.rule };
    copy.config.header = { labelColor: light, titleColor: light, ...copy.config.header };
    copy.config.point = { opacity: 1, ...copy.config.point };
    return { ...copy, background: "transparent", datasets };
  }
  function filtered(spec) {
    if (!hidden.size) return spec;
    const keep = (row) =>
      !["system", "a", "b"].some((name) => typeof row[name] === "string" && hidden.has(row[name]));
    const datasets = Object.fromEntries(
      Object.entries(spec.datasets || {}).map(([name, rows]) => [name, rows.filter(keep)])
    );
    return { ...spec, datasets };
  }

  // How wide a chart is: as wide as its column. Widths of panels and steps of categories share one
  // scale; a first drawing shows how much room axes take, a second one fills the column.
  const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const pen = document.createElement("canvas").getContext("2d");
  function lines(text, width, font) {
    pen.font = font;
    return (Array.isArray(text) ? text : [text]).flatMap((line) => {
      const rows = [];
      String(line).split(" ").forEach((word) => {
        const longer = rows.length ? `${rows[rows.length - 1]} ${word}` : word;
        if (rows.length && pen.measureText(longer).width <= width) rows[rows.length - 1] = longer;
        else rows.push(word);
      });
      return rows;
    });
  }
  const isFaceted = (spec) => Boolean(spec.facet || (spec.encoding && (spec.encoding.facet || spec.encoding.column)));
  const isWhole = (spec) =>
    !["facet", "hconcat", "vconcat", "concat", "repeat"].some((key) => key in spec) &&
    !["facet", "row", "column"].some((key) => spec.encoding && spec.encoding[key]);
  const values = (spec, field) => new Set(Object.values(spec.datasets || {}).flat().map((row) => row[field]));
  function legendColumns(spec, node, width) {
    Object.values(node.encoding || {}).forEach((channel) => {
      if (!channel || !channel.field || channel.legend === null || channel.type !== "nominal") return;
      if (!(channel.scale || channel.legend)) return;
      pen.font = `12px ${FONT}`;
      const names = [...values(spec, channel.field)].map((name) => pen.measureText(String(name)).width);
      const columns = Math.max(1, Math.floor(width / (Math.max(0, ...names) + 44)));
      const asked = (channel.legend || {}).columns || names.length;
      channel.legend = { ...channel.legend, columns: Math.min(columns, asked) };
      if (width < 500) channel.legend.orient = "top";
    });
  }
  function wrapFacets(spec, width) {
    // As many panels in a row as are readable, and rows of about the same number.
    let facet = spec.facet;
    if (facet && facet.column && !facet.row) spec.facet = facet = facet.column;
    const encoding = spec.encoding || {};
    if (encoding.column && !encoding.row) {
      encoding.facet = encoding.column;
      delete encoding.column;
    }
    const field = (facet && facet.field) || (encoding.facet && encoding.facet.field);
    if (!field) return 1;
    const panel = spec.spec || spec;
    let least = typeof panel.width === "number" ? Math.max(150, 0.72 * panel.width) : 190;
    if (panel.width && panel.width.step) {
      walk(panel, (node) => {
        const x = (node.encoding || {}).x;
        if (x && x.field) least = panel.width.step * values(spec, x.field).size;
      });
    }
    const panels = Math.max(1, values(spec, field).size);
    const most = Math.min(panels, Math.max(1, Math.floor((width - 60) / (least + 20))));
    const columns = Math.ceil(panels / Math.ceil(panels / most));
    if (facet) spec.columns = columns;
    else encoding.facet.columns = columns;
    return columns;
  }
  function prepared(spec, width) {
    spec.padding = { left: 1, right: 3, top: 4, bottom: 4 };
    spec.config = { ...spec.config, font: FONT, aria: false };
    if (spec.title && spec.title.text) {
      spec.title.text = lines(spec.title.text, width - 40, `bold 15px ${FONT}`);
      if (spec.title.subtitle) spec.title.subtitle = lines(spec.title.subtitle, width - 8, `12px ${FONT}`);
      spec.title.anchor = "start";
      spec.title.frame = "bounds";
    }
    if (spec.hconcat && width < 640) {
      spec.vconcat = spec.hconcat;
      delete spec.hconcat;
    }
    const limit = Math.max(90, width * 0.32);
    const axis = spec.config.axis || {};
    spec.config.axis = { ...axis, labelLimit: Math.min(axis.labelLimit || 320, limit) };
    // No limit: Vega would leave entries out.
    spec.config.legend = { ...spec.config.legend, symbolLimit: 0, labelLimit: Math.min(320, width - 60) };
    walk(spec, (node) => {
      legendColumns(spec, node, width);
      const y = (node.encoding || {}).y;
      if (y && y.axis && y.axis.labelLimit) y.axis.labelLimit = Math.min(y.axis.labelLimit, limit);
    });
    const across = isFaceted(spec) ? wrapFacets(spec, width) : 1;
    limitHeaders(spec);
    if (isWhole(spec) && typeof spec.width === "number" && typeof spec.height === "number") {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    return across;
  }
  function scaled(spec, factor) {
    walk(spec, (node) => {
      if (typeof node.width === "number") node.width = Math.max(40, Math.floor(node.width * factor));
      else if (node.width && node.width.step) node.width = { ...node.width, step: Math.max(9, node.width.step * Math.min(factor, 2)) };
    });
    limitHeaders(spec);
  }
  function limitHeaders(spec) {
    const panel = spec.spec || spec;
    [spec.facet, (spec.encoding || {}).facet].forEach((facet) => {
      if (facet && facet.field && typeof panel.width === "number") facet.header = { ...facet.header, labelLimit: panel.width + 16 };
    });
  }
  function factorOf(spec, view, across, width, drawnWidth) {
    const inner = Object.entries(view.getState({ signals: (name) => /(^|_)(width|childWidth)$/.test(name || "") }).signals)
      .map(([, value]) => value)
      .filter((value) => typeof value === "number" && value > 0);
    if (!inner.length) return 1;
    const total = spec.hconcat ? inner.reduce((a, b) => a + b, 0) : across * Math.max(...inner);
    return Math.max(0.05, (width - (drawnWidth - total)) / total);
  }

  // Charts: first those that come near, then the rest; those in a fold when it opens.
  // Some draw the chart of another place, with rows that a reader chooses.
  all("[data-like]").forEach((place) => {
    if (specs[place.dataset.like]) specs[place.dataset.chart] = specs[place.dataset.like];
    else place.closest("figure").remove();
  });
  const places = all("[data-chart]");
  const drawn = new Map(); // place -> width
  const turns = new Map();
  const results = new Map();
  const isFolded = (place) => Boolean(place.closest("details:not([open])"));
  const widthOf = (place) => Math.floor(place.clientWidth);
  async function embed(place, spec) {
    const before = results.get(place);
    if (before) before.finalize();
    const result = await vegaEmbed(place, spec, {
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    results.set(place, result);
    return result.view;
  }
  const drawnSvg = (place) => place.querySelector("svg.marks") || place.querySelector("svg");
  async function render(place) {
    const width = widthOf(place);
    if (!width) return;
    drawn.set(place, width);
    const spec = themed(filtered(specs[place.dataset.chart]));
    const across = prepared(spec, width);
    const drawnWidth = () => Number(drawnSvg(place).getAttribute("width"));
    if (!spec.autosize) {
      // Without its title, which may be wider than the panels.
      const { title, ...bare } = spec;
      const view = await embed(place, structuredClone(bare));
      scaled(spec, factorOf(spec, view, across, width - 4, drawnWidth()));
    }
    await embed(place, structuredClone(spec));
    if (!spec.autosize && drawnWidth() > width + 2) {
      scaled(spec, (width - 4) / drawnWidth());
      await embed(place, spec);
    }
    const svg = drawnSvg(place);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", place.dataset.alt);
    svg.removeAttribute("aria-roledescription");
    // The picture is one thing to a screen reader: its parts have no names.
    all("[role], [aria-roledescription], [aria-label]", svg).forEach((part) =>
      ["role", "aria-roledescription", "aria-label"].forEach((name) => part.removeAttribute(name))
    );
    all("summary", place).forEach((menu) => menu.setAttribute("aria-label", "save this chart"));
    place.dataset.drawn = "yes";
  }
  function draw(place) {
    if (!drawn.has(place)) drawn.set(place, 0);
    // One drawing at a time in a place; those that wait are replaced by the last.
    const turn = (turns.get(place) || { number: 0, done: Promise.resolve() });
    const number = turn.number + 1;
    const done = turn.done.then(() => {
      if (turns.get(place).number !== number) return undefined;
      return render(place).catch((problem) => {
        place.textContent = "This chart could not be drawn.";
        console.error(problem);
      });
    });
    turns.set(place, { number, done });
    return done;
  }
  const waiting = () => places.filter((place) => !drawn.has(place) && !isFolded(place));
  const drawAll = () => Promise.all([...waiting().map(draw), ...[...turns.values()].map((turn) => turn.done)]);
  function again(isStale = () => true) {
    [...drawn.keys()].filter(isStale).forEach((place) => {
      if (isFolded(place)) drawn.delete(place);
      else draw(place);
    });
  }
  const idle = window.requestIdleCallback || ((action) => setTimeout(action, 30));
  const rest = () => {
    const [next] = waiting();
    if (next) draw(next).then(() => idle(rest));
  };
  const headline = document.getElementById("chart-headline");
  const ready = headline ? draw(headline) : Promise.resolve();
  const near = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ isIntersecting, target }) => {
        if (isIntersecting && !drawn.has(target)) draw(target);
      }),
    { rootMargin: "600px" }
  );
  places.forEach((place) => near.observe(place));
  ready.then(() => setTimeout(() => idle(rest), 200));
  dark.addEventListener("change", () => again());
  window.addEventListener("resize", pause(180, () => again((place) => Math.abs(widthOf(place) - drawn.get(place)) > 2)));

  // For other scripts of the page: other rows (and, with a function, another look) for a chart.
  const originals = {};
  window.report = {
    ready,
    drawAll,
    redraw(key, rows, change = (spec) => spec) {
      originals[key] = originals[key] || specs[key];
      const { datasets, ...restOfSpec } = originals[key];
      specs[key] = { ...change(structuredClone(restOfSpec)), datasets: { ...datasets, rows } };
      return Promise.all(places.filter((place) => place.dataset.chart === key).map(draw));
    },
  };

  // Folds: a link or an address that points into one opens it.
  function reveal(id) {
    const target = id && document.getElementById(id);
    if (!target) return;
    if (target.tagName === "SECTION") target.querySelectorAll(":scope > details").forEach((one) => (one.open = true));
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  }
  function fragment() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  }
  window.addEventListener("hashchange", () => reveal(fragment()));
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal(fragment());
  });
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (target.open) all("[data-chart]", target).filter((p) => !drawn.has(p) && !isFolded(p)).forEach(draw);
    },
    true
  );
  const folds = () => all("details.section, details.fold, details.guide, details.lines");
  const unfold = document.querySelector("[data-unfold]");
  const nameButton = () => (unfold.textContent = folds().every((one) => one.open) ? "Fold all" : "Unfold all");
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Unfold all";
    folds().forEach((one) => (one.open = open));
    nameButton();
  });
  document.addEventListener("toggle", pause(50, nameButton), true);
  document.addEventListener("click", (event) => {
    const panel = document.querySelector(".systems[open]");
    if (panel && !panel.contains(event.target)) panel.open = false;
  });
  reveal(fragment());

  // Terms: explained where the pointer or the focus is; a tap shows and hides it.
  const tip = document.getElementById("tip");
  let explained = null;
  function explain(term) {
    explained = term;
    tip.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent;
    tip.hidden = false;
    const box = term.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left), document.documentElement.clientWidth - tip.offsetWidth - 8);
    const below = box.bottom + 6 + tip.offsetHeight < window.innerHeight || box.top < tip.offsetHeight + 8;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + window.scrollY}px`;
  }
  function forget() {
    explained = null;
    tip.hidden = true;
  }
  const leave = pause(160, () => {
    if (explained && !explained.matches(":hover, :focus") && !tip.matches(":hover")) forget();
  });
  const termOf = (event) => (event.target.closest ? event.target.closest(".term") : null);
  document.addEventListener("pointerover", (event) => {
    const term = termOf(event);
    if (term && event.pointerType !== "touch") explain(term);
    else if (explained) leave();
  });
  document.addEventListener("focusin", (event) => (termOf(event) ? explain(termOf(event)) : explained && forget()));
  document.addEventListener("focusout", (event) => termOf(event) && leave());
  let shownBefore = null;
  document.addEventListener("pointerdown", () => (shownBefore = explained), true);
  document.addEventListener("click", (event) => {
    const term = termOf(event);
    if (term && term === shownBefore) forget();
    else if (term) explain(term);
    else if (explained && !tip.contains(event.target)) forget();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") forget();
    if (termOf(event) && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (explained) forget();
      else explain(termOf(event));
    }
  });

  // Tables: sorted by a click on a column's head; missing values last either way.
  const raw = (cell) => (cell.dataset.value === undefined ? cell.textContent : cell.dataset.value);
  const heads = (table) => [...table.tHead.rows[0].cells];
  const nameOf = (head) => head.querySelector("button").textContent;
  function sortBy(table, column, up) {
    const body = table.tBodies[0];
    const number = heads(table)[column].classList.contains("number");
    const rows = [...body.rows].map((row, place) => [row, place, raw(row.cells[column])]);
    rows.sort(([, i, x], [, j, y]) => {
      if (x === "" || y === "") return (x === "") - (y === "") || i - j;
      const order = number ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true });
      return (up ? order : -order) || i - j;
    });
    body.append(...rows.map(([row]) => row));
    heads(table).forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }
  const tables = all("figure.table table");
  tables.forEach((table) => {
    heads(table).forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const first = head.classList.contains("number") ? "descending" : "ascending";
        sortBy(table, column, now ? now === "descending" : first === "ascending");
      });
    });
  });

  // Rows are shown if they match the words of the filter and none of their systems is hidden.
  const second = (table) => [...table.tHead.rows[0].cells].findIndex((head) => head.textContent.startsWith("compared with"));
  const owners = (table) => [...(table.dataset.systems || "").split(" ").filter(Boolean).map(Number), second(table)].filter((at) => at >= 0);
  function showRows(table) {
    const search = table.closest("figure").querySelector("input[type=search]");
    const words = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const columns = owners(table);
    const rows = [...table.tBodies[0].rows];
    rows.forEach((row) => {
      const text = words.length ? row.textContent.toLowerCase() : "";
      row.hidden =
        columns.some((at) => hidden.has(raw(row.cells[at]))) || !words.every((word) => text.includes(word));
    });
    if (!search) return;
    const left = rows.filter((row) => !row.hidden).length;
    search.parentElement.querySelector("output").textContent = words.length ? `${left} of ${rows.length} rows` : "";
  }
  all("figure.table input[type=search]").forEach((search) => {
    const table = search.closest("figure").querySelector("table");
    search.addEventListener("input", pause(80, () => showRows(table)));
  });

  // Tables as files: the values as they are, not as they are rounded for reading.
  const texts = {
    csv: (rows) =>
      rows.map((row) => row.map((v) => (/[",\n\r]/.test(v) ? `"${v.replace(/"/g, '""')}"` : v)).join(",")).join("\r\n") + "\r\n",
    latex: (rows, shown, numeric) => {
      const safe = (v) =>
        v.replace(/\\/g, "\\textbackslash ").replace(/[&%$#_{}]/g, "\\$&").replace(/~/g, "\\textasciitilde{}").replace(/\^/g, "\\textasciicircum{}").replace(/−/g, "$-$").replace(/–/g, "--");
      const line = (row) => row.map(safe).join(" & ") + " \\\\";
      const [head, ...body] = shown;
      const columns = numeric.map((n) => (n ? "r" : "l")).join("");
      return ["\\begin{tabular}{" + columns + "}", "\\toprule", line(head), "\\midrule", ...body.map(line), "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
    },
  };
  function saved(text, name, kind) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  all("[data-export]").forEach((button) => {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const table = figure.querySelector("table");
      const names = heads(table).map(nameOf);
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      const values = [names, ...rows.map((row) => [...row.cells].map(raw))];
      const shown = [names, ...rows.map((row) => [...row.cells].map((c) => c.textContent))];
      const kind = button.dataset.export;
      const numeric = heads(table).map((head) => head.classList.contains("number"));
      const name = figure.querySelector("figcaption > span").textContent.trim();
      const file = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60) || "table";
      saved(texts[kind](values, shown, numeric), `${file}.${kind === "csv" ? "csv" : "tex"}`, "text/plain");
    });
  });

  // Text to copy: by the clipboard where there is one, by a selection elsewhere.
  function copyBySelection(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("aria-label", "text to copy");
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
  all("[data-copy]").forEach((button) => {
    const status = button.parentElement.querySelector("[role=status]");
    button.addEventListener("click", async () => {
      const text = button.closest("figure").querySelector("pre").textContent;
      let copied = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        copied = copyBySelection(text);
        button.focus();
      }
      status.textContent = copied ? "copied" : "could not copy: select the text";
      setTimeout(() => (status.textContent = ""), 4000);
    });
  });

  // Systems: hidden in the tables that have rows of them, and in all charts.
  const boxes = all(".systems input");
  function show() {
    hidden.clear();
    boxes.filter((box) => !box.checked).forEach((box) => hidden.add(box.value));
    tables.filter((table) => owners(table).length).forEach(showRows);
    drawAgain();
  }
  const drawAgain = pause(60, () => again());
  boxes.forEach((box) => box.addEventListener("change", show));
  const check = (on) => () => {
    boxes.forEach((box) => (box.checked = on));
    show();
  };
  const panel = document.querySelector(".systems");
  if (panel) {
    panel.querySelector("[data-all]").addEventListener("click", check(true));
    panel.querySelector("[data-none]").addEventListener("click", check(false));
  }

  // Paper: what is unfolded, the glossary, and the first rows of long tables.
  const PRINTED_ROWS = 15;
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("#glossary > details:not([open])");
    opened.forEach((one) => (one.open = true));
    tables.forEach((table) => {
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      if (rows.length <= PRINTED_ROWS) return;
      rows.slice(PRINTED_ROWS).forEach((row) => row.classList.add("cut-off"));
      const line = document.createElement("p");
      line.className = "cut";
      line.textContent = `${rows.length - PRINTED_ROWS} more rows are in the file this was printed from.`;
      table.parentElement.after(line);
    });
    const folded = all("details.section:not([open]) h2").length;
    const line = document.querySelector(".unprinted");
    line.textContent = folded ? "Folded sections are not printed: unfold them on the page to print them." : "";
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((one) => (one.open = false));
    all(".cut").forEach((line) => line.remove());
    all(".cut-off").forEach((row) => row.classList.remove("cut-off"));
  });
})();
