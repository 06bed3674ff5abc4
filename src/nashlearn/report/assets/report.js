// The report: a summary in words, then a card for each section, drawn by the renderer of its type.
(() => {
  const { DATA, h, figure, sections } = Nash;
  const el = (id) => document.getElementById(id);

  el("kind").textContent = `${DATA.kind} · ${DATA.model}`;
  el("title").textContent = DATA.title;
  el("headline").textContent = DATA.headline;
  el("words").append(...DATA.words.map((text) => h("p", {}, text)));
  el("cards").append(
    ...DATA.cards.map((card) =>
      h(
        "div",
        { class: "card stat" },
        h("span", { class: "muted" }, card.name),
        h("b", {}, card.value),
        h("span", { class: "muted" }, card.note),
      ),
    ),
  );
  DATA.sections.forEach((section, i) => {
    const id = `${section.type}-${i}`;
    el("tabs").append(h("a", { href: `#${id}` }, section.title));
    el("main").append(
      h(
        "section",
        { id, class: `card ${section.type}`, "aria-labelledby": `${id}-title` },
        h("h2", { id: `${id}-title` }, section.title),
        sections[section.type](section),
      ),
    );
  });
  el("foot").append(
    h(
      "dl",
      { class: "facts" },
      DATA.facts.flatMap(([name, value]) => [
        h("dt", {}, name),
        h("dd", {}, typeof value === "number" ? figure(value, false, 6) : String(value)),
      ]),
    ),
    h("p", {}, `Made by nashlearn ${DATA.version}. This page loads nothing from elsewhere.`),
  );
})();
