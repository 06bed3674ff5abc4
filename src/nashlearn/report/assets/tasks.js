// What only some tasks have: coverage with abstention, errors of grades, heads by distance, whole tracks.
(() => {
  const { h, figure, count, plural, percent, note, facts, segments, select, dataTable, folded, charts } = Nash;
  function coverage(section) {
    const own = section.curves[0].points;
    let at = 0;
    own.forEach((p, i) => {
      if (Math.abs(p[1] - section.chosen.coverage) < Math.abs(own[at][1] - section.chosen.coverage)) at = i;
    });
    let view = 2;
    const chart = charts.lines("Risk against coverage", 340, () => ({
      words:
        `Its own rule answers ${figure(section.chosen.coverage, true)} of rows, with ${figure(section.chosen.risk, true)} ` +
        `errors among them and a mean cost of ${figure(section.chosen.cost)}.`,
      series: section.curves.map((curve, i) => ({
        name: curve.name,
        ...charts.style(i),
        points: curve.points.filter((p) => p[1] > 0 || view === 3).map((p) => [p[1], p[view]]),
      })),
      x: { label: "coverage: share of rows answered", format: (v) => figure(v, true), domain: [0, 1] },
      y:
        view === 2
          ? { label: "error rate where it answers", format: (v) => figure(v, true) }
          : { label: "mean cost per row" },
      marks: [{ x: own[at][1], y: own[at][view], kind: "model", r: 7 }],
    }));
    const out = h("dl", { class: "readout" });
    const input = h("input", {
      type: "range",
      min: 0,
      max: own.length - 1,
      value: at,
      "aria-label": "Threshold",
      oninput: () => {
        at = Number(input.value);
        say();
        chart.redraw();
      },
    });
    function say() {
      const p = own[at];
      const rows = [
        ["answers where it would abstain with at most", p[0] === null ? "never" : percent(p[0])],
        ["rows answered", figure(p[1], true)],
        ["error rate where it answers", figure(p[2], true)],
        ["mean cost, abstentions paid", figure(p[3])],
        ["its own rule: rows answered", figure(section.chosen.coverage, true)],
        ["its own rule: error rate", figure(section.chosen.risk, true)],
        ["its own rule: mean cost", figure(section.chosen.cost)],
      ];
      out.replaceChildren(...facts(rows));
      input.setAttribute("aria-valuetext", `${figure(p[1], true)} of rows answered`);
    }
    say();
    const [low, high] = [Math.min(...section.price), Math.max(...section.price)];
    const cost = low === high ? figure(low) : `${figure(low)} to ${figure(high)}`;
    return [
      note(`Abstaining costs ${cost}, a wrong label 1. Move the threshold to answer more rows or fewer.`),
      h(
        "div",
        { class: "controls row" },
        segments(
          "Vertical axis",
          [
            ["2", "Error rate"],
            ["3", "Mean cost"],
          ],
          "2",
          (v) => {
            view = Number(v);
            chart.redraw();
          },
        ),
      ),
      charts.legend(section.curves.map((curve, i) => ({ name: curve.name, ...charts.style(i) }))),
      h(
        "div",
        { class: "split" },
        chart,
        h(
          "div",
          { class: "panel" },
          h("label", { class: "slider" }, h("span", {}, "Threshold: from answering little to answering all"), input),
          out,
        ),
      ),
      folded(
        "As a table",
        dataTable(
          ["model", "rows answered", "error rate where it answers", "mean cost"],
          section.curves.flatMap((curve) =>
            curve.points.map((p) => [curve.name, figure(p[1], true), figure(p[2], true), figure(p[3])]),
          ),
          "Coverage and risk",
        ),
      ),
    ];
  }

  function errors(section) {
    let peer = section.series.length > 1 ? 1 : 0,
      chosen = null;
    const total = section.series[0].counts.reduce((a, b) => a + b, 0);
    const sign = (d) => (d > 0 ? `+${d}` : d < 0 ? `\u2212${-d}` : "0");
    const words = (d) => (d === 0 ? "right" : `${Math.abs(d)} too ${d > 0 ? "high" : "low"}`);
    const tip = (j, i, d) => {
      const { name, counts } = section.series[j];
      return `${name}: ${plural(counts[i], "rows")} ${words(d)} (${percent(counts[i] / total)})`;
    };
    const legend = h("div", {});
    const panel = h("div", { class: "panel", "aria-live": "polite" });
    const chart = charts.bars("Histogram of errors", 320, () => ({
      groups: section.offsets.map((d, i) => ({
        name: sign(d),
        key: d,
        bars: [0, peer]
          .filter((j, n) => n === 0 || j)
          .map((j, n) => ({
            value: section.series[j].counts[i] / total,
            kind: n ? "peer" : "model",
            tip: tip(j, i, d),
          })),
      })),
      x: { label: "answer minus label, in grades" },
      y: { label: "share of rows", format: (v) => figure(v, true) },
      chosen,
      choose: (d) => {
        chosen = d;
        say();
        chart.redraw();
      },
    }));
    function say() {
      if (chosen === null)
        return panel.replaceChildren(h("p", { class: "muted" }, "Choose a bar of this model to see rows."));
      const i = section.offsets.indexOf(chosen);
      panel.replaceChildren(
        h("h3", {}, `${plural(section.series[0].counts[i], "rows")} ${words(chosen)}`),
        Nash.exampleList(section.examples[chosen] || []),
      );
    }
    const draw = () =>
      legend.replaceChildren(
        charts.legend([
          { name: section.series[0].name, kind: "model" },
          ...(peer ? [{ name: section.series[peer].name, kind: "peer" }] : []),
        ]),
      );
    draw();
    say();
    const beside = select(
      "Beside it",
      section.series.slice(1).map((one) => one.name),
      0,
      (i) => {
        peer = i + 1;
        draw();
        chart.redraw();
      },
    );
    return [
      note(
        "How many grades the answer is from the label: with ordered grades it is better to err by one than by many.",
      ),
      h("div", { class: "controls row" }, beside),
      legend,
      h("div", { class: "split" }, chart, panel),
      folded(
        "As a table",
        dataTable(
          ["grades off", ...section.series.map((one) => one.name)],
          section.offsets.map((d, i) => [sign(d), ...section.series.map((one) => count(one.counts[i]))]),
          "Errors",
        ),
      ),
    ];
  }

  function lengths(section) {
    const chart = charts.bars("Right heads by distance", 280, () => ({
      groups: section.bins.map((bin) => ({
        name: bin.name,
        key: bin.name,
        bars: [
          {
            value: bin.right / bin.n,
            kind: "model",
            tip: `${percent(bin.right / bin.n)} of ${plural(bin.n, "words")} right`,
          },
        ],
      })),
      x: { label: "words to the true head" },
      y: { label: "right heads", format: (v) => figure(v, true), domain: [0, 1] },
    }));
    return [
      note("The share of words whose head is right, by how many words lie between: long arcs are the hard ones."),
      chart,
      folded(
        "As a table",
        dataTable(
          ["distance", "words", "right"],
          section.bins.map((b) => [b.name, count(b.n), percent(b.right / b.n)]),
        ),
      ),
    ];
  }

  function table(section) {
    return [
      note("Tracks followed from the first frame to the last by the model's own links, against the annotated ones."),
      dataTable(
        section.columns,
        section.rows.map((row) => row.map((cell) => (typeof cell === "number" ? figure(cell, false, 4) : cell))),
      ),
    ];
  }
  Object.assign(Nash.sections, { coverage, errors, lengths, table });
})();
