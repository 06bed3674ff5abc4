// What is proven: bounds for new data, the certificate of training, and the worst case.
(() => {
  const { h, figure, count, plural, percent, note, facts, segments, dataTable, folded, charts } = Nash;
  // The range in which the two curves are worth looking at: early, wild values are cut off.
  function focus(history) {
    const first = Math.min(history.length - 1, Math.floor(history.length / 8));
    const later = history
      .slice(first)
      .flatMap((r) => [r[2], r[3]])
      .filter((v) => v !== null);
    const last = history.at(-1)[3];
    const low = Math.min(last === null ? 0 : last, Math.max(0, Math.min(...later))),
      high = Math.max(...later);
    const pad = 0.08 * (high - low || Math.abs(high) || 1);
    return [low - pad, high + pad];
  }

  function certificate(section) {
    const smooth = section.smoothing ? "smoothed objective" : "objective";
    const words =
      `The ${smooth} of the weights, ${figure(section.objective, false, 5)}, is at most ` +
      `${figure(section.gap, true)} above the best that any weights reach; the tolerance was ${figure(section.tol, true)}.`;
    if (section.history.length < 2)
      return [
        note(words),
        h(
          "p",
          { class: "muted" },
          `It was reached in ${plural(section.n_iter, "iterations")}; the way there was not recorded.`,
        ),
      ];
    // Where compiling took most of the time, iterations say more.
    const quarter = section.history[Math.floor(section.history.length / 4)];
    const late = quarter[1] > 0.6 * section.history.at(-1)[1];
    let view = "both",
      over = late ? "0" : "1";
    const series = (i, name, kind, dash) => ({
      name,
      kind,
      dash,
      points: section.history.map((r) => [r[Number(over)], r[i]]),
    });
    const chart = charts.lines("Objective and bound during training", 320, () => ({
      words: `They end at ${figure(section.objective, false, 5)}, a gap of ${figure(section.gap, true)}.`,
      series:
        view === "both"
          ? [series(2, "objective of the weights", "model"), series(3, "bound on the best objective", "rival", "7 4")]
          : [series(4, "relative gap", "model")],
      x: { label: over === "1" ? "seconds" : "iterations" },
      y:
        view === "both"
          ? { label: "objective", domain: focus(section.history) }
          : { label: "relative gap", log: true, format: (v) => figure(v, true) },
      rules: view === "gap" && section.tol > 0 ? [{ y: section.tol, name: "asked", kind: "peer" }] : [],
    }));
    const legend = h(
      "div",
      {},
      charts.legend([
        { name: "objective of the weights", kind: "model" },
        { name: "bound on the best objective", kind: "rival", dash: "7 4" },
      ]),
    );
    return [
      note(`${words} The bound rises, the objective falls, and the best objective lies between them.`),
      h(
        "div",
        { class: "controls row" },
        segments(
          "Curves",
          [
            ["both", "Objective and bound"],
            ["gap", "Gap"],
          ],
          view,
          (v) => {
            view = v;
            legend.hidden = v !== "both";
            chart.redraw();
          },
        ),
        segments(
          "Over",
          [
            ["1", "Seconds"],
            ["0", "Iterations"],
          ],
          over,
          (v) => {
            over = v;
            chart.redraw();
          },
        ),
      ),
      legend,
      chart,
      folded(
        "As a table",
        dataTable(
          ["iterations", "seconds", "objective", "bound", "gap"],
          section.history.map((r) => [
            count(r[0]),
            figure(r[1]),
            figure(r[2], false, 6),
            figure(r[3], false, 6),
            figure(r[4], true),
          ]),
        ),
      ),
    ];
  }

  function risk(section) {
    const { points } = section;
    const show = (v) => figure(v, section.percent);
    const chosen = section.marks.length ? section.marks[Math.min(3, section.marks.length - 1)][1] : 0;
    let at = Math.max(
      points.findIndex(([radius]) => radius >= chosen),
      0,
    );
    const [reach, highest] = points.at(-1);
    const top = 1.06 * Math.max(highest, section.measured || 0, section.secured);
    const chart = charts.lines("Worst-case risk against radius", 320, () => {
      const rules = section.marks.map(([c, r]) => ({ x: r, name: [0.5, 0.95, 0.99].includes(c) ? percent(c) : "" }));
      if (section.measured !== null) rules.push({ y: section.measured, name: "measured here", kind: "rival" });
      rules.push({ y: section.secured, name: "secured without any data", kind: "peer", start: true });
      return {
        words: `At most ${show(points[at][1])} at radius ${figure(points[at][0])}.`,
        series: [{ name: "bound", kind: "model", points }],
        x: { label: "radius: how far the moments may move" },
        y: { label: section.unit, domain: [0, top], format: show },
        rules,
        marks: [{ x: points[at][0], y: Math.min(points[at][1], top), kind: "model" }],
      };
    });
    const out = h("dl", { class: "readout" });
    function say() {
      const [radius, bound] = points[at];
      const known = section.marks.filter(([, r]) => r <= radius + 1e-12).map(([c]) => c);
      const rows = [
        ["radius", figure(radius)],
        ["at most, in the worst case", show(bound)],
      ];
      if (section.marks.length)
        rows.push([
          "holds with confidence",
          known.length
            ? `${percent(Math.max(...known))}${radius > section.marks.at(-1)[1] ? " or more" : ""}`
            : "below 50\u202f%",
        ]);
      if (section.measured !== null) rows.push(["randomised answers, measured", show(section.measured)]);
      rows.push(["secured without any data", show(section.secured)]);
      out.replaceChildren(...facts(rows));
    }
    const input = h("input", {
      type: "range",
      min: 0,
      max: points.length - 1,
      value: at,
      "aria-label": "Radius",
      oninput: () => {
        at = Number(input.value);
        say();
        chart.redraw();
      },
    });
    say();
    const marked = section.marks.length
      ? " Upright lines mark the radius that chance alone stays within, with the confidence written on it."
      : "";
    return [
      note(
        "The most that randomised answers can cost in the mean, whatever new labels do at the training inputs, so " +
          `long as their moments stay within the radius.${marked}`,
      ),
      h(
        "div",
        { class: "split" },
        chart,
        h("div", { class: "panel" }, h("label", { class: "slider" }, h("span", {}, "Radius"), input), out),
      ),
      folded("As a table", dataTable(["radius", "at most"], points.map(([r, bound]) => [figure(r), show(bound)]), "Worst case")),
    ];
  }

  function newData(section) {
    const { loss, lower, upper, largest } = section;
    const show = (v) => figure(v, section.percent);
    const end = Math.min(largest, 2 * upper) || 1;
    return [
      note(
        `The true mean of all ${section.examples} to come lies between the bounds with a confidence of ` +
          `${percent(section.confidence)}, if they are drawn like these, independently, and the model has seen none ` +
          "of these. If the data shift, no bound holds.",
      ),
      h(
        "dl",
        { class: "readout" },
        facts([
          [`measured on ${count(section.n)} ${section.examples}`, show(loss)],
          ["at least", show(lower)],
          ["at most", show(upper)],
          ["the most that is possible", show(largest)],
        ]),
      ),
      h(
        "div",
        { class: "chart", role: "img", "aria-label": `${show(loss)}, between ${show(lower)} and ${show(upper)}` },
        charts.whisker({ low: lower, high: upper, value: loss }, [Math.min(0, lower), end], "model", null),
      ),
      h("p", { class: "muted" }, `In ${section.unit}; the line goes from 0 to ${show(end)}.`),
    ];
  }
  Object.assign(Nash.sections, { certificate, risk, new_data: newData });
})();
