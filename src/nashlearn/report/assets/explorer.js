// The explorer itself: its controls, the editor of costs and the two players.
(() => {
  const { h, figure, facts, segments, charts, game, surface } = Nash;
  const { SURFACES, PRESETS, state, others, losses, here, psi, most, levels, change, preset, answers } = Nash.model;
  const { plot, slice, curve, along, describe, drawSurface, onMove } = Nash.plot;
  const el = (id) => document.getElementById(id);

  // Change the state and draw all of it; what is not a figure of the thesis says so by having no preset.
  function update(part, withMatrix = true) {
    change({ preset: null, ...part });
    drawAll(withMatrix);
  }

  function matrixEditor() {
    const names = answers();
    return h(
      "table",
      { class: "costs" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          state.L[0].map((_, j) => h("th", { scope: "col" }, `label ${j + 1}`)),
        ),
      ),
      h(
        "tbody",
        {},
        state.L.map((row, i) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, names[i]),
            row.map((value, j) =>
              h(
                "td",
                {},
                h("input", {
                  type: "number",
                  min: 0,
                  step: "any",
                  value: String(Number(value.toFixed(3))),
                  "aria-label": `Cost of ${names[i]} for label ${j + 1}`,
                  oninput: (event) => edit(i, j, event.target),
                }),
              ),
            ),
          ),
        ),
      ),
    );
  }
  function edit(i, j, input) {
    const value = Number(input.value);
    const valid = input.value !== "" && Number.isFinite(value) && value >= 0 && value <= 1000;
    input.setAttribute("aria-invalid", String(!valid));
    if (!valid) return;
    const L = state.L.map((row) => [...row]);
    L[i][j] = value;
    update({ L, loss: "custom" }, false);
  }

  function drawControls(withMatrix) {
    el("loss").value = state.loss;
    el("price").value = state.price;
    el("price-text").textContent = figure(state.price);
    el("price-field").hidden = state.loss !== "abstain";
    el("range").value = state.range;
    el("range-text").textContent = figure(state.range);
    el("turn").value = state.turn;
    el("facet-lines").checked = state.lines;
    classes.mark(String(state.k));
    el("label").replaceChildren(
      segments(
        "True label",
        [...Array(state.k).keys()].map((j) => [String(j), String(j + 1)]),
        String(state.y),
        (v) => update({ y: Number(v) }),
      ),
    );
    view.mark(state.view);
    if (withMatrix) el("matrix").replaceChildren(matrixEditor());
    document
      .querySelectorAll("#presets button")
      .forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.figure === state.preset)));
  }

  function strategy(title, cls, names, values) {
    return h(
      "div",
      { class: `play ${cls}` },
      h("h3", {}, title),
      values.flatMap((v, i) => [
        h("span", {}, names[i]),
        h("div", { class: "track" }, h("i", { style: `width:${100 * v}%` })),
        h("span", { class: "number" }, figure(v)),
      ]),
    );
  }
  function drawPlayers() {
    const theta = here(),
      found = game.solve(state.L, theta, state.facets);
    const labels = theta.map((_, j) => `label ${j + 1}${j === state.y ? " (true)" : ""}`);
    el("where").textContent = `At ${others()
      .map((j) => `${psi(j)} = ${figure(theta[j])}`)
      .join(", ")}.`;
    const expected = found.p.reduce((sum, v, i) => sum + v * state.L[i][state.y], 0);
    const rows = [
      ["loss of the game", found.value],
      ["predictor loses at most", found.upper],
      ["adversary secures", found.lower],
      ["certificate (their difference)", found.gap],
      ["cost of p* for the true label", expected],
      ["Crammer–Singer hinge", losses.crammer_singer(theta)],
      ["Weston–Watkins", losses.weston_watkins(theta)],
      ["logistic", losses.logistic(theta)],
    ];
    el("players").replaceChildren(
      strategy("Adversary q*", "adversary", labels, found.q),
      strategy("Predictor p*", "predictor", answers(), found.p),
      h("dl", { class: "sums" }, facts(rows.map(([name, value]) => [name, figure(value, false, 4)]))),
    );
  }

  function drawAll(withMatrix = true) {
    drawControls(withMatrix);
    const two = state.k === 2;
    const contours = `; contours ${figure(levels())} apart`;
    const text =
      state.shown === "game" || two
        ? `The loss is the largest of ${state.facets.length} planes${two ? "" : contours}.`
        : `${SURFACES[state.shown][0]}${contours}, colours as for the game.`;
    el("surface-words").textContent = (state.preset ? `Figure ${state.preset}. ` : "") + text;
    el("stage").replaceChildren(two ? h("div", {}, charts.legend(along(0).series), curve) : plot);
    el("thumbs").hidden = el("scale").hidden = el("slice-card").hidden = two;
    el("view").hidden = two;
    el("facet-field").hidden = two || state.view !== "map" || state.shown !== "game";
    el("turn-field").hidden = two || state.view !== "relief";
    if (two) curve.redraw();
    else {
      drawSurface();
      el("scale").replaceChildren(
        ...surface
          .bands(levels(), most())
          .map(({ from, css }) => h("li", {}, h("i", { style: `background:${css}` }), figure(from))),
      );
      thumbs.forEach(([name, button, small]) => {
        button.setAttribute("aria-pressed", String(name === state.shown));
        surface.map(small, 96, { ...describe(name), facet: null });
      });
      el("slice").replaceChildren(charts.legend(along(state.way).series), slice);
      slice.redraw();
      const way = segments(
        "Direction",
        others().map((j, i) => [String(i), `along ${psi(j)}`]),
        String(state.way),
        (v) => {
          state.way = Number(v);
          slice.redraw();
        },
      );
      el("slice-way").replaceChildren(way);
    }
    drawPlayers();
  }

  const classes = segments(
    "Number of labels",
    [
      ["2", "two"],
      ["3", "three"],
    ],
    "3",
    (v) => update({ k: Number(v), loss: state.loss === "custom" ? "zero_one" : state.loss }),
  );
  const view = segments(
    "View",
    [
      ["map", "Map"],
      ["relief", "Relief"],
    ],
    "map",
    (v) => update({ view: v, preset: state.preset }),
  );
  const thumbs = Object.entries(SURFACES).map(([name, [text]]) => {
    const small = h("canvas", { "aria-hidden": "true" });
    return [
      name,
      h(
        "button",
        { type: "button", class: "thumb", "data-surface": name, onclick: () => update({ shown: name }) },
        small,
        text,
      ),
      small,
    ];
  });
  el("classes").append(classes);
  el("view").append(view);
  el("thumbs").append(...thumbs.map(([, button]) => button));
  el("presets").append(
    ...PRESETS.map(([title, figures]) =>
      h(
        "div",
        { class: "group" },
        h("span", {}, title),
        Object.keys(figures).map((number) =>
          h(
            "button",
            {
              type: "button",
              class: "button",
              "data-figure": number,
              "aria-label": `Figure ${number}`,
              onclick: () => update(preset(number)),
            },
            number,
          ),
        ),
      ),
    ),
  );
  onMove(drawPlayers);
  el("loss").addEventListener("change", () => update({ loss: el("loss").value }));
  el("price").addEventListener("input", () => update({ price: Number(el("price").value) }));
  el("range").addEventListener("input", () => update({ range: Number(el("range").value) }));
  el("turn").addEventListener("input", () => {
    state.turn = Number(el("turn").value);
    drawSurface();
  });
  el("facet-lines").addEventListener("change", () => {
    state.lines = el("facet-lines").checked;
    drawSurface();
  });
  Nash.onTheme(() => drawAll(false));
  const asked = location.hash.match(/^#figure-(\w+)$/);
  update((asked && preset(asked[1])) || { preset: state.preset });
})();
