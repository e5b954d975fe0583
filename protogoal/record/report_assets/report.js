// Draws the goal table and the maps of a report from the JSON in the page. Names are data: they enter as text only.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const VERDICTS = Object.keys(data.verdicts).map(Number).sort((a, b) => b - a); // the best first
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
  const probability = (p) => (p === null ? "–" : p >= 0.001 ? String(Number(p.toPrecision(2)))
    : p > 1e-99 ? p.toExponential(0).replace("-", "−") : "< 1e−99");
  const percent = (n) => (n === null ? "–" : Math.round(100 * n) + " %");
  const verdict = (v) => data.signs[v] + " " + data.verdicts[v];
  function ramp(share) {
    const place = Math.min(0.9999, Math.max(0, share)) * 4, i = Math.floor(place), part = place - i;
    return "rgb(" + RAMP[i].map((c, k) => Math.round(c + (RAMP[i + 1][k] - c) * part)).join(",") + ")";
  }

  // --- the goal table ---------------------------------------------------------------------------------------------
  const FORMATS = { success: percent, chance: percent, p: probability, nats: decimal, seek_max: decimal, avoid_mean: decimal,
    control: decimal };

  function goalTable(section, run) {
    const COLUMNS = [["id", "id", "number of the goal", whole], ["name", "goal", "what must be so", null],
      ...run.columns.map(([key, text, meaning]) => [key, text, meaning, FORMATS[key] || whole]),
      ["verdict", "verdict", "what the evaluator thinks of it", null],
      ["bucket", "bucket", "timescale: 0 is the slowest; – is not on offer", (b) => (b < 0 ? "–" : b)],
      ["age", "age", "steps since it was first observed", whole]];
    let sort = "count", down = true, opened = null;
    const search = make("input"); search.type = "search"; search.placeholder = "search by name";
    search.setAttribute("aria-label", "search goals by name");
    const filter = make("select"); filter.setAttribute("aria-label", "verdict");
    filter.append(new Option("every verdict", ""), new Option("★ mastered", "m"), new Option("offered", "o"));
    for (const v of VERDICTS) filter.append(new Option(verdict(v), v));
    const many = make("span", "", "label"); many.setAttribute("role", "status");
    const body = make("tbody"), heads = make("tr");
    const buttons = COLUMNS.map(([key, text, meaning]) => {
      const button = make("button", text); button.type = "button"; button.title = meaning + "; click to sort";
      button.onclick = () => { down = sort === key ? !down : !["id", "name"].includes(key); sort = key; show(); };
      heads.append(make("th", button, key === "name" || key === "verdict" ? "" : "number"));
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
        for (const [key, , , format] of COLUMNS) {
          if (key === "name") {
            const button = make("button", goal.name); button.type = "button";
            button.onclick = () => { opened = opened === goal.id ? null : goal.id; show(); };
            row.append(make("td", [button, goal.mastered ? " ★" : "", goal.parents.length ? make("small", " of " + goal.parents.join(" and ")) : ""], "name"));
          } else if (key === "verdict") {
            row.append(make("td", verdict(goal.verdict), "verdict v" + goal.verdict));
            row.lastChild.title = data.meanings[goal.verdict];
          } else row.append(make("td", String(format(goal[key])), data.decided[goal.verdict].includes(key) ? "number decided" : "number"));
        }
        if (opened !== goal.id) return [row];
        const cell = make("td", story(goal)); cell.colSpan = COLUMNS.length;
        return [row, make("tr", cell)];
      }));
      if (rows.length > 300) body.append(make("tr", make("td", "… search to see the others")));
    }
    search.oninput = show; filter.onchange = show;
    show();
  }

  function story(goal) {
    const box = make("div", goal.why.map((sentence) => make("p", sentence)), "story");
    const h = goal.history;
    if (!h || h.step.length < 2) return box;
    const LEFT = 40, WIDTH = 660, HIGH = 76, GAP = 26;
    const first = h.step[0], span = Math.max(1, h.step[h.step.length - 1] - first), bottom = h.panels.length * (HIGH + GAP);
    const x = (step) => LEFT + WIDTH * (step - first) / span;
    const svg = draw("svg", { viewBox: "0 0 720 " + (bottom + 34), role: "img", "aria-label": "history of the goal" });
    h.panels.forEach((panel, k) => {
      const floor = k * (HIGH + GAP) + GAP + HIGH - 6, y = (value) => floor - HIGH * value / panel.top;
      for (const value of [0, panel.top])
        svg.append(draw("line", { x1: LEFT, x2: LEFT + WIDTH, y1: y(value), y2: y(value), stroke: "var(--line)" }),
          draw("text", { x: LEFT - 6, y: y(value) + 4, class: "tick" }, panel.share ? 100 * value + " %" : decimal(value)));
      panel.lines.forEach((line, i) => {
        if (line.level !== null)
          svg.append(draw("line", { x1: LEFT, x2: LEFT + WIDTH, y1: y(line.level), y2: y(line.level), stroke: line.colour, "stroke-dasharray": "1 4" }));
        const points = h.step.map((s, j) => [s, line.values[j]]).filter((p) => p[1] !== null);
        svg.append(draw("polyline", { points: points.map((p) => x(p[0]).toFixed(1) + "," + y(Math.min(panel.top, p[1])).toFixed(1)).join(" "),
          fill: "none", stroke: line.colour, "stroke-width": 2, "stroke-dasharray": line.dash }));
        if (points.length === 1) // no line to draw
          svg.append(draw("circle", { cx: x(points[0][0]), cy: y(Math.min(panel.top, points[0][1])), r: 3, fill: line.colour }));
        const place = LEFT + 130 * i, head = floor - HIGH - 8;
        svg.append(draw("line", { x1: place, x2: place + 18, y1: head - 4, y2: head - 4, stroke: line.colour, "stroke-width": 2, "stroke-dasharray": line.dash }),
          draw("text", { x: place + 23, y: head }, line.name));
      });
    });
    h.step.forEach((step, i) => { // the verdicts, as a band of their colours
      if (i && h.verdict[i] === h.verdict[i - 1]) return;
      let end = i;
      while (end + 1 < h.step.length && h.verdict[end + 1] === h.verdict[i]) end += 1;
      const to = x(h.step[Math.min(end + 1, h.step.length - 1)]), wide = Math.max(2, to - x(step));
      const band = draw("rect", { x: x(step), y: bottom + 6, width: wide, height: 14 });
      band.style.fill = data.colours[h.verdict[i]];
      band.append(draw("title", {}, verdict(h.verdict[i]) + " from step " + whole(step)));
      svg.append(band);
      if (wide > 14) svg.append(draw("text", { x: x(step) + wide / 2, y: bottom + 17, class: "sign" }, data.signs[h.verdict[i]]));
    });
    svg.append(draw("text", { x: LEFT, y: bottom + 32 }, "step " + whole(first)),
      draw("text", { x: LEFT + WIDTH, y: bottom + 32, class: "tick" }, "step " + whole(h.step[h.step.length - 1])));
    box.append(svg);
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
    for (const [key, label, title] of data.measures) choices.append(Object.assign(new Option(label, key), { title: title }));
    section.append(make("h3", "Pictures of the goal space"), make("div", [choices, scale], "controls"), make("div", [slider, time], "controls"), maps, lists);

    function show() {
      const frame = Number(slider.value);
      measure = choices.value;
      time.textContent = "after step " + p.steps[frame].toLocaleString("en");
      const most = (least) => p.kinds.reduce((high, kind) => kind[measure][p.steps.length - 1].reduce((a, n) => Math.max(a, n || 0), high), least);
      const top = measure === "count" ? most(2) : measure === "control" ? most(100) : 100;
      const colour = (v) => measure === "verdict" ? data.colours[v] : v === null || (measure === "count" && !v) ? "none"
        : ramp(measure === "count" ? Math.log(v) / Math.log(top) : v / top);
      const hundredth = (v) => (v === null ? "–" : decimal(v / 100));
      const SHOWN = { verdict: verdict, count: whole, success: (v) => (v === null ? "not pursued" : v + " %"), control: hundredth };
      const shown = SHOWN[measure];
      scale.replaceChildren(...(measure === "verdict" ? VERDICTS.map((v) => {
        const box = make("i"); box.style.background = data.colours[v];
        return Object.assign(make("span", [box, verdict(v)]), { title: data.meanings[v] });
      }) : [measure === "count" ? "1" : shown(0), make("span", "", "ramp"), shown(top)]));
      maps.replaceChildren(); lists.replaceChildren();
      for (const kind of p.kinds) {
        const values = kind[measure][frame];
        if (kind.rows) {
          const svg = draw("svg", { viewBox: "0 0 " + kind.cols + " " + kind.rows, role: "img", "aria-label": kind.kind + ": " + measure });
          const ground = draw("rect", { width: kind.cols, height: kind.rows }); // cells without a goal were never observed
          ground.style.fill = measure === "verdict" ? data.colours[0] : "none";
          svg.append(ground);
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
          for (const v of VERDICTS.filter((v) => v)) {
            const words = kind.ids.map((id, i) => i).filter((i) => kind.verdict[frame][i] === v);
            if (!words.length) continue;
            box.append(make("div", verdict(v) + " · " + words.length, "v" + v), make("div", words.map((i) => make("span", [
              kind.names[i].replace(kind.kind + ": ", "").replace(kind.kind + " ", "") + " ", make("small", measure === "verdict" ? whole(kind.count[frame][i]) : shown(values[i]))], "word")), "words"));
          }
          const unseen = kind.verdict[frame].filter((v) => v === 0).length;
          if (unseen) box.append(make("div", "○ not observed by then: " + unseen, "v0"));
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
