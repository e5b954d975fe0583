// What happens in the browser alone: figures, elements, clicks on goals, the theme, the tabs, and playing the slider.
(function () {
  const KEY = "protogoal-theme";
  const TABS = ["overview", "goals", "pictures", "behaviour"];
  const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const waiting = {}; // figures that came before plotly did, or for a part that is not shown: id → figure
  const drawn = {}; // id → the figure that was drawn last, as text
  let shown = null;

  function remembered() {
    try { return localStorage.getItem(KEY); } catch (error) { return null; }
  }
  function current() {
    return remembered() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }
  document.documentElement.dataset.theme = current();

  function drawWaiting() {
    for (const id of Object.keys(waiting)) {
      const place = document.getElementById(id), figure = waiting[id];
      if (!place) continue;
      if (!figure) {
        delete waiting[id];
        if (place.data) window.Plotly.purge(place);
      } else if (window.Plotly && place.offsetParent !== null) {
        delete waiting[id];
        const isNew = !place.data;
        window.Plotly.react(place, figure.data, figure.layout, CONFIG);
        if (isNew && id.startsWith("cells-"))
          place.on("plotly_click", (event) => openGoal(id.slice("cells-".length), event.points[0].customdata));
      }
    }
    if (Object.keys(waiting).length && !window.Plotly) setTimeout(drawWaiting, 30);
  }
  function openGoal(run, goal) {
    window.dash_clientside.set_props("goal-click", { data: { run: Number(run), goal: Number(goal), time: Date.now() } });
  }
  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-goal]");
    if (button) openGoal(button.dataset.run, button.dataset.goal);
    const clip = event.target.closest("button.clip"), dialog = document.getElementById("large");
    if (clip) showLarge(dialog, clip.querySelector("img"));
    else if (event.target === dialog || event.target.id === "close-clip") dialog.close();
  });

  function showLarge(dialog, picture) {
    const large = document.getElementById("large-clip");
    large.src = picture.src;
    large.alt = document.getElementById("large-caption").textContent = picture.alt;
    dialog.showModal(); // Escape closes it
  }

  // Makes the children of an element those of a tree (tree.py), keeping what is there already. Text enters as text.
  function patch(parent, wanted) {
    const keyed = new Map();
    for (const child of parent.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
    let place = parent.firstChild;
    for (const item of wanted) {
      let node;
      if (typeof item === "string") {
        node = place && place.nodeType === Node.TEXT_NODE ? place : document.createTextNode(item);
        if (node.data !== item) node.data = item;
      } else {
        const [tag, attributes, children] = item, key = attributes.key;
        const here = place && place.localName === tag && !place.dataset.key ? place : null;
        node = (key === undefined ? here : keyed.get(key)) || document.createElement(tag);
        for (const { name } of [...node.attributes])
          if (name !== "data-key" && !(name in attributes)) node.removeAttribute(name);
        for (const name in attributes) {
          const real = name === "key" ? "data-key" : name;
          if (node.getAttribute(real) !== attributes[name]) node.setAttribute(real, attributes[name]);
        }
        patch(node, children);
      }
      if (node === place) place = place.nextSibling;
      else parent.insertBefore(node, place);
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  }
  // Every part has an address, #overview …, which the back button goes through.
  function addressed() {
    const name = location.hash.slice(1);
    return TABS.includes(name) ? name : null;
  }
  function chooseTab(tab) {
    window.dash_clientside.set_props("tab", { value: tab });
  }
  window.addEventListener("popstate", function () {
    const wanted = addressed();
    if (wanted && wanted !== shown) chooseTab(wanted);
  });

  const soon = () => requestAnimationFrame(drawWaiting); // after the page has shown what it shows

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    page: {
      draw: function (figure, id) {
        const text = JSON.stringify(figure || null);
        if (text === drawn[id]) return; // a run that goes on without a new point: drawing costs far more than comparing
        drawn[id] = text;
        waiting[id] = figure || null;
        soon();
      },
      fill: function (tree, id) {
        const place = document.getElementById(id), focused = document.activeElement;
        if (!place || !tree) return;
        patch(place, tree);
        if (focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true }); // it was moved
      },
      theme: function (clicks) {
        let theme = current();
        if (clicks) {
          theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
          try { localStorage.setItem(KEY, theme); } catch (error) { /* not remembered */ }
        }
        document.documentElement.dataset.theme = theme;
        return theme;
      },
      show_tab: function (tab) {
        const wanted = shown ? tab : addressed() || tab; // the page opens at the part that its address names
        if (wanted !== tab) chooseTab(wanted);
        if (wanted !== addressed()) history[shown ? "pushState" : "replaceState"](null, "", "#" + wanted);
        // Figures that were drawn for another width measure again on a resize.
        if (shown) setTimeout(function () { window.dispatchEvent(new Event("resize")); drawWaiting(); }, 30);
        shown = wanted;
        return TABS.map(function (part) { return part !== wanted; });
      },
      play: function (clicks, ticks, value, end, stopped) {
        const asked = window.dash_clientside.callback_context.triggered_id === "play";
        const STOP = "▶ play", GO = "❚❚ pause";
        if (asked && !stopped) return [window.dash_clientside.no_update, true, STOP];
        if (asked) return [value >= end ? 0 : value, false, GO];
        const next = Math.min(end, value + Math.max(1, Math.round(end / 60)));
        return [next, next >= end, next >= end ? STOP : GO];
      },
    },
  });
})();
