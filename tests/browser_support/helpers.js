// What the browser tests ask a report with.
"use strict";
window.lit = (selector = ".piece, .run") =>
  [...document.querySelectorAll(selector)].filter((each) => each.classList.contains("lit"));
window.lightAll = () => document.querySelectorAll(".piece, .run").forEach((each) => each.classList.add("lit"));

window.centre = (element) => {
  element.scrollIntoView({ block: "center", behavior: "instant" });
  const box = element.getClientRects()[0];
  return [box.left + box.width / 2, box.top + box.height / 2];
};
// The same for what lies in a pane that scrolls: a place near its start.
window.reveal = (element) => {
  element.scrollIntoView({ block: "start", behavior: "instant" });
  window.scrollBy({ top: -200, behavior: "instant" });
  const box = element.getBoundingClientRect();
  return [box.left + 30, box.top + 8];
};
// Which run of its listing the arrow keys have come to.
window.walkedTo = () => {
  const run = document.querySelector(".here");
  return [...run.parentElement.children].indexOf(run);
};
window.firstLitIsSeen = () =>
  lit(".run").some((run) => {
    const pane = run.closest("pre").getBoundingClientRect();
    const box = run.getBoundingClientRect();
    return box.top < pane.bottom && box.bottom > pane.top;
  });

// Relative luminance and contrast, as WCAG 2 has them.
const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const parse = (color) => {
  const parts = color.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
};
const luminance = ([r, g, b]) =>
  0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const color = parse(getComputedStyle(each).backgroundColor);
    if (color.alpha === 1) { return color.rgb; }
  }
  return [255, 255, 255];
};
const visible = (element) => element.getClientRects().length > 0;

// Text that cannot be read: less contrast than 4.5 to 1 with what is behind it.
window.pale = () => {
  const found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const own = node.parentElement;
    if (!node.textContent.trim() || own.closest("svg, script, style") || !visible(own)) { continue; }
    const style = getComputedStyle(own);
    const value = contrast(parse(style.color).rgb, behind(own));
    if (value < 4.5) { found.add(own.tagName + "." + own.className + " " + value.toFixed(2)); }
  }
  return [...found];
};

// The same in pictures: words on the page, and lanes on their shapes; shapes themselves need 1.2 to 1 to be told apart
// from the panel, and those that say something 3 to 1.
window.paleShapes = () => {
  const found = new Set();
  for (const text of document.querySelectorAll("svg text")) {
    if (!visible(text) || text.classList.contains("lane")) { continue; }
    const value = contrast(parse(getComputedStyle(text).fill).rgb, behind(text.closest("figure")));
    if (value < 4.5) { found.add("text." + text.getAttribute("class") + " " + value.toFixed(2)); }
  }
  for (const lane of document.querySelectorAll("svg text.lane")) {
    const shape = lane.previousElementSibling;
    if (!visible(lane) || !shape) { continue; }
    const value = contrast(parse(getComputedStyle(lane).fill).rgb, parse(getComputedStyle(shape).fill).rgb);
    if (value < 4.5) { found.add("lane on " + shape.getAttribute("class") + " " + value.toFixed(2)); }
  }
  const needs = { used: 3, conflict: 3, wasted: 1.5, empty: 1.1 };
  for (const [name, least] of Object.entries(needs)) {
    for (const shape of document.querySelectorAll("svg rect." + name)) {
      if (!visible(shape)) { continue; }
      const value = contrast(parse(getComputedStyle(shape).fill).rgb, behind(shape.closest("figure")));
      if (value < least) { found.add(name + " " + value.toFixed(2)); }
    }
  }
  return [...found];
};

// What can be focused and has no name.
window.unnamed = () =>
  [...document.querySelectorAll("a, button, summary, [tabindex]")]
    .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()))
    .map((each) => each.outerHTML.slice(0, 80));
window.brokenLinks = () =>
  [...document.querySelectorAll("a")]
    .map((each) => each.getAttribute("href"))
    .filter((link) => !document.getElementById(link.slice(1)));

// What sticks out of the window, unless it lies in something that scrolls.
window.outside = () => {
  const found = new Set();
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    if (!visible(element) || element.matches(".skip") || element.closest("svg") !== null) { continue; }
    const scrolls = element.closest("pre, .source, .scroll, .drawing");
    if (scrolls !== null && scrolls !== element) { continue; }
    const box = element.getBoundingClientRect();
    if (box.right > innerWidth + 1 || box.left < -1) { found.add(element.tagName + "." + element.className); }
  }
  return [...found];
};

const meet = (one, other) =>
  Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1.5 &&
  Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1.5;

// Blocks that lie on each other, and words of a picture that do.
window.overlaps = () => {
  const found = new Set();
  const check = (all, what) => {
    const boxes = all.filter(visible).map((each) => each.getBoundingClientRect());
    for (let one = 0; one < boxes.length; one++) {
      for (let other = one + 1; other < boxes.length; other++) {
        if (meet(boxes[one], boxes[other])) { found.add(what + ": " + all[one].textContent.slice(0, 40)); }
      }
    }
  };
  check([...document.querySelectorAll("main > section")], "sections");
  check([...document.querySelectorAll(".card")], "cards");
  check([...document.querySelectorAll("figure")], "figures");
  for (const figure of document.querySelectorAll("figure")) {
    check([...figure.querySelectorAll("figcaption, .drawing, .verdict")].filter((each) => !each.parentElement.closest("figcaption")), "figure");
  }
  for (const svg of document.querySelectorAll("svg")) {
    check([...svg.querySelectorAll("text:not(.lane-name)")], svg.getAttribute("class"));
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (visible(text) && (box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2)) {
        found.add(svg.getAttribute("class") + " cuts " + text.textContent);
      }
    }
  }
  return [...found];
};
true;
