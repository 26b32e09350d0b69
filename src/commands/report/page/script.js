// Source and PTX light up together. The page says everything without it.
"use strict";
(() => {
  const pieces = [...document.querySelectorAll(".piece")];
  const numbers = [...document.querySelectorAll("button.number")];
  const runs = [...document.querySelectorAll(".run")];
  const said = document.getElementById("said");
  const lineOf = (at) => at.split(":")[0];
  let held = null;

  // What is wanted: {at: "13:22"} for a piece, {line: "13"} for a line.
  const fits = (wanted, at) => (wanted.at ? at === wanted.at : lineOf(at) === wanted.line);
  const light = (wanted) => {
    for (const each of [...pieces, ...runs]) {
      each.classList.toggle("lit", wanted !== null && fits(wanted, each.dataset.at));
    }
    for (const each of numbers) {
      const line = wanted && (wanted.line || lineOf(wanted.at));
      each.classList.toggle("lit", line === each.dataset.line);
    }
  };
  const wantedBy = (element) =>
    element.dataset.at ? { at: element.dataset.at } : { line: element.dataset.line };
  const rest = () => light(held);
  const same = (a, b) => a !== null && b !== null && a.at === b.at && a.line === b.line;
  const within = (wanted) => runs.filter((run) => fits(wanted, run.dataset.at));
  const scrollTo = (run) => {
    const entry = run.closest("details");
    entry.open = true;
    const pane = run.closest("pre");
    pane.scrollTop = run.offsetTop - pane.offsetTop - pane.clientHeight / 3;
  };
  const hold = (wanted) => {
    held = same(held, wanted) ? null : wanted;
    for (const each of [...pieces, ...numbers]) {
      each.setAttribute("aria-pressed", String(same(held, wantedBy(each))));
    }
    rest();
    if (held === null) { said.textContent = "Nothing held."; return; }
    const found = within(held);
    const first = found.find((run) => run.closest("details").open) || found[0];
    if (first) { scrollTo(first); }
    said.textContent = found.length + " pieces of PTX.";
  };

  for (const each of [...pieces, ...numbers]) {
    const wanted = wantedBy(each);
    each.addEventListener("pointerenter", () => light(wanted));
    each.addEventListener("pointerleave", rest);
    each.addEventListener("focus", () => light(wanted));
    each.addEventListener("blur", rest);
    each.addEventListener("click", () => hold(wanted));
  }
  for (const run of runs) {
    run.addEventListener("pointerenter", () => light(wantedBy(run)));
    run.addEventListener("pointerleave", rest);
  }

  // The arrow keys walk through the runs of a listing.
  for (const pane of document.querySelectorAll("pre.listing")) {
    const own = [...pane.querySelectorAll(".run")];
    let here = -1;
    const go = (next) => {
      if (own.length === 0) { return; }
      if (own[here]) { own[here].classList.remove("here"); }
      here = Math.max(0, Math.min(own.length - 1, next));
      const run = own[here];
      run.classList.add("here");
      light(wantedBy(run));
      const top = run.offsetTop - pane.offsetTop;
      if (top < pane.scrollTop || top + run.offsetHeight > pane.scrollTop + pane.clientHeight) {
        pane.scrollTop = top - pane.clientHeight / 3;
      }
      const [line, column] = run.dataset.at.split(":");
      const piece = pieces.find((known) => known.dataset.at === run.dataset.at);
      said.textContent =
        "From line " + line + ", column " + column + (piece ? ": " + piece.textContent.trim() : "") + ".";
    };
    pane.addEventListener("keydown", (event) => {
      const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: own.length - 1 }[event.key];
      if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) { return; }
      event.preventDefault();
      go(next);
    });
    pane.addEventListener("blur", () => {
      if (own[here]) { own[here].classList.remove("here"); }
      rest();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && held !== null) { hold(held); }
  });
})();
