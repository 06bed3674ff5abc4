// Answers against labels: counts, shares of a label, or costs; a cell shows its examples.
Nash.exampleList = (examples) => {
  const { h, figure } = Nash;
  return h(
    "ul",
    {},
    examples.map((one) =>
      h(
        "li",
        {},
        h("span", {}, `#${one.row + 1} `),
        one.text,
        one.likely.length
          ? h(
              one.text ? "div" : "span",
              { class: "muted" },
              `strategy: ${one.likely.map(([name, p]) => `${name} ${figure(p, true)}`).join(", ")}`,
            )
          : null,
      ),
    ),
  );
};

Object.assign(Nash.sections, {
  confusion(section) {
    const { h, figure, count, plural, segments, dataTable, folded } = Nash;
    const { answers, labels, counts, costs, total } = section;
    const columnTotal = labels.map((_, j) => section.classes.find((c) => c.name === labels[j]).count);
    const many = labels.length > 14,
      tilt = labels.length > 5 && Math.max(...labels.map((label) => label.length)) > 4;
    const size = (many ? "matrix many" : labels.length <= 4 ? "matrix few" : "matrix") + (tilt ? " tilt" : "");
    const views = {
      counts: {
        text: (i, j) => (counts[i][j] ? count(counts[i][j]) : "·"),
        weight: (i, j) => counts[i][j] / Math.max(1, columnTotal[j]),
        caption: "Rows are answers, columns true labels: how many there were of each pair.",
      },
      shares: {
        text: (i, j) => (counts[i][j] ? figure(counts[i][j] / columnTotal[j], true) : "·"),
        weight: (i, j) => counts[i][j] / Math.max(1, columnTotal[j]),
        caption: "Of each true label (a column), the share that was given each answer.",
      },
      costs: {
        text: (i, j) => (counts[i][j] * costs[i][j] ? figure(counts[i][j] * costs[i][j]) : "·"),
        weight: (i, j) => (counts[i][j] * costs[i][j]) / (mostPaid || 1),
        caption: `What was paid for each pair, ${figure(total.cost)} in all: how many there were times what each costs.`,
      },
      price: {
        text: (i, j) => figure(costs[i][j]),
        weight: (i, j) => costs[i][j] / (mostPrice || 1),
        caption: "The cost matrix: what each answer (a row) costs for each true label (a column).",
      },
    };
    const mostPaid = Math.max(...counts.map((row, i) => Math.max(...row.map((n, j) => n * costs[i][j]))));
    const mostPrice = Math.max(...costs.map((row) => Math.max(...row)));
    let view = "counts",
      chosen = null;
    const caption = Nash.note("");
    const panel = h("div", { class: "panel", "aria-live": "polite" });
    const buttons = answers.map((answer, i) =>
      labels.map((label, j) => {
        const button = h("button", {
          type: "button",
          "aria-pressed": "false",
          tabindex: i + j ? "-1" : "0",
          class: costs[i][j] > 0 ? "paid" : "right",
          onclick: () => choose(i, j),
          onkeydown: (event) => move(event, i, j),
        });
        return Nash.withTip(button, () => tipOf(i, j));
      }),
    );
    const share = (i, j) => figure(counts[i][j] / Math.max(1, columnTotal[j]), true);
    const paid = (i, j) => (total.cost ? figure((counts[i][j] * costs[i][j]) / total.cost, true) : "none");
    const tipOf = (i, j) =>
      `answer ${answers[i]}, label ${labels[j]}\n${plural(counts[i][j], section.unit)}, ${share(i, j)} of the label\n` +
      `cost ${figure(costs[i][j])} each, ${paid(i, j)} of all that was paid`;
    function move(event, i, j) {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const next = step && buttons[i + step[0]] && buttons[i + step[0]][j + step[1]];
      if (!next) return;
      event.preventDefault();
      buttons.flat().forEach((button) => button.setAttribute("tabindex", "-1"));
      next.setAttribute("tabindex", "0");
      next.focus();
    }
    function choose(i, j) {
      chosen = [i, j];
      buttons.forEach((row, a) =>
        row.forEach((button, b) => button.setAttribute("aria-pressed", String(a === i && b === j))),
      );
      const shown = section.examples[`${i},${j}`] || [];
      panel.replaceChildren(
        h("h3", {}, `Answer ${answers[i]}, label ${labels[j]}`),
        h("p", {}, tipOf(i, j).split("\n").slice(1).join("; ") + "."),
        shown.length ? Nash.exampleList(shown) : h("p", { class: "muted" }, "There is no such case."),
      );
    }
    function draw() {
      caption.textContent =
        views[view].caption +
        (total.hidden
          ? ` The ${labels.length} labels that cost or occur most; ${total.hidden} others are in the table below.`
          : "");
      buttons.forEach((row, i) =>
        row.forEach((button, j) => {
          const weight = views[view].weight(i, j);
          button.textContent = views[view].text(i, j);
          button.setAttribute("aria-label", `${button.textContent}: ${tipOf(i, j).replaceAll("\n", ", ")}`);
          button.style.setProperty("--share", weight > 0 ? Math.max(0.08, Math.min(1, Math.sqrt(weight))) : 0);
        }),
      );
    }
    draw();
    let worst = null;
    counts.forEach((row, i) =>
      row.forEach((n, j) => {
        if (n * costs[i][j] > (worst ? counts[worst[0]][worst[1]] * costs[worst[0]][worst[1]] : 0)) worst = [i, j];
      }),
    );
    if (worst) choose(...worst);
    else
      panel.replaceChildren(h("p", { class: "muted" }, "No answer cost anything. Choose a cell to see its examples."));
    const options = [
      ["counts", "Counts"],
      ["shares", "Shares"],
      ["costs", "Costs"],
      ["price", "Price of each"],
    ];
    const table = h(
      "table",
      { class: size },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          labels.map((label) => h("th", { scope: "col", title: label }, label)),
        ),
      ),
      h(
        "tbody",
        {},
        answers.map((answer, i) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", title: answer }, answer),
            buttons[i].map((button) => h("td", {}, button)),
          ),
        ),
      ),
    );
    const rate = (a, b) => (a === null || !b ? "–" : figure(a / b, true));
    return [
      caption,
      h(
        "div",
        { class: "controls" },
        segments("What the cells show", options, view, (v) => {
          view = v;
          draw();
        }),
      ),
      h(
        "div",
        { class: labels.length > 7 ? "stacked" : "split" },
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answers against labels" }, table),
        panel,
      ),
      folded(
        "Label by label",
        dataTable(
          ["label", section.unit, "found", "right when answered", "cost paid", "share of cost"],
          section.classes.map((c) => [
            c.name,
            count(c.count),
            rate(c.right, c.count),
            rate(c.right, c.given),
            figure(c.cost),
            total.cost ? figure(c.cost / total.cost, true) : "–",
          ]),
        ),
      ),
    ];
  },
});
