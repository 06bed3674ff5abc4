// What a model of a table looks at: importances of columns, weights of features; and phrases by kind.
(() => {
  const { h, figure, count, plural, percent, note, select, dataTable, folded, charts } = Nash;
  const DRAWN = 15; // rows of dots; the table has all
  const between = (low, high) => `${figure(low)} to ${figure(high)}`;
  const none = (v) => (v === null ? "–" : figure(v));

  function importances(section) {
    const { plan, rows } = section;
    if (!plan) {
      return [
        note(
          `Shuffling each of ${plural(section.columns, "columns")} says little or would take too long; it is done for 300 ` +
            "columns at most, and four rows at least.",
        ),
        h("p", { class: "muted" }, "No importances were computed."),
      ];
    }
    const level = percent(section.confidence);
    const part = plan.rows < plan.of ? `${count(plan.rows)} of the ${count(plan.of)} rows, drawn at random` : `${count(plan.rows)} rows`;
    const less = rows.length > DRAWN ? ` The ${DRAWN} largest of ${rows.length} are drawn; the table has all.` : "";
    return [
      note(
        "By how much the mean cost rises where the entries of one column are shuffled among the held-out rows: what the " +
          "model loses without that column. Columns that say the same share their importance; a column may matter and still " +
          `be no cause.${less}`,
      ),
      charts.dots(rows.slice(0, DRAWN), 0, figure, between),
      folded("As a table", dataTable(["column", "rise of the mean cost", "from", "to"], rows.map(([name, ...v]) => [name, ...v.map(none)]), "Importances")),
      h(
        "p",
        { class: "caption", style: "margin-bottom:0" },
        `Each column was shuffled ${plural(plan.repeats, "times")} on ${part}: ${count(plan.columns * plan.repeats * plan.rows)} ` +
          `predictions. Bars hold the true rise with ${level} for each column alone; they allow for the choice of rows and for ` +
          `the shuffles, by ${count(plan.blocks)} blocks of rows (Student's law).`,
      ),
    ];
  }

  function weights(section) {
    const body = h("div", {}),
      { spread } = section;
    const level = percent(section.confidence);
    function draw(c) {
      const order = section.names.map((_, j) => j).sort((a, b) => Math.abs(section.values[c][b]) - Math.abs(section.values[c][a]));
      const rows = order.map((j) => {
        const value = section.values[c][j],
          half = section.halves ? section.halves[c][j] : null;
        return [section.names[j], value, half === null ? null : value - half, half === null ? null : value + half];
      });
      const title = section.single ? `weight for ${section.labels[0]}` : `weight for ${section.labels[c]}`;
      body.replaceChildren(
        charts.dots(rows.slice(0, DRAWN), 0, figure, between),
        folded("As a table", dataTable(["feature", title, "from", "to"], rows.map(([name, ...v]) => [name, ...v.map(none)]), "Weights")),
      );
    }
    draw(0);
    const points = section.single
      ? `A weight above 0 speaks for ${section.labels[0]}.`
      : "A weight above 0 speaks for the label, one below 0 against it.";
    const shown = Math.min(DRAWN, section.names.length);
    const scope = section.features > shown ? ` The ${shown} largest of ${count(section.features)} are drawn.` : "";
    const sure = spread
      ? `Bars say how far weights move with other training rows of the same kind and number, each with ${level}: from ` +
        `${spread.fits} fits, each without a tenth of ${count(spread.rows)} rows` +
        (spread.rows < spread.of ? ` (of ${count(spread.of)}, and scaled to these).` : ".")
      : "Intervals need the training data, which are at hand when the model is trained with a report.";
    return [
      note(
        `${points} Features are as the model sees them, numbers scaled to the same spread where the pipeline does so, so ` +
          `that larger weights move more.${scope}`,
      ),
      section.single ? null : h("div", { class: "controls row" }, select("Label", section.labels, 0, draw)),
      body,
      h("p", { class: "caption", style: "margin-bottom:0" }, sure),
    ];
  }

  function phrases(section) {
    const share = (a, b) => (b ? figure(a / b, true) : "–");
    const total = section.rows.reduce((sum, row) => row.map((v, i) => (i ? v + (sum[i] || 0) : "all")), ["all", 0, 0, 0]);
    return [
      note(
        "A phrase is right where its first token, its last token and its kind are right. Precision: how many of those given " +
          "are right. Recall: how many of those in the data are found.",
      ),
      dataTable(
        ["kind", "F1", "precision", "recall", "in the data", "given", "right"],
        [...(section.rows.length > 1 ? [total] : []), ...section.rows].map(([kind, there, given, right]) => [
          kind,
          share(2 * right, given + there),
          share(right, given),
          share(right, there),
          count(there),
          count(given),
          count(right),
        ]),
        "Phrases by kind",
      ),
    ];
  }
  Object.assign(Nash.sections, { importances, weights, phrases });
})();
