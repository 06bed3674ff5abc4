// Charts in SVG, drawn for the width that they have and drawn again when it changes.
Nash.charts = (() => {
  const { h, s, figure } = Nash;
  let clips = 0;
  const MARGIN = { left: 58, right: 18, top: 16, bottom: 46 };
  // The model first, then its peers: colour and dash, so that no curve is told apart by colour alone.
  const PEERS = [
    ["third", "7 4"],
    ["rival", "9 3 2 3"],
    ["peer", null],
    ["ink", "2 4"],
    ["good", "4 3"],
  ];
  const style = (i) => {
    const [kind, dash] = i ? PEERS[(i - 1) % PEERS.length] : ["model", null];
    return { kind, dash };
  };

  function mount(label, draw) {
    const holder = h("div", { class: "chart", role: "group", "aria-label": label });
    let width = 0;
    const redraw = () => {
      if (width) holder.replaceChildren(draw(width));
    };
    new ResizeObserver(([entry]) => {
      const now = Math.round(entry.contentRect.width);
      if (now && now !== width) {
        width = now;
        redraw();
      }
    }).observe(holder);
    holder.redraw = redraw;
    return holder;
  }

  function ticks(low, high, about) {
    const rough = (high - low) / Math.max(about, 1);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((multiple) => multiple * unit >= rough * 0.999) * unit;
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found;
  }
  function scale(domain, range, log) {
    const f = log ? Math.log10 : (v) => v;
    const low = f(domain[0]),
      span = f(domain[1]) - low || 1;
    const to = (v) => range[0] + ((f(v) - low) / span) * (range[1] - range[0]);
    to.inverse = (pixel) => {
      const v = low + ((pixel - range[0]) / (range[1] - range[0])) * span;
      return log ? 10 ** v : v;
    };
    to.ticks = (about) => {
      if (!log) return ticks(domain[0], domain[1], about);
      const every = Math.max(1, Math.ceil(span / about));
      const found = [];
      for (let e = Math.ceil(low - 1e-9); e <= low + span + 1e-9; e += every) found.push(10 ** e);
      return found;
    };
    return to;
  }
  function domainOf(values, log, pad = 0.06) {
    const known = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
    let low = Math.min(...known),
      high = Math.max(...known);
    if (!known.length) return log ? [0.1, 1] : [0, 1];
    if (log)
      return [10 ** Math.floor(Math.log10(low) + 1e-9), 10 ** Math.ceil(Math.log10(high) - 1e-9 + (low === high))];
    if (low === high) {
      low -= 0.5;
      high += 0.5;
    }
    return [low - pad * (high - low), high + pad * (high - low)];
  }

  function axes(x, y, width, height, xAxis, yAxis) {
    const { left, right, top, bottom } = MARGIN;
    const format = (axis, v) => (axis.format ? axis.format(v) : figure(v, axis.percent && true));
    const g = s("g", { "aria-hidden": "true" });
    for (const v of y.ticks(Math.max(3, (height - top - bottom) / 56))) {
      g.append(
        s("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
        s("text", { x: left - 9, y: y(v) + 4, "text-anchor": "end" }, format(yAxis, v)),
      );
    }
    for (const v of x.ticks(Math.max(3, (width - left - right) / 95))) {
      g.append(
        s("line", { class: "axis", x1: x(v), x2: x(v), y1: height - bottom, y2: height - bottom + 5 }),
        s("text", { x: x(v), y: height - bottom + 20, "text-anchor": "middle" }, format(xAxis, v)),
      );
    }
    g.append(
      s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      s("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xAxis.label),
      s("text", { x: 4, y: 6, class: "ylabel" }, yAxis.label),
    );
    return g;
  }

  function legend(series) {
    return h(
      "ul",
      { class: "legend" },
      series.map((one) =>
        h(
          "li",
          {},
          s(
            "svg",
            { viewBox: "0 0 26 10", "aria-hidden": "true" },
            s("line", { class: `k-${one.kind}`, x1: 1, x2: 25, y1: 5, y2: 5, "stroke-dasharray": one.dash }),
          ),
          one.name,
        ),
      ),
    );
  }

  // Curves over a common axis. `make()` returns {words, series: [{name, kind, dash, points}], x, y, rules, marks, spans},
  // so that a redraw shows the present state. Points are [x, y]; a null y breaks the curve; spans are [x, low, high]; `words`
  // say what there is to see.
  function lines(label, height, make) {
    return mount(label, (width) => {
      const chart = make();
      const all = chart.series.flatMap((one) => one.points);
      const { left, right, top, bottom } = MARGIN;
      const xs =
        chart.x.domain ||
        domainOf(
          all.map((p) => p[0]),
          chart.x.log,
          0,
        );
      const more = (chart.rules || []).filter((rule) => rule.y !== undefined).map((rule) => rule.y);
      const spans = chart.spans || [];
      const far = spans.flatMap((span) => [span.low, span.high]);
      const ys = chart.y.domain || domainOf([...all.map((p) => p[1]), ...more, ...far], chart.y.log);
      const x = scale(xs, [left, width - right], chart.x.log),
        y = scale(ys, [height - bottom, top + 8], chart.y.log);
      const svg = s(
        "svg",
        {
          viewBox: `0 0 ${width} ${height}`,
          height,
          tabindex: "0",
          role: "img",
          "aria-label": `${label}. ${chart.words || ""} Arrow keys read values.`,
        },
        axes(x, y, width, height, chart.x, chart.y),
      );
      const inside = (v, domain) => v >= domain[0] - 1e-12 && v <= domain[1] + 1e-12;
      for (const rule of chart.rules || []) {
        if (rule.y !== undefined && inside(rule.y, ys)) {
          svg.append(
            s("line", {
              class: `curve k-${rule.kind}`,
              "stroke-dasharray": "6 5",
              "stroke-width": 1.5,
              x1: left,
              x2: width - right,
              y1: y(rule.y),
              y2: y(rule.y),
            }),
            s(
              "text",
              {
                x: rule.start ? left + 6 : width - right - 4,
                y: y(rule.y) - 7,
                "text-anchor": rule.start ? "start" : "end",
              },
              rule.name,
            ),
          );
        }
        if (rule.x !== undefined && inside(rule.x, xs)) {
          svg.append(
            s("line", { class: "hair", x1: x(rule.x), x2: x(rule.x), y1: top, y2: height - bottom }),
            s("text", { x: x(rule.x), y: top - 3, "text-anchor": "middle" }, rule.name || ""),
          );
        }
      }
      const id = `clip-${++clips}`; // curves may leave the range that is shown
      const plot = s("g", { "clip-path": `url(#${id})` });
      svg.append(
        s(
          "clipPath",
          { id },
          s("rect", {
            x: left - 2,
            y: top,
            width: Math.max(0, width - left - right + 4),
            height: height - top - bottom + 3,
          }),
        ),
        plot,
      );
      for (const one of chart.series) {
        let pen = "M",
          path = "";
        for (const [px, py] of one.points) {
          if (py === null || !Number.isFinite(py) || (chart.y.log && py <= 0)) {
            pen = "M";
            continue;
          }
          path += `${pen}${x(px).toFixed(1)},${y(py).toFixed(1)}`;
          pen = "L";
        }
        const known = one.points.filter((p) => p[1] !== null && Number.isFinite(p[1]));
        if (known.length === 1) {
          plot.append(
            s("circle", {
              class: `dot k-${one.kind}`,
              cx: x(known[0][0]),
              cy: y(known[0][1]),
              r: 5,
              style: "stroke:var(--card)",
            }),
          );
        }
        plot.append(
          s("path", { class: `curve k-${one.kind}`, style: "fill:none", d: path, "stroke-dasharray": one.dash }),
        );
      }
      for (const span of spans) {
        plot.append(
          s("line", {
            class: `span k-${span.kind}`,
            x1: x(span.x),
            x2: x(span.x),
            y1: y(span.low),
            y2: y(span.high),
          }),
        );
      }
      for (const mark of chart.marks || []) {
        svg.append(
          s("circle", {
            class: `dot k-${mark.kind}`,
            cx: x(mark.x),
            cy: y(mark.y),
            r: mark.r || 6,
            style: "stroke:var(--card)",
          }),
        );
      }
      hover(svg, chart, x, y, xs, width, height);
      return svg;
    });
  }

  // A hair line with the values of all curves at it: by pointer, or by arrow keys.
  function hover(svg, chart, x, y, xs, width, height) {
    const hair = s("line", { class: "hair", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
    const grid = [...new Set(chart.series.flatMap((one) => one.points.map((p) => p[0])))]
      .filter((v) => v >= xs[0] && v <= xs[1])
      .sort((a, b) => a - b);
    let at = -1;
    svg.append(hair);
    function show(i, clientX, clientY) {
      at = i;
      const v = grid[i];
      const rows = chart.series.map((one) => [one.name, valueAt(one.points, v)]).filter((row) => row[1] !== null);
      hair.setAttribute("x1", x(v));
      hair.setAttribute("x2", x(v));
      hair.setAttribute("visibility", "visible");
      const format = (axis, value) => (axis.format ? axis.format(value) : figure(value, axis.percent && true, 4));
      const head = `${chart.x.label}: ${format(chart.x, v)}`;
      Nash.showTip(
        [head, ...rows.map(([name, value]) => `${name}: ${format(chart.y, value)}`)].join("\n"),
        clientX,
        clientY,
      );
    }
    function nearest(v) {
      let best = 0;
      grid.forEach((candidate, i) => {
        if (Math.abs(x(candidate) - v) < Math.abs(x(grid[best]) - v)) best = i;
      });
      return best;
    }
    const leave = () => {
      hair.setAttribute("visibility", "hidden");
      Nash.hideTip();
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      if (grid.length) show(nearest(event.clientX - box.left), event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (!step || !grid.length) return;
      event.preventDefault();
      const i = Math.max(0, Math.min(grid.length - 1, at + step));
      const box = svg.getBoundingClientRect();
      show(i, box.left + x(grid[i]), box.top + 30);
    });
  }
  // The value of a curve at v, between its points; null outside.
  function valueAt(points, v) {
    for (let i = 0; i < points.length; i++) {
      if (points[i][0] === v) return points[i][1];
      if (i && points[i - 1][0] < v && v < points[i][0] && points[i][1] !== null && points[i - 1][1] !== null) {
        const t = (v - points[i - 1][0]) / (points[i][0] - points[i - 1][0]);
        return points[i - 1][1] + t * (points[i][1] - points[i - 1][1]);
      }
    }
    return null;
  }

  // Groups of bars. `make()` returns {groups: [{name, bars: [{value, kind, tip}]}], y, x, choose, chosen}.
  function bars(label, height, make) {
    return mount(label, (width) => {
      const chart = make();
      const { left, right, top, bottom } = MARGIN;
      const high = Math.max(1e-12, ...chart.groups.flatMap((group) => group.bars.map((bar) => bar.value)));
      const y = scale([0, chart.y.domain ? chart.y.domain[1] : high * 1.08], [height - bottom, top + 8], false);
      const slot = (width - left - right) / chart.groups.length;
      const none = Object.assign(() => 0, { ticks: () => [] });
      const svg = s(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": label },
        axes(none, y, width, height, chart.x, chart.y),
      );
      chart.groups.forEach((group, i) => {
        const thick = Math.min(46, (slot * 0.76) / group.bars.length);
        const first = left + slot * (i + 0.5) - (thick * group.bars.length) / 2;
        svg.append(
          s("text", { x: left + slot * (i + 0.5), y: height - bottom + 20, "text-anchor": "middle" }, group.name),
        );
        group.bars.forEach((bar, j) => {
          const size = Math.max(y(0) - y(bar.value), bar.value > 0 ? 1.5 : 0);
          const usable = chart.choose && j === 0 && bar.value > 0;
          const node = s("rect", {
            class: `bar k-${bar.kind}`,
            x: first + j * thick + 1,
            width: Math.max(thick - 2, 1),
            rx: 3,
            y: y(0) - size,
            height: size,
            tabindex: "0",
            role: usable ? "button" : "img",
            "aria-label": bar.tip,
            "aria-pressed": usable ? String(chart.chosen === group.key) : null,
            style: `stroke:none;${usable ? "cursor:pointer" : ""}`,
          });
          Nash.withTip(node, () => bar.tip);
          if (usable) {
            node.addEventListener("click", () => chart.choose(group.key));
            node.addEventListener("keydown", (event) => {
              if (event.key === "Enter" || event.key === " ") {
                event.preventDefault();
                chart.choose(group.key);
              }
            });
          }
          svg.append(node);
        });
      });
      return svg;
    });
  }

  // One row of dot and whisker, placed by percentages so that it needs no width.
  function whisker(row, domain, kind, guide) {
    const at = (v) => `${(100 * (v - domain[0])) / (domain[1] - domain[0])}%`;
    const svg = s(
      "svg",
      { height: 34, width: "100%", "aria-hidden": "true" },
      s("line", { class: "grid", x1: "0%", x2: "100%", y1: 17, y2: 17 }),
    );
    if (row.value !== null && (row.value < domain[0] || row.value > domain[1])) {
      const left = row.value < domain[0];
      svg.append(
        s("text", { x: left ? "0%" : "100%", y: 21, "text-anchor": left ? "start" : "end" }, left ? "← beyond" : "beyond →"),
      );
      return h("div", { class: "chart" }, svg);
    }
    if (guide !== null) svg.append(s("line", { class: "hair", x1: at(guide), x2: at(guide), y1: 0, y2: 34 }));
    if (row.low !== null) {
      svg.append(
        s("line", {
          class: `k-${kind}`,
          "stroke-width": 5,
          "stroke-linecap": "round",
          opacity: 0.42,
          x1: at(row.low),
          x2: at(row.high),
          y1: 17,
          y2: 17,
        }),
      );
    }
    if (row.value !== null)
      svg.append(s("circle", { class: `dot k-${kind}`, cx: at(row.value), cy: 17, r: 7, style: "stroke:var(--card)" }));
    return h("div", { class: "chart" }, svg);
  }

  // Lines of a name, dot and whisker, and a value in words: rows are [name, value, low, high].
  function dots(rows, guide, show, between) {
    const known = rows.flatMap((row) => row.slice(1)).filter((v) => v !== null);
    const domain = domainOf([...known, guide], false, 0.06);
    return h(
      "div",
      { class: "versus three" },
      rows.map(([name, value, low, high]) =>
        h(
          "div",
          { class: "line" },
          h("div", { class: "name" }, name),
          h("div", { class: "value" }, show(value), h("small", {}, low === null ? "" : between(low, high))),
          whisker({ value, low, high }, domain, "model", guide),
        ),
      ),
    );
  }

  return { lines, bars, whisker, dots, legend, style, domainOf, ticks, mount, scale };
})();
