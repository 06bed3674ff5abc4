// The pictures of the explorer: the surface with its cursor, the slice through it, and the curves of two labels.
Nash.plot = (() => {
  const { h, s, figure, charts, game, surface } = Nash;
  const { SURFACES, state, others, scores, losses, here, psi, most, levels } = Nash.model;
  let moved = () => {}; // called when the cursor has moved

  // Two differences as a picture with a cursor; one as a curve.
  const canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": "Surface. Arrow keys move the cursor.",
  });
  const axes = s("svg", { "aria-hidden": "true" });
  const plot = h(
    "div",
    { class: "plot" },
    h("div", {}),
    h("div", { style: "position:relative;padding-bottom:2.6rem" }, canvas, axes),
  );
  let size = 0;
  function pointAt(event) {
    const box = canvas.getBoundingClientRect();
    const clamp = (v) => Math.max(-state.range, Math.min(state.range, v));
    return [
      clamp(-state.range + (2 * state.range * (event.clientX - box.left)) / box.width),
      clamp(state.range - (2 * state.range * (event.clientY - box.top)) / box.height),
    ];
  }
  canvas.addEventListener("pointermove", (event) => {
    if (state.view === "map") moveTo(pointAt(event));
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (state.view === "map") moveTo(pointAt(event));
  });
  canvas.addEventListener("keydown", (event) => arrow(event, state.cursor));
  function arrow(event, [a, b]) {
    const by = event.shiftKey ? 0.5 : 0.1;
    const step = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by] }[event.key];
    if (!step) return;
    event.preventDefault();
    const clamp = (v) => Math.round(Math.max(-state.range, Math.min(state.range, v)) * 1e9) / 1e9;
    moveTo([clamp(a + step[0]), clamp(b + step[1])]);
  }
  function moveTo(cursor) {
    state.cursor = cursor;
    drawCursor();
    if (slice.isConnected) slice.redraw();
    if (curve.isConnected) curve.redraw();
    if (state.view === "relief") drawSurface();
    moved();
  }
  function describe(name) {
    const f = losses[name];
    return {
      f: (a, b) => f(scores(a, b)),
      range: state.range,
      step: levels(),
      most: most(),
      turn: (state.turn * Math.PI) / 180,
      cursor: state.cursor,
      facet: name === "game" && state.lines ? (a, b) => game.best(state.facets, scores(a, b)).at : null,
    };
  }
  function drawSurface() {
    if (!size || state.k === 2) return;
    surface[state.view](canvas, size, describe(state.shown));
    drawCursor();
  }
  function drawCursor() {
    if (state.k === 2) return;
    if (state.view === "relief") return axes.replaceChildren();
    const at = (v) => (size * (v + state.range)) / (2 * state.range),
      [a, b] = others();
    axes.replaceChildren(
      ...charts
        .ticks(-state.range, state.range, 6)
        .flatMap((v) => [
          s("text", { x: at(v), y: size + 18, "text-anchor": "middle" }, figure(v)),
          s("text", { x: -8, y: size - at(v) + 4, "text-anchor": "end" }, figure(v)),
        ]),
      s(
        "text",
        { x: size / 2, y: size + 37, "text-anchor": "middle" },
        `${psi(a)} = score of label ${a + 1} less that of label ${state.y + 1}`,
      ),
      s("text", { x: -36, y: size / 2, "text-anchor": "middle", transform: `rotate(-90 -30 ${size / 2})` }, psi(b)),
      s("line", { class: "cross", x1: at(state.cursor[0]), x2: at(state.cursor[0]), y1: 0, y2: size }),
      s("line", { class: "cross", x1: 0, x2: size, y1: size - at(state.cursor[1]), y2: size - at(state.cursor[1]) }),
      s("circle", { class: "pin", cx: at(state.cursor[0]), cy: size - at(state.cursor[1]), r: 7 }),
    );
  }
  new ResizeObserver(([entry]) => {
    const now = Math.floor(Math.min(entry.contentRect.width - 48, 520));
    if (now > 60 && now !== size) {
      size = now;
      drawSurface();
    }
  }).observe(document.getElementById("stage"));

  // The curves along one difference, the other held at the cursor.
  function along(way) {
    const n = 160,
      r = state.range;
    const point = (t) =>
      state.k === 2 ? scores(t) : way === 0 ? scores(t, state.cursor[1]) : scores(state.cursor[0], t);
    const grid = [...new Set([...Array(n + 1).keys()].map((i) => -r + (2 * r * i) / n).concat(state.cursor[way]))].sort(
      (a, b) => a - b,
    );
    const cost = (p) => state.L[p.indexOf(Math.max(...p))][state.y];
    const series = Object.entries(SURFACES).map(([name, [text, kind]]) => ({
      name: text,
      kind,
      dash: { game: null, crammer_singer: "8 4", weston_watkins: "2 4", logistic: "9 3 2 3" }[name],
      points: grid.map((t) => [t, losses[name](point(t))]),
    }));
    if (state.k === 2) series.splice(2, 1); // with two labels both hinges are one
    series.push({
      name: "cost of the best score",
      kind: "peer",
      dash: "1 3",
      points: grid.map((t) => [t, cost(point(t))]),
    });
    const j = others()[way];
    const high = Math.max(...series[0].points.map((p) => p[1]), 1) * 1.25;
    return {
      series,
      x: { label: `${psi(j)} = score of label ${j + 1} less that of label ${state.y + 1}`, domain: [-r, r] },
      y: { label: "loss", domain: [0, high] },
      marks: [{ x: state.cursor[way], y: Math.min(losses.game(here()), high), kind: "model", r: 7 }],
    };
  }
  const slice = charts.lines("Slice through the cursor", 330, () => along(state.way));
  const curve = charts.lines("Losses of two labels", 430, () => along(0));
  curve.addEventListener("pointermove", (event) => {
    const box = curve.getBoundingClientRect(),
      t = -state.range + (2 * state.range * (event.clientX - box.left - 58)) / (box.width - 76);
    state.cursor = [Math.max(-state.range, Math.min(state.range, t)), state.cursor[1]];
    moved();
  });
  curve.addEventListener("keydown", (event) => arrow(event, state.cursor), true);

  return {
    plot,
    slice,
    curve,
    along,
    describe,
    drawSurface,
    onMove: (listener) => {
      moved = listener;
    },
  };
})();
