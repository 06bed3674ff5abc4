"use strict";
// What all pages share: elements, numbers, the theme, the tooltip. Text only ever enters the page as text nodes.
const Nash = (() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return node;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // A number as it is read: three figures, thousands apart, a proper minus sign.
  function figure(value, percent = false, figures = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (percent) {
      const scaled = 100 * value;
      if (scaled !== 0 && Math.abs(scaled) < 0.001)
        return scaled > 0 ? "<\u202f0.001\u202f%" : ">\u202f\u22120.001\u202f%";
      const text = scaled !== 0 && Math.abs(scaled) < 0.05 ? scaled.toPrecision(2) : scaled.toFixed(1);
      return text.replace("-", "\u2212") + "\u202f%";
    }
    const size = Math.abs(value);
    if (size < 1e-9) return "0";
    if (size >= 1000) return Math.round(value).toLocaleString("en").replace("-", "\u2212");
    if (size < 1e-4) return value.toExponential(1).replace("-", "\u2212").replace("e-", "e\u2212");
    return String(Number(value.toPrecision(figures))).replace("-", "\u2212");
  }
  const percent = (value) => `${figure(100 * value)}\u202f%`;
  const count = (value) => Number(value).toLocaleString("en");
  const plural = (n, unit) => `${count(n)} ${n === 1 ? unit.replace(/(x)es$|([^s])s$/, "$1$2") : unit}`;

  // The theme: the system's until the button is used.
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  function announce() {
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Change to the ${dark() ? "light" : "dark"} theme`);
    }
    listeners.forEach((listener) => listener());
  }
  system.addEventListener("change", announce);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (button) {
      button.addEventListener("click", () => {
        root.dataset.theme = dark() ? "light" : "dark";
        announce();
      });
    }
    announce();
  });

  // One tooltip for the page, beside the pointer or the element that has the focus.
  const tip = document.getElementById("tip");
  function showTip(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8));
    const above = y - box.height - 14;
    tip.style.transform = `translate(${left}px, ${above > 8 ? above : y + 18}px)`;
  }
  const hideTip = () => {
    tip.hidden = true;
  };
  function withTip(node, text) {
    node.addEventListener("pointermove", (event) => showTip(text(), event.clientX, event.clientY));
    node.addEventListener("pointerleave", hideTip);
    node.addEventListener("focus", () => {
      const box = node.getBoundingClientRect();
      showTip(text(), box.left + box.width / 2, box.top);
    });
    node.addEventListener("blur", hideTip);
    return node;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });

  // Buttons of which one is pressed.
  function segments(name, options, chosen, choose) {
    const buttons = options.map(([value, text]) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(value === chosen),
          "data-value": value,
          onclick: () => {
            mark(value);
            choose(value);
          },
        },
        text,
      ),
    );
    function mark(value) {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(options[i][0] === value)));
    }
    const group = h("div", { class: "segments", role: "group", "aria-label": name }, buttons);
    group.mark = mark;
    return group;
  }
  // A list to choose one of several names from; nothing where there is no choice.
  function select(label, names, chosen, choose) {
    if (names.length < 2) return null;
    const list = h(
      "select",
      { onchange: () => choose(Number(list.value)) },
      names.map((name, i) => h("option", { value: i, selected: i === chosen }, name)),
    );
    return h("label", { class: "row" }, h("span", { class: "muted" }, label), list);
  }
  function dataTable(columns, rows, label = "Table") {
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      h(
        "table",
        { class: "plain" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map((column) => h("th", { scope: "col" }, column)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              row.map((cell) => h("td", {}, String(cell))),
            ),
          ),
        ),
      ),
    );
  }
  const note = (text) => h("p", { class: "caption" }, text);
  const facts = (rows) => rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  const folded = (summary, ...content) => h("details", {}, h("summary", {}, summary), content);

  return {
    sections: {}, // renderers of the report, by type: a section to nodes
    percent,
    note,
    facts,
    DATA,
    h,
    s,
    figure,
    count,
    plural,
    showTip,
    hideTip,
    withTip,
    segments,
    select,
    dataTable,
    folded,
    onTheme: (listener) => listeners.push(listener),
  };
})();
