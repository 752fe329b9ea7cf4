"use strict";
(() => {
  const HEAVY_ON_DARK = ["#12304f", "#1d5a83", "#2b8ca8", "#55b8a4", "#a5dba0", "#f4f7b8"];
  const SIDES_ON_DARK = ["#ffb04d", "#b9741f", "#3a3f46", "#2f7db5", "#77c3f7"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function theme(narrow) {
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map(colour);
    const font = getComputedStyle(document.body).fontFamily;
    const config = {
      background: "transparent",
      font,
      axis: { labelColor: ink, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
              titleFontWeight: 500, labelFontSize: 11.5, titleFontSize: 12 },
      header: { labelColor: ink, titleColor: soft, titleFontWeight: 500 },
      legend: { labelColor: ink, titleColor: soft, titleFontWeight: 500, labelFontSize: 11.5, titleFontSize: 12 },
      text: { color: ink },
      view: { stroke: line },
    };
    if (narrow) config.legend.orient = "bottom";
    if (dark.matches) config.range = { heatmap: HEAVY_ON_DARK, ramp: HEAVY_ON_DARK, diverging: SIDES_ON_DARK };
    return config;
  }

  function shorten(part, most) {
    if (Array.isArray(part)) part.forEach((each) => shorten(each, most));
    else if (part && typeof part === "object") {
      for (const [name, value] of Object.entries(part)) {
        if (name === "labelLimit" && value > most) part[name] = most;
        else shorten(value, most);
      }
    }
  }

  async function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
    const room = place.clientWidth;
    const narrow = room < 560;
    const inner = document.createElement("div");
    place.replaceChildren(inner);
    if (narrow) shorten(spec, Math.max(90, Math.round(room * 0.36)));
    if (place.dataset.fit === "width") {
      const most = Number(place.dataset.most);
      spec.width = "container";
      inner.style.width = Math.max(240, Math.min(most, room - (narrow ? 8 : 48))) + "px";
    }
    spec.config = { ...(spec.config || {}), ...theme(narrow) };
    const actions = { export: true, source: false, compiled: false, editor: false };
    try {
      await window.vegaEmbed(inner, spec, { renderer: "svg", ast: true, actions, mode: "vega-lite" });
      place.dataset.drawn = "yes";
    } catch (error) {
      place.dataset.drawn = "no";
      const said = document.createElement("p");
      said.className = "failed";
      said.textContent = "This chart could not be drawn: " + error.message;
      place.replaceChildren(said);
    }
  }

  const places = [...document.querySelectorAll(".chart")];
  const drawAll = async () => {
    for (const place of places) await draw(place);
  };
  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 200);
  });
  dark.addEventListener("change", drawAll);
  drawAll();
})();
