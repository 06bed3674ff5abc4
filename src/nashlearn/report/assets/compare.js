// The model against its baselines: what was measured, with intervals.
(() => {
  const { h, figure, plural, percent, note, segments, dataTable, folded, charts } = Nash;
  function verdictOf(row, lower) {
    const d = row.difference;
    if (!d || d.low === null) return ["level", ""];
    if (!(d.low > 0 || d.high < 0)) return ["level", "no clear difference"];
    return d.high < 0 === lower ? ["better", "this model is better"] : ["worse", "this model is worse"];
  }
  // What is drawn: all rows, or all but the farthest where that one alone would squeeze the others.
  function rangeOf(rows) {
    const known = rows.filter((row) => row.value !== null);
    const far = (row) => Math.abs(row.value - rows[0].value);
    const farthest = known.reduce((a, b) => (far(b) > far(a) ? b : a), rows[0]);
    const range = (some) => {
      const values = some.flatMap((row) => [row.value, row.low, row.high]).filter((v) => v !== null);
      const domain = charts.domainOf(values, false, 0.08);
      if (domain[0] < 0 && Math.min(...values) >= 0) domain[0] = 0;
      return domain;
    };
    const [all, others] = [range(known), range(known.filter((row) => row !== farthest || row === rows[0]))];
    return all[1] - all[0] > 4 * (others[1] - others[0]) && known.length > 2 ? others : all;
  }
  function comparison(section) {
    const body = h("div", {}),
      caption = note("");
    const level = percent(section.confidence);
    function draw(i) {
      const measure = section.measures[i],
        rows = measure.rows;
      const domain = rangeOf(rows);
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
    const absent = section.absent.length
      ? note(`Left out, since their packages are not installed: ${section.absent.join(", ")}.`)
      : null;
    return [caption, choose, body, absent];
  }
  Object.assign(Nash.sections, { comparison });
})();
