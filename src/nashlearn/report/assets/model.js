// What the explorer shows: one state, the losses that follow from it, and the figures of the thesis as states.
Nash.model = (() => {
  const { charts, game } = Nash;
  const SURFACES = {
    game: ["this game", "model"],
    crammer_singer: ["Crammer–Singer hinge", "rival"],
    weston_watkins: ["Weston–Watkins", "third"],
    logistic: ["logistic", "good"],
  };
  const PRESETS = [
    ["Binary zero-one", { 3: { k: 2 } }],
    ["Zero-one", { "4a": {}, "4b": { shown: "weston_watkins" }, "4c": { shown: "crammer_singer" } }],
    ["Absolute", { "7a": { loss: "absolute" }, "7b": { loss: "absolute", y: 1 }, "7c": { loss: "absolute", y: 2 } }],
    ["Squared", { "8a": { loss: "squared" }, "8b": { loss: "squared", y: 1 }, "8c": { loss: "squared", y: 2 } }],
    [
      "Binary abstention",
      { "9a": { k: 2, loss: "abstain", price: 1 / 3 }, "9b": { k: 2, loss: "abstain", price: 0.5 } },
    ],
    ["Abstention", { "10a": { loss: "abstain", price: 1 / 3 }, "10b": { loss: "abstain", price: 0.5 } }],
  ];
  const START = {
    k: 3,
    loss: "zero_one",
    price: 0.5,
    y: 0,
    range: 3,
    shown: "game",
    view: "map",
    way: 0,
    cursor: [-0.4, 0.3],
    lines: false,
    turn: 35,
  };
  const state = { ...START, L: game.losses.zero_one(3), preset: "4a", facets: [] };

  const others = () => [...Array(state.k).keys()].filter((j) => j !== state.y);
  // Scores with 0 at the true label and the differences at the others.
  function scores(...differences) {
    const psi = new Array(state.k).fill(0);
    others().forEach((j, i) => {
      psi[j] = differences[i];
    });
    return psi;
  }
  const losses = {
    game: (psi) => game.best(state.facets, psi).value,
    crammer_singer: (psi) => game.surrogates.crammer_singer(state.L, state.y, psi),
    weston_watkins: (psi) => game.surrogates.weston_watkins(state.L, state.y, psi),
    logistic: (psi) => game.surrogates.logistic(state.L, state.y, psi),
  };
  const here = () => scores(...state.cursor.slice(0, state.k - 1));
  const psi = (j) => `ψ${"₁₂₃"[j]}`;

  function most() {
    const r = state.range;
    const corners =
      state.k === 2
        ? [scores(r), scores(-r)]
        : [
            [r, r],
            [r, -r],
            [-r, r],
            [-r, -r],
          ].map((c) => scores(...c));
    return Math.max(1e-9, ...corners.map(losses.game));
  }
  const levels = () => charts.ticks(0, most(), 9)[1] || most();

  // Change the state; the matrix follows from the loss unless it was edited.
  function change(part) {
    Object.assign(state, part);
    state.y = Math.min(state.y, state.k - 1);
    state.cursor = state.cursor.map((v) => Math.max(-state.range, Math.min(state.range, v)));
    if (state.loss !== "custom") state.L = game.losses[state.loss](state.k, state.price);
    state.facets = game.facets(state.L);
  }
  // The state of a figure; how it is looked at stays.
  function preset(number) {
    const found = PRESETS.map(([, figures]) => figures[number]).find(Boolean);
    const { view, lines, turn, cursor } = state;
    return found ? { ...START, view, lines, turn, cursor, ...found, preset: number } : null;
  }
  const answers = () => state.L.map((_, i) => (i < state.k ? `answer ${i + 1}` : "abstain"));
  change({});
  return { SURFACES, PRESETS, state, others, scores, losses, here, psi, most, levels, change, preset, answers };
})();
