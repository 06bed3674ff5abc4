// What probabilities are worth: rates and costs at other thresholds, and whether what is said to be likely happens.
(() => {
  const { h, figure, count, plural, percent, note, facts, segments, select, dataTable, folded, charts } = Nash;
  const rate = (v) => figure(v, true);
  // Places in a point: threshold, share of rows answered with the event, recall, false alarms, precision, mean cost.
  const [THRESHOLD, SHARE, RECALL, ALARMS, PRECISION, COST] = [0, 1, 2, 3, 4, 5];
  const VIEWS = {
    roc: { name: "ROC", x: ALARMS, y: RECALL },
    pr: { name: "Precision and recall", x: RECALL, y: PRECISION },
    cost: { name: "Cost", x: SHARE, y: COST },
  };

  function thresholds(section) {
    let event = section.events[section.chosen],
      view = "roc",
      at = 0;
    const level = percent(section.confidence);
    const axes = () => ({
      [SHARE]: { label: `share of rows answered with “${event.name}”`, format: rate, domain: [0, 1] },
      [RECALL]: { label: `recall: share of “${event.name}” that is found`, format: rate, domain: [0, 1] },
      [ALARMS]: { label: "false alarms: share of the others", format: rate, domain: [0, 1] },
      [PRECISION]: { label: "precision: share that is right", format: rate, domain: [0, 1] },
      [COST]: { label: "mean cost per row" },
    });
    const own = () => event.curves[0];
    const nearest = () => {
      const gap = (p) => Math.abs(p[SHARE] - own().own[SHARE]);
      return own().points.reduce((best, p, i, all) => (gap(p) < gap(all[best]) ? i : best), 0);
    };
    const bounds = ({ value, low, high }) =>
      figure(value) + (low === null ? "" : ` (${figure(low)} to ${figure(high)})`);
    const words = () =>
      `${event.name}: area under the ROC ${bounds(own().area)}, average precision ${figure(own().average_precision)}. ` +
      `As the model answers: recall ${rate(own().own[RECALL])}, false alarms ${rate(own().own[ALARMS])}, precision ` +
      `${rate(own().own[PRECISION])}, mean cost ${figure(own().own[COST])}.`;

    const chart = charts.lines("Curves over thresholds", 350, () => {
      const { x, y, name } = VIEWS[view],
        all = axes();
      const series = event.curves.map((curve, i) => ({
        name: curve.name,
        ...charts.style(i),
        points: curve.points.filter((p) => p[y] !== null).map((p) => [p[x], p[y]]),
      }));
      if (view === "roc") series.push({ name: "by chance", kind: "peer", dash: "1 5", points: [[0, 0], [1, 1]] });
      const marks = event.curves
        .map((curve, i) => ({ x: curve.own[x], y: curve.own[y], r: i ? 5 : 8, ...charts.style(i) }))
        .reverse(); // the model's own on top
      const here = own().points[at];
      marks.push({ x: here[x], y: here[y], kind: "ink", r: 4 });
      const rules = { pr: [{ y: event.share, name: "by chance", kind: "peer", start: true }] }[view] || [];
      return {
        words: `${name} of ${words()}`,
        series,
        x: all[x],
        y: all[y],
        rules,
        marks: marks.filter((mark) => mark.y !== null),
      };
    });
    const out = h("dl", { class: "readout" }),
      legend = h("div", {}),
      tables = h("div", {}),
      caption = note("");
    const input = h("input", {
      type: "range",
      min: 0,
      "aria-label": "Threshold",
      oninput: () => {
        at = Number(input.value);
        say();
        chart.redraw();
      },
    });
    const lead = section.probabilities ? "where its probability is at least" : "where its score leads by at least";
    function say() {
      const p = own().points[at],
        rule = own().own;
      const pair = (name, i, show) => [name, `${show(p[i])} · ${show(rule[i])}`];
      out.replaceChildren(
        ...facts([
          [lead, p[THRESHOLD] === null ? "never" : figure(p[THRESHOLD])],
          ["", "here · as it answers"],
          pair("rows answered with it", SHARE, rate),
          pair("recall", RECALL, rate),
          pair("false alarms", ALARMS, rate),
          pair("precision", PRECISION, rate),
          pair("mean cost", COST, figure),
        ]),
      );
      input.setAttribute("aria-valuetext", `${rate(p[SHARE])} of rows answered with ${event.name}`);
    }
    const cells = (p) => [rate(p[SHARE]), rate(p[RECALL]), rate(p[ALARMS]), rate(p[PRECISION]), figure(p[COST])];
    const heads = ["answered", "recall", "false alarms", "precision", "mean cost"];
    function fill() {
      at = nearest();
      input.max = own().points.length - 1;
      input.value = at;
      caption.textContent =
        `${count(event.n)} of ${plural(section.n, "rows")} are “${event.name}”. Large dots are what each model really ` +
        "answers. Along a curve, rows are answered with it from a threshold on, and otherwise with the cheapest other answer.";
      legend.replaceChildren(charts.legend(event.curves.map((curve, i) => ({ name: curve.name, ...charts.style(i) }))));
      tables.replaceChildren(
        dataTable(
          ["model", `ROC area (${level})`, "average precision", ...heads],
          event.curves.map((c) => [c.name, bounds(c.area), figure(c.average_precision), ...cells(c.own)]),
          "Areas and operating points",
        ),
        folded(
          "The curves as a table",
          dataTable(
            ["model", "threshold", ...heads],
            event.curves.flatMap((c) => c.points.map((p) => [c.name, figure(p[THRESHOLD]), ...cells(p)])),
            "Curves",
          ),
        ),
      );
      say();
    }
    fill();
    return [
      caption,
      h(
        "div",
        { class: "controls row" },
        segments(
          "Curve",
          Object.entries(VIEWS).map(([key, { name }]) => [key, name]),
          view,
          (v) => {
            view = v;
            chart.redraw();
          },
        ),
        select(
          "Answer",
          section.events.map((one) => one.name),
          section.chosen,
          (i) => {
            event = section.events[i];
            fill();
            chart.redraw();
          },
        ),
      ),
      legend,
      h(
        "div",
        { class: "split" },
        chart,
        h(
          "div",
          { class: "panel" },
          h("label", { class: "slider" }, h("span", {}, "Threshold: from answering it never to always"), input),
          out,
        ),
      ),
      tables,
    ];
  }

  function reliability(section) {
    let event = section.events[0];
    const level = percent(section.confidence),
      tables = h("div", {}),
      caption = note("");
    const chart = charts.lines("Reliability", 340, () => ({
      words: event.bins
        .map(([said, seen, , , n]) => `Said ${rate(said)}, happened ${rate(seen)} of ${count(n)}`)
        .join("; ")
        .concat("."),
      series: [
        { name: "as said", kind: "peer", dash: "1 5", points: [[0, 0], [1, 1]] },
        { name: "this model", kind: "model", points: event.bins.map(([said, seen]) => [said, seen]) },
      ],
      x: { label: "probability that the model gives", format: rate, domain: [0, 1] },
      y: { label: "how often it is true", format: rate, domain: [0, 1] },
      spans: event.bins.map(([x, , low, high]) => ({ x, low, high, kind: "model" })),
      marks: event.bins.map(([x, y]) => ({ x, y, kind: "model", r: 5 })),
    }));
    function fill() {
      caption.textContent =
        `Rows in bins by the probability that the model gives to “${event.name}”: on the dotted line it happens as often as ` +
        `said. Bars are exact intervals, each with ${level}. On average the two are ${rate(event.apart)} apart, chance included.`;
      tables.replaceChildren(
        folded(
          "As a table",
          dataTable(
            ["mean probability", "how often true", "from", "to", "rows"],
            event.bins.map(([x, y, low, high, n]) => [x, y, low, high].map(rate).concat(count(n))),
            "Reliability",
          ),
        ),
        dataTable(
          ["probabilities of all labels", "Brier score", "log loss"],
          section.scores.map((one) => [one.name, figure(one.brier), figure(one.log_loss)]),
          "Proper scores",
        ),
        note("Both scores are lower for better probabilities: they reward being sure where one is right, and nowhere else."),
      );
    }
    fill();
    return [
      caption,
      h(
        "div",
        { class: "controls row" },
        select(
          "Probability of",
          section.events.map((one) => one.name),
          0,
          (i) => {
            event = section.events[i];
            fill();
            chart.redraw();
          },
        ),
      ),
      chart,
      tables,
    ];
  }

  function learning(section) {
    // Places in a point: size; means, least and largest on training (odd) and on new data (even).
    const show = (v) => figure(v, section.loss.percent);
    const series = (i, name, look) => ({ name, ...look, points: section.points.map((p) => [p[0], p[i]]) });
    const looks = [charts.style(0), charts.style(1)],
      names = ["new data", "training data"];
    const [first, last] = [section.points[0], section.points.at(-1)];
    const chart = charts.lines("Learning curve", 330, () => ({
      words: `On new data ${show(first[2])} after ${count(first[0])} ${section.unit}, ${show(last[2])} after ${count(last[0])}.`,
      series: [series(2, names[0], looks[0]), series(1, names[1], looks[1])],
      x: { label: `${section.unit} trained on`, format: (v) => count(Math.round(v)) },
      y: { label: section.loss.name, format: show },
      spans: section.points.map((p) => ({ x: p[0], low: p[4], high: p[6], kind: looks[0].kind })),
      marks: section.points.map((p) => ({ x: p[0], y: p[2], kind: looks[0].kind, r: 5 })),
    }));
    return [
      note(
        `The model fitted again to parts of its training data, ${plural(section.draws, "draws")} of each size, and judged on ` +
          `the same ${count(section.n_new)} new ${section.unit}. Bars go from the best draw to the worst. Where the curve ` +
          "still falls at its end, more data would help; where both curves have met, another model might.",
      ),
      charts.legend(names.map((name, i) => ({ name, ...looks[i] }))),
      chart,
      folded(
        "As a table",
        dataTable(
          [section.unit, "new data", "best", "worst", "training data", "best", "worst"],
          section.points.map((p) => [count(p[0]), ...[p[2], p[4], p[6], p[1], p[3], p[5]].map(show)]),
          "Learning curve",
        ),
      ),
    ];
  }
  Object.assign(Nash.sections, { thresholds, reliability, learning });
})();
