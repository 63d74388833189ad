"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const hidden = new Set();

  // Charts: first those that come near; again when systems are hidden or the scheme changes.
  const shade = { "#333333": "#dcdfe2", "#555555": "#a7adb5", "#EAEAEA": "#33383d" };
  function themed(spec) {
    if (!dark.matches || matchMedia("print").matches) return spec;
    const config = JSON.parse(
      JSON.stringify(spec.config || {}).replace(/#333333|#555555|#EAEAEA/g, (c) => shade[c])
    );
    const light = shade["#333333"];
    config.text = { color: light, ...config.text };
    config.header = { labelColor: light, titleColor: light, ...config.header };
    config.point = { opacity: 1, ...config.point };
    return { ...spec, background: "transparent", config };
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
  const drawn = new Set();
  function draw(place) {
    drawn.add(place);
    const spec = themed(filtered(specs[place.dataset.chart]));
    return vegaEmbed(place, spec, {
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
    })
      .then(() => (place.dataset.drawn = "yes"))
      .catch((problem) => {
        place.textContent = "This chart could not be drawn.";
        console.error(problem);
      });
  }
  const places = [...document.querySelectorAll("[data-chart]")];
  const drawAll = () => Promise.all(places.filter((p) => !drawn.has(p)).map(draw));
  if ("IntersectionObserver" in window) {
    const near = new IntersectionObserver(
      (entries) =>
        entries.forEach((entry) => {
          if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
        }),
      { rootMargin: "800px" }
    );
    places.forEach((place) => near.observe(place));
  }
  // The rest one by one, so that nothing waits for all of them.
  const rest = () => {
    const next = places.find((place) => !drawn.has(place));
    if (next) draw(next).then(() => setTimeout(rest, 20));
  };
  setTimeout(rest, 200);
  window.addEventListener("beforeprint", drawAll);
  window.drawAll = drawAll;
  const again = () => drawn.forEach(draw);
  dark.addEventListener("change", again);

  // Tables: sorted by a click on a column's head; missing values last either way.
  function sortBy(table, column, up) {
    const body = table.tBodies[0];
    const number = table.tHead.rows[0].cells[column].classList.contains("number");
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].map((row, place) => [row, place]);
    rows.sort(([a, i], [b, j]) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return (x === "") - (y === "") || i - j;
      const order = number ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true });
      return (up ? order : -order) || i - j;
    });
    rows.forEach(([row]) => body.append(row));
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }
  document.querySelectorAll("figure.table table").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.firstElementChild.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const first = head.classList.contains("number") ? "descending" : "ascending";
        sortBy(table, column, now ? now === "descending" : first === "ascending");
      });
    });
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
  document.querySelectorAll("[data-export]").forEach((button) => {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const table = figure.querySelector("table");
      const heads = [...table.tHead.rows[0].cells];
      const names = heads.map((head) => head.firstElementChild.textContent);
      const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      const raw = [names, ...rows.map((row) => [...row.cells].map((c) => c.dataset.value))];
      const shown = [names, ...rows.map((row) => [...row.cells].map((c) => c.textContent))];
      const kind = button.dataset.export;
      const numeric = heads.map((head) => head.classList.contains("number"));
      const name = figure.querySelector("figcaption").firstChild.textContent.trim();
      const file = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60) || "table";
      saved(texts[kind](raw, shown, numeric), `${file}.${kind === "csv" ? "csv" : "tex"}`, "text/plain");
    });
  });
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.addEventListener("click", () => {
      const pre = button.closest("figure").querySelector("pre");
      const range = document.createRange();
      range.selectNodeContents(pre);
      const chosen = getSelection();
      chosen.removeAllRanges();
      chosen.addRange(range);
      if (navigator.clipboard) navigator.clipboard.writeText(pre.textContent).catch(() => {});
      button.textContent = "selected";
    });
  });

  // Systems: hidden in all tables that have a column of that name, and in all charts.
  const boxes = [...document.querySelectorAll(".systems input")];
  function show() {
    hidden.clear();
    boxes.filter((box) => !box.checked).forEach((box) => hidden.add(box.value));
    document.querySelectorAll("figure.table table").forEach((table) => {
      const names = [...table.tHead.rows[0].cells].map((head) => head.firstElementChild.textContent);
      const columns = names.flatMap((name, at) => (["system", "a", "b", "best"].includes(name) ? [at] : []));
      if (names[0] !== "system" && !columns.some((at) => ["a", "b", "system"].includes(names[at]))) return;
      const own = columns.filter((at) => names[at] !== "best");
      [...table.tBodies[0].rows].forEach((row) => {
        row.hidden = own.some((at) => hidden.has(row.cells[at].dataset.value));
      });
    });
    again();
  }
  boxes.forEach((box) => box.addEventListener("change", show));
  const all = (on) => () => {
    boxes.forEach((box) => (box.checked = on));
    show();
  };
  const panel = document.querySelector(".systems");
  if (panel) {
    panel.querySelector("[data-all]").addEventListener("click", all(true));
    panel.querySelector("[data-none]").addEventListener("click", all(false));
  }
})();
