"""What a page looks like: pictures of it, and whether text can be read, by its contrast with what lies behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["keep", "overflow", "unlabelled", "unreachable", "unreadable"]

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
LEAST = 4.5  # WCAG 2.2, success criterion 1.4.3, for text of any size

# Runs in the page. What lies behind a text is found at its middle: the elements there, from the top down, each with the
# colour that it paints, mixed until nothing shines through.
_SCRIPT = """
(least) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  function rgba(colour) {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = "rgba(0,0,0,0)";
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  }
  const over = (top, below) => {
    const a = top[3] + below[3] * (1 - top[3]);
    if (a === 0) return [0, 0, 0, 0];
    return [0, 1, 2].map((i) => (top[i] * top[3] + below[i] * below[3] * (1 - top[3])) / a).concat(a);
  };
  const painted = (node) => {
    const style = getComputedStyle(node);
    if (node.namespaceURI.endsWith("svg")) {
      if (["svg", "g", "text", "line"].includes(node.tagName)) return [0, 0, 0, 0];
      const fill = style.fill === "none" ? [0, 0, 0, 0] : rgba(style.fill);
      return [fill[0], fill[1], fill[2], fill[3] * Number(style.fillOpacity) * Number(style.opacity)];
    }
    return rgba(style.backgroundColor);
  };
  const luminance = (c) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, noscript, option, [hidden]")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (!box.width || x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    const style = getComputedStyle(parent);
    if (style.visibility !== "visible") continue;
    const svg = parent.namespaceURI.endsWith("svg");
    const stack = document.elementsFromPoint(x, y);
    const at = stack.indexOf(parent);
    const own = [];
    for (let up = parent; up; up = up.parentElement) own.push(up);
    let behind = [0, 0, 0, 0];
    for (const one of at >= 0 ? stack.slice(at) : own) {
      behind = over(behind, painted(one));
      if (behind[3] > 0.999) break;
    }
    behind = over(behind, [255, 255, 255, 1]);
    const ink = over(rgba(svg ? style.fill : style.color), behind);
    const [a, b] = [luminance(ink), luminance(behind)].sort((p, q) => q - p);
    const contrast = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (contrast < least) {
      const where = `<${parent.tagName} ${parent.getAttribute("class")}>`;
      found.push(`${contrast.toFixed(2)} ${node.data.trim().slice(0, 40)} ${where}`);
    }
  }
  return { seen, found };
}
"""


def unreadable(page: Any) -> list[str]:
    """Texts of the page with less contrast than 4.5, after checking that there is text at all."""
    size = page.viewport_size
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": min(int(height), 12000)})
    page.wait_for_timeout(150)
    result = page.evaluate(_SCRIPT, LEAST)
    page.set_viewport_size(size)
    assert result["seen"] > 50, "almost no text was looked at"
    return result["found"]


def overflow(page: Any) -> int:
    """How many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


_PICTURES = """
() => [...document.querySelectorAll("svg")]
  .filter((one) => one.getAttribute("aria-hidden") !== "true" && !(one.getAttribute("aria-label") || "").trim())
  .map((one) => one.outerHTML.slice(0, 120))
"""

# A section with a chart has a table too; dots and whiskers are named and numbered in the text beside them.
_TABLES = """
() => [...document.querySelectorAll("main > section")]
  .filter((one) => one.querySelector(".chart svg[aria-label]") && !one.querySelector("table"))
  .map((one) => one.className)
"""

_WIDE = """
() => [...document.querySelectorAll("main table")]
  .filter((one) => one.offsetWidth > 0)
  .filter((one) => {
    const room = one.closest(".scroll");
    const scrolls = room && ["auto", "scroll"].includes(getComputedStyle(room).overflowX);
    return !room || (one.scrollWidth > room.clientWidth && !scrolls);
  })
  .map((one) => one.closest("section").className)
"""


def unlabelled(page: Any) -> list[str]:
    """Drawings without words for those who cannot see them, and sections with a chart and no table."""
    return page.evaluate(_PICTURES) + page.evaluate(_TABLES)


def unreachable(page: Any) -> list[str]:
    """Tables that are wider than their place and do not scroll there."""
    return page.evaluate(_WIDE)


def keep(page: Any, name: str) -> None:
    """A picture of the whole page among the artifacts."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
