// The model against its baselines: what was measured, with intervals.
(() => {
  const { h, figure, plural, percent, note, segments, dataTable, folded, charts } = Nash;
  function verdictOf(row, lower) {
    const d = row.difference;
    if (!d || d.low === null) return ["level", ""];
    if (!(d.low > 0 || d.high < 0)) return ["level", "no clear difference"];
    return d.high < 0 === lower ? ["better", "this model is better"] : ["worse", "this model is worse"];
  }
  function comparison(section) {
    const body = h("div", {}),
      caption = note("");
    const level = percent(section.confidence);
    function draw(i) {
      const measure = section.measures[i],
        rows = measure.rows;
      const values = rows.flatMap((row) => [row.value, row.low, row.high]).filter((v) => v !== null);
      const domain = charts.domainOf(values, false, 0.08);
      if (domain[0] < 0 && Math.min(...values) >= 0) domain[0] = 0;
      const lines = rows.map((row, j) => {
        const [verdict, words] = verdictOf(row, measure.lower);
        return h(
          "div",
          { class: "line" },
          h("div", { class: j ? "name" : "name own" }, row.name),
          h(
            "div",
            { class: "value" },
            figure(row.value, measure.percent),
            h("small", {}, `${figure(row.low, measure.percent)} to ${figure(row.high, measure.percent)}`),
          ),
          charts.whisker(row, domain, j ? "peer" : "model", rows[0].value),
          h("div", { class: `verdict ${verdict}` }, words),
        );
      });
      const show = (v) => figure(v, measure.percent);
      const between = ({ value, low, high }) => `${show(value)} (${show(low)} to ${show(high)})`;
      const table = rows.map((row) => [
        row.name,
        show(row.value),
        show(row.low),
        show(row.high),
        row.difference ? between(row.difference) : "",
      ]);
      caption.textContent =
        `${measure.name}, ${measure.lower ? "lower" : "higher"} is better. Dots are what was measured on ` +
        `${plural(section.n, section.unit)}; bars hold ${level} of ${plural(section.replicates, "resamples")} of them.`;
      body.replaceChildren(
        h("div", { class: "versus" }, lines),
        folded(
          "As a table, with paired differences",
          dataTable(["", measure.name, "from", "to", "this model minus it"], table),
        ),
      );
    }
    draw(0);
    const choose =
      section.measures.length > 1
        ? h(
            "div",
            { class: "controls" },
            segments(
              "Measure",
              section.measures.map((m, i) => [String(i), m.name]),
              "0",
              (i) => draw(Number(i)),
            ),
          )
        : null;
    return [caption, choose, body];
  }
  Object.assign(Nash.sections, { comparison });
})();
