// Draws the goal table and the maps of a report from the JSON in the page. Names are data: they enter as text only.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["var(--line)", "#d55e00", "#cc79a7", "#56b4e9", "#009e73"];
  const RAMP = [[49, 68, 107], [102, 105, 112], [149, 143, 120], [202, 185, 105], [255, 234, 70]];
  const SVG = "http://www.w3.org/2000/svg";

  function make(tag, content, className) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    for (const part of [].concat(content === undefined || content === null ? [] : content)) element.append(part);
    return element;
  }
  function draw(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const whole = (n) => (n === null ? "–" : Math.round(n).toLocaleString("en"));
  const decimal = (n) => (n === null ? "–" : n.toFixed(2).replace("-", "−"));
  const signed = (n) => (n === null ? "–" : (n < 0 ? "−" : "+") + Math.abs(n).toFixed(Math.abs(n) >= 0.05 ? 2 : 3));
  const percent = (n) => (n === null ? "–" : Math.round(100 * n) + " %");
  const verdict = (v) => data.signs[v] + " " + data.verdicts[v];
  function ramp(share) {
    const place = Math.min(0.9999, Math.max(0, share)) * 4, i = Math.floor(place), part = place - i;
    return "rgb(" + RAMP[i].map((c, k) => Math.round(c + (RAMP[i + 1][k] - c) * part)).join(",") + ")";
  }

  // --- the goal table ---------------------------------------------------------------------------------------------
  const COLUMNS = [["id", "id", whole], ["name", "goal", null], ["count", "count", whole], ["success", "success", percent],
    ["seek", "V_seek", decimal], ["avoid", "V_avoid", decimal], ["verdict", "verdict", null], ["margin", "margin", signed],
    ["bucket", "bucket", (b) => (b < 0 ? "–" : b)], ["age", "age", whole]];

  function goalTable(section, run) {
    let sort = "count", down = true, opened = null;
    const search = make("input"); search.type = "search"; search.placeholder = "search by name";
    search.setAttribute("aria-label", "search goals by name");
    const filter = make("select"); filter.setAttribute("aria-label", "verdict");
    filter.append(new Option("every verdict", ""), new Option("★ mastered", "m"), new Option("offered", "o"));
    for (const v of [4, 3, 2, 1, 0]) filter.append(new Option(verdict(v), v));
    const many = make("span", "", "label"); many.setAttribute("role", "status");
    const body = make("tbody"), heads = make("tr");
    const buttons = COLUMNS.map(([key, text]) => {
      const button = make("button", text); button.type = "button";
      button.onclick = () => { down = sort === key ? !down : !["id", "name"].includes(key); sort = key; show(); };
      heads.append(make("th", button));
      return [key, text, button];
    });
    section.append(make("h3", "Goals"), make("div", [search, filter, many], "controls"),
      make("div", make("table", [make("thead", heads), body]), "scroll"));

    function show() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), want = filter.value;
      const rows = run.goals.filter((goal) => words.every((word) => goal.name.toLowerCase().includes(word)) &&
        (want === "" || (want === "m" ? goal.mastered : want === "o" ? goal.offered : goal.verdict === Number(want))));
      rows.sort((a, b) => {
        const x = a[sort], y = b[sort];
        if (x === null || y === null) return (x === null) - (y === null) || a.id - b.id;
        return (typeof x === "string" ? x.localeCompare(y) : x - y) * (down ? -1 : 1) || a.id - b.id;
      });
      many.textContent = rows.length.toLocaleString("en") + " goals";
      for (const [key, text, button] of buttons) button.textContent = text + (key === sort ? (down ? " ▼" : " ▲") : "");
      body.replaceChildren(...rows.slice(0, 300).flatMap((goal) => {
        const row = make("tr");
        for (const [key, , format] of COLUMNS) {
          if (key === "name") {
            const button = make("button", goal.name); button.type = "button";
            button.onclick = () => { opened = opened === goal.id ? null : goal.id; show(); };
            row.append(make("td", [button, goal.mastered ? " ★" : "", goal.parents.length ? make("small", " of " + goal.parents.join(" and ")) : ""], "name"));
          } else if (key === "verdict") row.append(make("td", verdict(goal.verdict), "verdict v" + goal.verdict));
          else row.append(make("td", String(format(goal[key])), "number"));
        }
        if (opened !== goal.id) return [row];
        const cell = make("td", story(goal, run.thresholds)); cell.colSpan = COLUMNS.length;
        return [row, make("tr", cell)];
      }));
      if (rows.length > 300) body.append(make("tr", make("td", "… search to see the others")));
    }
    search.oninput = show; filter.onchange = show;
    show();
  }

  function story(goal, thresholds) {
    const box = make("div", goal.why.map((sentence) => make("p", sentence)), "story");
    const h = goal.history;
    if (h && h.step.length > 1) {
      const first = h.step[0], span = Math.max(1, h.step[h.step.length - 1] - first);
      const x = (step) => 40 + 650 * (step - first) / span, y = (value) => 104 - 92 * value;
      const svg = draw("svg", { viewBox: "0 0 720 130", role: "img", "aria-label": "history of the goal's values" });
      for (const [value, colour] of [[thresholds[0], "#56b4e9"], [thresholds[1], "#009e73"]])
        svg.append(draw("line", { x1: 40, x2: 690, y1: y(value), y2: y(value), stroke: colour, "stroke-dasharray": "2 3" }));
      for (const [key, colour, dash] of [["seek", "#56b4e9", ""], ["control", "#009e73", "7 4"], ["success", "#e69f00", "2 3"]]) {
        const points = h.step.map((s, i) => [s, h[key][i]]).filter((p) => p[1] !== null).map((p) => x(p[0]).toFixed(1) + "," + y(p[1]).toFixed(1));
        svg.append(draw("polyline", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
      }
      [["V_seek", "#56b4e9"], ["control", "#009e73"], ["success", "#e69f00"]].forEach(([name, colour], i) => {
        svg.append(draw("rect", { x: 44 + 90 * i, y: 116, width: 10, height: 10, fill: colour }),
          draw("text", { x: 58 + 90 * i, y: 125, fill: "currentColor", "font-size": 11 }, name));
      });
      for (const value of [0, 0.5, 1]) svg.append(draw("text", { x: 34, y: y(value) + 4, fill: "currentColor", "font-size": 11, "text-anchor": "end" }, value));
      box.append(svg);
    }
    return box;
  }

  // --- maps and lists ---------------------------------------------------------------------------------------------
  function pictures(section, run) {
    const p = run.pictures;
    if (!p.steps.length) return;
    let measure = "verdict";
    const slider = make("input"); slider.type = "range"; slider.min = 0; slider.max = p.steps.length - 1; slider.value = slider.max;
    slider.setAttribute("aria-label", "time");
    const time = make("span", "", "label"), scale = make("div", [], "scale"), maps = make("div", [], "maps"), lists = make("div");
    const choices = make("select"); choices.setAttribute("aria-label", "show");
    for (const key of ["verdict", "count", "success"]) choices.append(new Option(key, key));
    section.append(make("h3", "Pictures of the goal space"), make("div", [choices, scale], "controls"), make("div", [slider, time], "controls"), maps, lists);

    function show() {
      const frame = Number(slider.value);
      measure = choices.value;
      time.textContent = "after step " + p.steps[frame].toLocaleString("en");
      const top = Math.max(1, ...p.kinds.flatMap((kind) => kind.count[p.steps.length - 1].map((n) => n || 0)));
      const colour = (v) => measure === "verdict" ? COLOURS[v] : v === null || (measure === "count" && !v) ? "none"
        : ramp(measure === "count" ? Math.log(v) / Math.log(Math.max(2, top)) : v / 100);
      const shown = (v) => measure === "verdict" ? verdict(v) : measure === "success" ? (v === null ? "not pursued" : v + " %") : whole(v);
      scale.replaceChildren(...(measure === "verdict" ? [4, 3, 2, 1, 0].map((v) => {
        const box = make("i"); box.style.background = COLOURS[v];
        return make("span", [box, verdict(v)]);
      }) : [measure === "count" ? "1" : "0 %", make("span", "", "ramp"), measure === "count" ? whole(top) : "100 %"]));
      maps.replaceChildren(); lists.replaceChildren();
      for (const kind of p.kinds) {
        const values = kind[measure][frame];
        if (kind.rows) {
          const svg = draw("svg", { viewBox: "0 0 " + kind.cols + " " + kind.rows, role: "img", "aria-label": kind.kind + ": " + measure });
          kind.ids.forEach((id, i) => {
            const cell = draw("rect", { x: kind.col[i] + 0.03, y: kind.row[i] + 0.03, width: 0.94, height: 0.94 });
            cell.style.fill = colour(values[i]);
            cell.append(draw("title", {}, kind.names[i] + ": " + shown(values[i])));
            svg.append(cell);
            if (measure === "verdict" && values[i] && kind.ids.length < 500)
              svg.append(draw("text", { x: kind.col[i] + 0.5, y: kind.row[i] + 0.5 }, data.signs[values[i]]));
          });
          maps.append(make("div", [make("h4", kind.kind), svg]));
        } else {
          const box = make("div", make("h4", kind.kind), "list");
          for (const v of [4, 3, 2, 1]) {
            const words = kind.ids.map((id, i) => i).filter((i) => kind.verdict[frame][i] === v);
            if (!words.length) continue;
            box.append(make("div", verdict(v) + " · " + words.length, "v" + v), make("div", words.map((i) => make("span", [
              kind.names[i].replace(kind.kind + ": ", "").replace(kind.kind + " ", "") + " ", make("small", measure === "success" ? shown(kind.success[frame][i]) : whole(kind.count[frame][i]))], "word")), "words"));
          }
          const unseen = kind.total - kind.verdict[frame].filter((v) => v !== 0).length;
          if (unseen) box.append(make("div", verdict(0) + ": " + unseen, "v0"));
          lists.append(box);
        }
      }
      if (p.left_out) lists.append(make("p", p.left_out + " more kinds are in the CSV.", "label"));
    }
    slider.oninput = show; choices.onchange = show;
    show();
  }

  for (const run of data.runs) {
    pictures(document.querySelector(".pictures[data-run='" + run.run + "']"), run);
    goalTable(document.querySelector(".goals[data-run='" + run.run + "']"), run);
  }
})();
