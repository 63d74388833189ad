// Look closer: readers choose what the chart, the table and the sentences show.
(() => {
  const KEY = "look-closer";
  const MOST_DRAWN = 8;
  const EVERY = "";
  const section = document.getElementById(KEY);
  if (!section) return;
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const form = section.querySelector("form");
  const fold = section.querySelector("details");
  const selects = Object.fromEntries([...form.querySelectorAll("select")].map((one) => [one.name, one]));
  const names = Object.keys(selects);
  const table = section.querySelector("table");
  const live = section.querySelector(".pair");
  const unknown = section.querySelector(".unknown");
  const hasPair = "a" in selects;
  const text = (cutoff) => (cutoff === null ? EVERY : String(cutoff));

  // The numbers: whole ones, of which the last so many digits are decimals.
  const groups = new Map();
  const keyOf = (...parts) => JSON.stringify(parts);
  data.groups.forEach(([metric, cutoff, design, users, scores, pairs]) =>
    groups.set(keyOf(metric, text(cutoff), design, users), { scores, pairs })
  );
  const cutoffsOf = (metric) => {
    const known = new Set(data.groups.filter((one) => one[0] === metric).map((one) => text(one[1])));
    return [...known].sort((x, y) => (x === EVERY) - (y === EVERY) || Number(x) - Number(y));
  };
  const numberOf = (whole, decimals) => (whole === null || whole === undefined ? null : Number(`${whole}e${-decimals}`));
  const exact = (value, decimals) => (value === null ? null : Number(value.toFixed(Math.max(0, Math.min(20, decimals)))));
  function placesOf(column, better) {
    if (column.p) return column.p;
    const sign = better === "lower" ? -1 : 1;
    const ordered = column.v.filter((one) => one !== null).map((one) => sign * one).sort((x, y) => y - x);
    const first = new Map();
    ordered.forEach((value, at) => first.has(value) || first.set(value, at + 1));
    return column.v.map((one) => (one === null ? null : first.get(sign * one)));
  }
  function scoresOf(choice, design) {
    const group = groups.get(keyOf(choice.metric, choice.cutoff, design, choice.users));
    if (!group) return [];
    const column = data.columns[group.scores];
    const places = placesOf(column, data.better[choice.metric]);
    return data.systems.map((system, at) => {
      const value = numberOf(column.v[at], column.e);
      const margin = numberOf(column.m[at], column.e);
      const ends = value === null || margin === null ? [null, null] : [value - margin, value + margin];
      const [low, high] = ends.map((one) => exact(one, column.e));
      return { design, system, value, low, high, chance: column.c === undefined ? null : column.c, place: places[at] };
    });
  }
  function pairOf(choice, design) {
    const group = groups.get(keyOf(choice.metric, choice.cutoff, design, choice.users));
    if (!group || group.pairs === undefined) return null;
    const [a, b] = [data.systems.indexOf(choice.a), data.systems.indexOf(choice.b)];
    const at = data.pairs.findIndex(([x, y]) => (x === a && y === b) || (x === b && y === a));
    const column = data.columns[group.pairs];
    if (at < 0 || column.d[at] === null) return null;
    const sign = data.pairs[at][0] === a ? 1 : -1;
    const [better, worse] = sign > 0 ? [column.b[at], column.w[at]] : [column.w[at], column.b[at]];
    const users = Array.isArray(column.n) ? column.n[at] : column.n;
    return {
      difference: sign * numberOf(column.d[at], column.e),
      margin: numberOf(column.m[at], column.e),
      better, worse, same: users - better - worse, users,
    };
  }

  // Words
  const label = ({ metric, cutoff }) => (cutoff === EVERY ? metric : `${metric}@${cutoff}`);
  const decimalsFor = (...values) => {
    const greatest = Math.max(...values.filter((one) => one !== null).map(Math.abs), 0);
    return greatest > 0 ? Math.min(12, Math.max(4, 2 - Math.floor(Math.log10(greatest)))) : 4;
  };
  const written = (value, decimals = 4) =>
    value === null ? "–" : value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
  const count = (number) => number.toLocaleString("en");
  const people = (number, rest) => `${count(number)} ${number === 1 ? "user is" : "users are"} ${rest}`;
  function whereOf(choice, design) {
    const users = Object.keys(data.users).length > 1 ? `, over ${data.users[choice.users]}` : "";
    return `Under ${design}${users}, `;
  }
  function countsOf(pair, choice) {
    const side = data.better[choice.metric];
    if (side === "neither")
      return `${count(pair.better)} of ${count(pair.users)} users have a higher value with ${choice.a}, ${count(pair.worse)} a lower one, ${count(pair.same)} the same`;
    return `${people(pair.better, `better off with ${choice.a}`)}, ${count(pair.worse)} worse off, ${count(pair.same)} the same`;
  }
  function sentence(choice, design, isOne = true) {
    const rows = scoresOf(choice, design);
    const where = isOne ? whereOf(choice, design) : `${design}: `;
    const [a, b] = [choice.a, choice.b].map((name) => rows.find((row) => row.system === name));
    if (!rows.length) return `${where}there is no ${label(choice)}: nobody is averaged there.`;
    const missing = [a, b].filter((row) => row.value === null).map((row) => row.system);
    if (missing.length) return `${where}${label(choice)} of ${missing.join(" and of ")} is not defined.`;
    const pair = pairOf(choice, design);
    const difference = pair ? pair.difference : a.value - b.value;
    const decimals = decimalsFor(a.value, b.value);
    const size = written(Math.abs(difference), decimals);
    const side = data.better[choice.metric];
    const which = side === "lower" ? " (lower is better)" : side === "neither" ? " (neither side is better)" : "";
    const metric = `${label(choice)}${which}`;
    const isNone = Number(size.replace(/,/g, "")) === 0;
    let words = isNone
      ? `${where}${metric} of ${choice.a} and of ${choice.b} is the same to ${decimals} decimals`
      : `${where}${metric} of ${choice.a} is ${size} ${difference > 0 ? "higher" : "lower"} than that of ${choice.b}`;
    if (!pair) return `${words}. ${noInterval(choice, design)}`;
    if (pair.margin === null) return `${words}. One user is averaged: there is no interval.`;
    const middle = isNone ? difference : Math.abs(difference);
    const ends = [middle - pair.margin, middle + pair.margin];
    words += ` [${written(ends[0], decimals)}, ${written(ends[1], decimals)}]; ${countsOf(pair, choice)}.`;
    if (isOne && ends[0] <= 0 && ends[1] >= 0 && pair.margin > 0) words += " The interval includes 0: this difference may be chance.";
    return words;
  }
  function noInterval(choice, design) {
    const group = groups.get(keyOf(choice.metric, choice.cutoff, design, choice.users));
    if (group.pairs === undefined) return "This metric has no value per user, so there is no interval.";
    return "The page holds intervals of differences for pairs of the best systems only.";
  }
  const shownDesigns = (choice) => (choice.design === EVERY ? Object.keys(data.designs) : [choice.design]);
  function paragraph(content, kind = "p") {
    const one = document.createElement(kind);
    one.textContent = content;
    return one;
  }
  function tell(choice) {
    live.replaceChildren();
    const designs = shownDesigns(choice);
    if (!hasPair) {
      designs.forEach((design) => {
        const [row] = scoresOf(choice, design);
        const value = row && row.value !== null ? `is ${written(row.value, decimalsFor(row.value))}` : "is not defined";
        live.append(paragraph(`${whereOf(choice, design)}${label(choice)} of ${data.systems[0]} ${value}.`));
      });
      return;
    }
    if (choice.a === choice.b) {
      live.append(paragraph("System A and system B are the same: choose two systems to compare them."));
      return;
    }
    if (designs.length === 1) live.append(paragraph(sentence(choice, designs[0])));
    else {
      const users = Object.keys(data.users).length > 1 ? ` Over ${data.users[choice.users]}.` : "";
      live.append(paragraph(`${choice.a} and ${choice.b}, design by design.${users} Where an interval includes 0, the difference may be chance.`));
      const list = document.createElement("ul");
      designs.forEach((design) => list.append(paragraph(sentence(choice, design, false), "li")));
      live.append(list);
    }
    const caution = paragraph(
      "In brackets: the 95 % t interval over users, of this pair alone. It is not corrected for the many choices that can be tried here: whoever tries many finds some difference by chance. "
    );
    caution.className = "note";
    if (document.getElementById("decisions")) {
      const link = paragraph("Corrected intervals, for the metric of this report", "a");
      link.href = "#decisions";
      caution.append(link, ".");
    }
    live.append(caution);
  }

  // The table: rows as the page's other tables have them.
  function cell(row, value, shown, kind) {
    const one = row.insertCell();
    one.textContent = shown;
    one.dataset.value = value === null ? "" : String(value);
    one.className = kind;
  }
  function fill(choice) {
    const body = document.createElement("tbody");
    shownDesigns(choice).forEach((design) => {
      const rows = scoresOf(choice, design);
      const decimals = decimalsFor(...rows.map((row) => row.value));
      rows.sort((x, y) => (x.place === null) - (y.place === null) || x.place - y.place);
      rows.forEach((one) => {
        const row = body.insertRow();
        if (hasPair && (one.system === choice.a || one.system === choice.b)) row.className = "chosen";
        cell(row, one.design, one.design, "short");
        cell(row, one.system, one.system, one.system.length <= 24 ? "short" : "");
        cell(row, one.place, one.place === null ? "–" : count(one.place), "number");
        ["value", "low", "high", "chance"].forEach((name) => cell(row, one[name], written(one[name], decimals), "number"));
      });
    });
    table.tBodies[0].replaceChildren(...body.rows);
    [...table.tHead.rows[0].cells].forEach((head) => head.removeAttribute("aria-sort"));
    const users = Object.keys(data.users).length > 1 ? `, ${data.users[choice.users]}` : "";
    document.getElementById(`${KEY}-caption`).textContent =
      `${label(choice)}, ${choice.design === EVERY ? "all designs" : choice.design}${users}`;
    section.querySelector("input[type=search]").dispatchEvent(new Event("input"));
  }

  // The chart: the best systems and the two that are chosen.
  let drawing = Promise.resolve();
  function drawChart(choice) {
    if (!document.getElementById("chart-explored") || !window.report) return;
    const rows = shownDesigns(choice).flatMap((design) => scoresOf(choice, design)).filter((row) => row.value !== null);
    const first = rows.length ? rows[0].design : "";
    const best = rows.filter((row) => row.design === first).sort((x, y) => x.place - y.place).map((row) => row.system);
    const drawn = new Set([...(hasPair ? [choice.a, choice.b] : []), ...best].filter((name, at, list) => list.indexOf(name) === at).slice(0, MOST_DRAWN));
    const left = data.systems.length - drawn.size;
    const notes = ["means and 95 % t intervals over users"];
    if (rows.some((row) => row.chance !== null)) notes.push("grey: what a random order is expected to score");
    if (left > 0) notes.push(`${count(left)} ${left === 1 ? "system is" : "systems are"} in the table only`);
    const side = { lower: ", lower is better", neither: ", neither side is better" }[data.better[choice.metric]] || "";
    drawing = window.report.redraw("explored", rows.filter((row) => drawn.has(row.system)), (spec) => {
      spec.title = { ...spec.title, text: `${label(choice)}${side}`, subtitle: notes.join("; ") };
      return spec;
    });
  }

  // The choice: in the selectors and in the fragment of the address.
  function options(select, entries) {
    const before = select.value;
    select.replaceChildren(...entries.map(([value, name]) => new Option(name, value)));
    if (entries.some(([value]) => value === before)) select.value = before;
    select.closest("label").hidden = entries.length < 2 && !["metric", "design"].includes(select.name);
  }
  const cutoffName = (cutoff) => (cutoff === EVERY ? "whole list" : cutoff);
  function offerCutoffs(metric) {
    options(selects.cutoff, cutoffsOf(metric).map((one) => [one, cutoffName(one)]));
  }
  options(selects.metric, Object.keys(data.better).map((one) => [one, data.better[one] === "lower" ? `${one} (lower is better)` : one]));
  const designs = Object.keys(data.designs);
  options(selects.design, [...(designs.length > 1 ? [[EVERY, "all designs"]] : []), ...designs.map((one) => [one, one])]);
  options(selects.users, Object.entries(data.users));
  if (hasPair) ["a", "b"].forEach((side) => options(selects[side], data.systems.map((one) => [one, one])));

  const start = { metric: "", cutoff: "", design: "", users: "", a: data.systems[0], b: data.systems[1], ...data.start };
  const current = () => Object.fromEntries(names.map((name) => [name, selects[name].value]));
  const has = (select, value) => [...select.options].some((one) => one.value === value);
  function choose(wanted) {
    const refused = [];
    names.forEach((name) => {
      if (name === "cutoff") offerCutoffs(selects.metric.value);
      const value = wanted[name] === undefined ? start[name] : wanted[name];
      if (has(selects[name], value)) selects[name].value = value;
      else {
        if (wanted[name] !== undefined && wanted[name] !== start[name]) refused.push(`${name} “${value}”`);
        if (has(selects[name], start[name])) selects[name].value = start[name];
        else selects[name].selectedIndex = 0;
      }
    });
    unknown.hidden = !refused.length;
    unknown.textContent = refused.length ? `The link names what this report does not have: ${refused.join(", ")}. It is ignored.` : "";
  }
  function fragmentOf(choice) {
    const parts = names.filter((name) => choice[name] !== undefined).map((name) => `${name}=${encodeURIComponent(choice[name])}`);
    return `#${KEY}?${parts.join("&")}`;
  }
  function fromFragment() {
    if (!location.hash.startsWith(`#${KEY}?`)) return null;
    const wanted = {};
    location.hash.slice(KEY.length + 2).split("&").forEach((part) => {
      const [name, ...value] = part.split("=");
      try {
        if (names.includes(name)) wanted[name] = decodeURIComponent(value.join("="));
      } catch {
        wanted[name] = value.join("=");
      }
    });
    return wanted;
  }
  let isShown = false;
  function show() {
    if (!fold.open) {
      isShown = false;
      return;
    }
    isShown = true;
    const choice = current();
    const about = choice.design === EVERY ? "" : data.designs[choice.design];
    section.querySelector(".about").textContent = about ? `${choice.design}: ${about}.` : "";
    tell(choice);
    fill(choice);
    drawChart(choice);
  }
  function remember() {
    try {
      history.pushState(null, "", fragmentOf(current()));
    } catch {
      // Inside of a notebook the address is not ours.
    }
  }
  form.addEventListener("change", () => {
    if (selects.cutoff && selects.metric) offerCutoffs(selects.metric.value);
    unknown.hidden = true;
    remember();
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    choose({});
    remember();
    show();
  });
  const linkButton = section.querySelector("[data-link]");
  linkButton.addEventListener("click", async () => {
    const link = location.href.split("#")[0] + fragmentOf(current());
    try {
      await navigator.clipboard.writeText(link);
      linkButton.textContent = "Link copied";
    } catch {
      const box = form.querySelector(".link") || document.createElement("input");
      box.className = "link";
      box.readOnly = true;
      box.setAttribute("aria-label", "link to this choice");
      box.value = link;
      form.append(box);
      box.select();
    }
    setTimeout(() => (linkButton.textContent = "Copy link"), 3000);
  });
  fold.addEventListener("toggle", () => {
    if (fold.open && !isShown) show();
  });
  function follow(scroll) {
    const wanted = fromFragment();
    choose(wanted || {});
    if (wanted) {
      fold.open = true;
      if (scroll) {
        section.scrollIntoView({ behavior: "instant" });
        // The chart above it takes its room when it is drawn.
        if (window.report) window.report.ready.then(() => section.scrollIntoView({ behavior: "instant" }));
      }
    }
    show();
  }
  window.addEventListener("popstate", () => follow(false));
  window.addEventListener("hashchange", () => follow(false));
  follow(true);
  window.explorer = { current, ready: () => drawing };
})();
