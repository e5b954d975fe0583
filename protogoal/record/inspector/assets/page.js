// What happens in the browser alone: the theme, the tabs, and playing the slider.
(function () {
  const KEY = "protogoal-theme";
  let shown = null;
  function remembered() {
    try { return localStorage.getItem(KEY); } catch (error) { return null; }
  }
  function current() {
    return remembered() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }
  document.documentElement.dataset.theme = current();

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    page: {
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
        // Figures drawn for another width measure again on a resize.
        if (shown) setTimeout(function () { window.dispatchEvent(new Event("resize")); }, 30);
        shown = tab;
        return ["overview", "goals", "pictures", "behaviour"].map(function (part) { return part !== tab; });
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
