// Worked examples of structured tasks, one at a time: tagged sequences, trees, matched boxes.
(() => {
  const { h, s, figure, count, plural, note, dataTable, folded } = Nash;

  // Buttons to go through the items, or through those with mistakes only.
  function browse(section, mistakes, render, key) {
    const stage = h("div", { class: "stage" });
    const place = h("span", { class: "muted", "aria-live": "polite" });
    let only = section.items.some((item) => mistakes(item) > 0),
      at = 0;
    const listed = () => section.items.filter((item) => !only || mistakes(item) > 0);
    const previous = h("button", { type: "button", class: "button", onclick: () => go(-1) }, "Previous");
    const next = h("button", { type: "button", class: "button", onclick: () => go(1) }, "Next");
    const check = h("input", {
      type: "checkbox",
      onchange: () => {
        only = check.checked;
        at = 0;
        draw();
      },
    });
    check.checked = only;
    function go(step) {
      at = Math.max(0, Math.min(listed().length - 1, at + step));
      draw();
    }
    function draw() {
      const items = listed();
      previous.disabled = at === 0;
      next.disabled = at >= items.length - 1;
      if (!items.length) {
        place.textContent = "none to show";
        return stage.replaceChildren(h("p", { class: "muted" }, "There is no example with a mistake."));
      }
      const item = items[at],
        wrong = mistakes(item);
      const found = wrong ? plural(wrong, "mistakes") : "no mistake";
      place.textContent = `${at + 1} of ${items.length}: ${item.name}, ${found}`;
      stage.replaceChildren(...[render(item)].flat());
    }
    const group = h(
      "div",
      {
        role: "group",
        "aria-label": section.title,
        onkeydown: (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (step && (event.target === previous || event.target === next)) {
            event.preventDefault();
            go(step);
          }
        },
      },
      h(
        "div",
        { class: "controls row" },
        previous,
        next,
        h("label", { class: "check" }, check, "Only with mistakes"),
        place,
      ),
      key || null,
      stage,
    );
    draw();
    const seen =
      `${count(section.items.length)} of ${plural(section.n, section.unit)} are here, drawn at random from those with ` +
      `mistakes (${count(section.n_wrong)} in all) and those without.`;
    return [group, h("p", { class: "caption", style: "margin-bottom:0" }, seen)];
  }
  const differing = (item) => item.truth.filter((one, i) => one !== item.answer[i]).length;
  const swatch = (kind, text, dash) => ({ kind, name: text, dash });

  function sequences(section) {
    function render(item) {
      const panel = h("div", { class: "panel", "aria-live": "polite", style: "margin-top:1rem" });
      const tokens = item.tokens.map((token, i) => {
        const wrong = item.truth[i] !== item.answer[i];
        const sure = (item.likely[i].find(([name]) => name === item.answer[i]) || [0, 0])[1];
        return h(
          "button",
          { type: "button", class: wrong ? "token wrong" : "token", "aria-pressed": "false", onclick: () => choose(i) },
          h("span", { class: "word" }, token),
          h("span", { class: "tag" }, item.answer[i]),
          h("span", { class: "meter", title: figure(sure, true) }, h("i", { style: `width:${100 * sure}%` })),
          wrong ? h("span", { class: "gold" }, `label ${item.truth[i]}`) : null,
        );
      });
      function choose(i) {
        const played = item.likely[i].map(([name, p]) => `${name} with ${figure(p, true)}`).join(", ");
        tokens.forEach((token, j) => token.setAttribute("aria-pressed", String(i === j)));
        panel.replaceChildren(
          h("h3", {}, item.tokens[i]),
          h("p", {}, `Answer ${item.answer[i]}, label ${item.truth[i]}. The strategy plays ${played}.`),
        );
      }
      const first = item.truth.findIndex((one, i) => one !== item.answer[i]);
      choose(Math.max(first, 0));
      return [h("div", { class: "sentence" }, tokens), panel];
    }
    return [
      note(
        "Under each token its tag; the bar is how surely the model's strategy plays it. Mistakes are red, with the true " +
          "label in green below. Choose a token for its strategy.",
      ),
      browse(section, differing, render),
    ];
  }

  function trees(section) {
    function render(item) {
      const n = item.words.length,
        gap = 16,
        pad = 14;
      const widths = item.words.map((word, i) => Math.max(9 * word.length, 7 * item.tags[i].length, 26));
      const centre = [];
      let x = pad + 44;
      widths.forEach((width) => {
        centre.push(x + width / 2);
        x += width + gap;
      });
      const width = x + pad,
        rootX = pad + 16;
      const at = (head) => (head === 0 ? rootX : centre[head - 1]);
      const above = item.answer.map((head, i) => [i, head, head === item.truth[i] ? "right" : "wrong"]);
      const below = item.truth.map((head, i) => [i, head, "missed"]).filter(([i, head]) => head !== item.answer[i]);
      const rise = (arcs) => {
        const level = arcs.map(() => 1);
        const ends = arcs.map(([i, head]) => [Math.min(i + 1, head), Math.max(i + 1, head)]);
        const order = arcs.map((_, k) => k).sort((a, b) => ends[a][1] - ends[a][0] - (ends[b][1] - ends[b][0]));
        order.forEach((k, position) =>
          order.slice(0, position).forEach((other) => {
            const [a, b] = ends[k],
              [c, d] = ends[other];
            if (a <= c && d <= b) level[k] = Math.max(level[k], level[other] + 1);
          }),
        );
        return level;
      };
      const upLevels = rise(above),
        downLevels = rise(below);
      const step = 21,
        line = 30 + step * Math.max(1, ...upLevels),
        height = line + 44 + (below.length ? 26 + step * Math.max(1, ...downLevels) : 0);
      const svg = s("svg", {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `${item.words.join(" ")}. ${plural(differing(item), "wrong heads")}.`,
      });
      function arc([i, head, kind], level, up) {
        const from = at(head),
          to = centre[i] + (from < centre[i] ? -4 : 4),
          base = up ? line - 16 : line + 28,
          sign = up ? -1 : 1;
        const top = base + sign * step * level,
          bend = Math.min(14, Math.abs(to - from) / 2) * Math.sign(to - from);
        svg.append(
          s("path", {
            class: `arc ${kind}`,
            d:
              `M${from},${base} Q${from},${top} ${from + bend},${top} ` +
              `L${to - bend},${top} Q${to},${top} ${to},${base}`,
          }),
          s("path", {
            class: `tip-${kind}`,
            d: `M${to - 4},${base + sign * 7} L${to + 4},${base + sign * 7} L${to},${base} Z`,
          }),
        );
        const relation = up ? (item.given ? item.given[i] : null) : item.relations[i];
        if (relation)
          svg.append(
            s("text", { class: "rel", x: (from + to) / 2, y: top + (up ? -3 : 11), "text-anchor": "middle" }, relation),
          );
      }
      above.forEach((one, k) => arc(one, upLevels[k], true));
      below.forEach((one, k) => arc(one, downLevels[k], false));
      svg.append(s("text", { class: "tag", x: rootX, y: line, "text-anchor": "middle" }, "root"));
      item.words.forEach((word, i) =>
        svg.append(
          s(
            "text",
            { class: item.answer[i] === item.truth[i] ? "" : "off", x: centre[i], y: line, "text-anchor": "middle" },
            word,
          ),
          s("text", { class: "tag", x: centre[i], y: line + 17, "text-anchor": "middle" }, item.tags[i]),
        ),
      );
      const name = (head) => (head ? `${item.words[head - 1]} (${head})` : "root");
      const relation = (i) => (item.given ? item.given[i] : "–");
      return [
        h("div", { class: "scroll trees", tabindex: "0", role: "region", "aria-label": "Tree" }, svg),
        folded(
          "As a table",
          dataTable(
            ["word", "predicted head", "relation", "true head", "relation"],
            item.words.map((word, i) => [
              `${i + 1} ${word}`,
              name(item.answer[i]),
              relation(i),
              name(item.truth[i]),
              item.relations[i],
            ]),
            "Heads",
          ),
        ),
      ];
    }
    const key = Nash.charts.legend([
      swatch("peer", "predicted and right"),
      swatch("bad", "predicted and wrong", "5 4"),
      swatch("good", "missed: the true head"),
    ]);
    return [
      note("Arcs run from a head to its word. Above the words stands the predicted tree; below them what it missed."),
      browse(section, differing, render, key),
    ];
  }

  function boxes(section) {
    const [w, height] = section.size,
      [ox, oy] = section.origin;
    function picture(item, width) {
      const size = w / width,
        gap = 34 * size; // `size` pixels of the video are one of the screen
      const svg = s("svg", {
        viewBox: `0 ${-24 * size} ${w} ${2 * height + gap + 24 * size}`,
        width: "100%",
        role: "group",
        "aria-label": `Two frames, ${plural(differing(item), "wrong links")}`,
      });
      const text = (x, y, words, cls) => s("text", { x, y, class: cls, style: `font-size:${13 * size}px` }, words);
      const top = (side) => side * (height + gap);
      const centre = (box, side) => [box[0] - ox + box[2] / 2, box[1] - oy + box[3] / 2 + top(side)];
      const names = [];
      [
        ["tracks so far", item.left, item.left_names],
        ["next frame", item.right, item.right_names],
      ].forEach(([title, list, ids], side) => {
        svg.append(
          s("rect", { class: "view", x: 0, y: top(side), width: w, height, rx: 8 * size }),
          text(0, top(side) - 8 * size, title, "head"),
        );
        list.forEach((box, i) => {
          const [x, y] = [box[0] - ox, box[1] - oy + top(side)];
          svg.append(
            Nash.withTip(
              s("rect", {
                class: "box",
                x,
                y,
                width: box[2],
                height: box[3],
                rx: 3 * size,
                tabindex: "0",
                role: "img",
                "aria-label": `object ${ids[i]}`,
                style: `stroke-width:${1.5 * size}`,
              }),
              () => `object ${ids[i]}`,
            ),
          );
          names.push(text(x + 5 * size, y + 16 * size, ids[i]));
        });
      });
      const link = (i, j, kind, dashed) => {
        const [x1, y1] = centre(item.left[i], 0),
          [x2, y2] = centre(item.right[j], 1);
        svg.append(
          s("line", {
            class: `link k-${kind}`,
            x1,
            y1,
            x2,
            y2,
            style: `stroke-width:${2.2 * size}`,
            "stroke-dasharray": dashed ? `${6 * size} ${5 * size}` : null,
          }),
        );
      };
      item.answer.forEach((a, i) => {
        const b = item.truth[i];
        if (a >= 0) link(i, a, a === b ? "peer" : "bad", a !== b);
        if (b >= 0 && a !== b) link(i, b, "good", false);
      });
      svg.append(...names);
      return svg;
    }
    function render(item) {
      const notes = item.answer.flatMap((a, i) => {
        const b = item.truth[i];
        if (a === b) return [];
        const said = a < 0 ? "taken to be out of sight" : `taken for the box of object ${item.right_names[a]}`;
        return [`Object ${item.left_names[i]} was ${said}; ${b < 0 ? "it is out of sight." : "its box is there."}`];
      });
      const partner = (j) => (j < 0 ? "out of sight" : `box of ${item.right_names[j]}`);
      const moved = item.truth.filter((b) => b >= 0).length;
      return h(
        "div",
        { class: "split" },
        h(
          "div",
          { class: "frames" },
          Nash.charts.mount("Two frames", (width) => picture(item, width)),
        ),
        h(
          "div",
          { class: "panel" },
          h("h3", {}, item.name),
          h(
            "p",
            {},
            `${plural(item.left.length, "tracks")}, ${plural(item.right.length, "boxes")}; ${count(moved)} go on.`,
          ),
          notes.length
            ? h(
                "ul",
                {},
                notes.map((note) => h("li", {}, note)),
              )
            : h("p", { class: "muted" }, "Every link is right."),
          folded(
            "As a table",
            dataTable(
              ["object", "linked to", "true link"],
              item.left_names.map((name, i) => [name, partner(item.answer[i]), partner(item.truth[i])]),
              "Links",
            ),
          ),
        ),
      );
    }
    const key = Nash.charts.legend([
      swatch("peer", "linked and right"),
      swatch("bad", "linked and wrong", "5 4"),
      swatch("good", "missed link"),
    ]);
    return [
      note(
        "Each step links the tracks so far to the boxes of the next frame; numbers are the true objects. A line joins " +
          "what the model takes for the same object.",
      ),
      browse(section, differing, render, key),
    ];
  }

  Object.assign(Nash.sections, { sequences, trees, boxes });
})();
