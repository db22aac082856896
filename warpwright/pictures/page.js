// The script of a picture's page. It knows views, steps (groups with data-step), rows (cells with
// data-row, and the rows of the table), and nothing of what they show. State is kept in the
// address: #view=ID&step=N&row=N, all but the view counted from 0 as in the picture.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);
  const root = document.documentElement;
  const sections = all("section.view");
  if (sections.length === 0) return;

  // ---- What the page holds --------------------------------------------------------------------

  function viewOf(section) {
    const svg = one(".picture > svg", section);
    const groups = new Map();  // step -> its groups
    const cells = new Map();   // row -> its cells
    if (svg) {
      for (const group of all("[data-step]", svg)) put(groups, group.dataset.step, group);
      for (const cell of all("[data-row]", svg)) put(cells, cell.dataset.row, cell);
    }
    const steps = [...groups.keys()].sort((a, b) => a - b);
    const view = {
      id: section.dataset.id, section, svg, groups, steps, cells,
      picture: one(".picture", section), readout: one(".readout", section),
      rows: all("tbody tr", section), heads: all("thead th", section).map(th => th.textContent),
      step: 0, row: -1, zoom: 0,
    };
    const slider = one("input.step", section);
    if (slider) {
      slider.max = Math.max(0, steps.length - 1);
      slider.parentElement.hidden = steps.length < 2;
    }
    return view;
  }

  function put(map, key, element) {
    const number = Number(key);
    if (!Number.isInteger(number) || number < 0) return;
    if (!map.has(number)) map.set(number, []);
    map.get(number).push(element);
  }

  const views = sections.map(viewOf);
  let shown = views[0];

  // ---- State in the address -------------------------------------------------------------------

  function fragment() {
    const parts = [`view=${encodeURIComponent(shown.id)}`];
    if (shown.steps.length > 1) parts.push(`step=${shown.steps[shown.step]}`);
    if (shown.row >= 0) parts.push(`row=${shown.row}`);
    return `#${parts.join("&")}`;
  }

  // Browsers limit how often the address may change: it follows after a moment.
  let writing = 0;
  function remember(asNew = false) {
    clearTimeout(writing);
    const write = () => {
      if (location.hash === fragment()) return;
      try {
        history[asNew ? "pushState" : "replaceState"](null, "", fragment());
      } catch {
        // The address of this page may not change (a frame, a limit): the page works all the same.
      }
    };
    if (asNew) write();
    else writing = setTimeout(write, 120);
  }

  function whole(text) {
    return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : -1;
  }

  function restore() {
    clearTimeout(writing);
    const asked = new URLSearchParams(location.hash.slice(1));
    const view = views.find(each => each.id === asked.get("view")) ?? views[0];
    show(view);
    const step = whole(asked.get("step"));
    if (step >= 0 && view.steps.length > 0) {
      const nearest = view.steps.findLastIndex(each => each <= step);
      goTo(Math.max(0, nearest), false);
    }
    const row = whole(asked.get("row"));
    choose(row >= 0 && row < view.rows.length ? row : rowOfStep(view.step), true, row >= 0);
    say();
  }

  // ---- Views ----------------------------------------------------------------------------------

  function show(view) {
    stop();
    shown = view;
    for (const each of views) each.section.hidden = each !== view;
    const at = views.indexOf(view);
    for (const link of all("nav a")) {
      if (link.dataset.id === view.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    const select = one("nav select");
    if (select) select.selectedIndex = at;
    for (const button of all("nav [data-move]")) {
      const to = at + Number(button.dataset.move);
      button.disabled = to < 0 || to >= views.length;
    }
    scale(view);
    draw();
  }

  function moveView(by) {
    const to = views[views.indexOf(shown) + by];
    if (!to) return;
    show(to);
    if (to.row < 0) choose(rowOfStep(to.step), true, false);
    say();
    remember(true);
  }

  // ---- Steps ----------------------------------------------------------------------------------

  // Draws the step and the row of the view that is shown.
  function draw() {
    const now = shown.steps[shown.step];
    for (const [step, groups] of shown.groups) {
      for (const group of groups) group.style.display = step === now ? "inline" : "none";
    }
    const slider = one("input.step", shown.section);
    if (slider) {
      slider.value = shown.step;
      slider.setAttribute("aria-valuetext", `step ${shown.step + 1} of ${shown.steps.length}`);
      one(".count", shown.section).textContent = `${shown.step + 1} / ${shown.steps.length}`;
      for (const button of all("[data-step-by]", shown.section)) {
        button.disabled = Number(button.dataset.stepBy) < 0 ? shown.step === 0
                                                            : shown.step === shown.steps.length - 1;
      }
    }
  }

  // The row that a step is about: that of its groups.
  function rowOfStep(step) {
    for (const group of shown.groups.get(shown.steps[step]) ?? []) {
      const row = whole(group.dataset.row ?? null);
      if (row >= 0) return row;
    }
    return -1;
  }

  function goTo(step, bySomebody = true) {
    if (shown.steps.length === 0) return;
    shown.step = Math.max(0, Math.min(step, shown.steps.length - 1));
    draw();
    const row = rowOfStep(shown.step);
    if (row >= 0) choose(row, true, false);
    if (!bySomebody) return;
    say();
    remember();
  }

  let playing = 0;
  function play() {
    if (playing) {
      stop();
      return;
    }
    if (shown.step === shown.steps.length - 1) goTo(0);
    playing = setInterval(() => {
      goTo(shown.step + 1);
      if (shown.step === shown.steps.length - 1) stop();
    }, 900);
    label(true);
  }

  function stop() {
    if (!playing) return;
    clearInterval(playing);
    playing = 0;
    label(false);
  }

  function label(isPlaying) {
    const button = one("button.play", shown.section);
    button.textContent = isPlaying ? "Pause" : "Play";
  }

  // ---- Rows -----------------------------------------------------------------------------------

  function light(row, name, on) {
    for (const cell of shown.cells.get(row) ?? []) cell.classList.toggle(name, on);
    shown.rows[row]?.classList.toggle(name, on);
  }

  // Chooses a row (-1: none): its cells and its line of the table light up. `quietly`: nothing is
  // said and the address stays. A row whose cells stand only in other steps brings its step.
  function choose(row, quietly = false, mayStep = true) {
    if (shown.row >= 0) {
      light(shown.row, "chosen", false);
      shown.rows[shown.row]?.removeAttribute("aria-current");
    }
    shown.row = row;
    if (row >= 0) {
      light(row, "chosen", true);
      const line = shown.rows[row];
      if (line) {
        line.setAttribute("aria-current", "true");
        line.hidden = false;
        reveal(line);
      }
      if (mayStep) stepOfRow(row);
      const cell = (shown.cells.get(row) ?? []).find(each => each.getClientRects().length > 0);
      if (cell) bring(cell);
    }
    if (quietly) return;
    say();
    remember();
  }

  function stepOfRow(row) {
    const steps = new Set();
    for (const cell of shown.cells.get(row) ?? []) {
      const group = cell.closest("[data-step]");
      if (!group) return;  // seen in every step
      steps.add(Number(group.dataset.step));
    }
    if (steps.size === 0 || steps.has(shown.steps[shown.step])) return;
    shown.step = shown.steps.indexOf(Math.min(...steps));
    draw();
  }

  // The line of the table comes into its frame; the page itself does not move.
  function reveal(line) {
    const frame = line.closest(".rows");
    const head = one("thead", frame)?.offsetHeight ?? 0;
    const top = line.offsetTop - head;
    const bottom = line.offsetTop + line.offsetHeight;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (bottom > frame.scrollTop + frame.clientHeight) {
      frame.scrollTop = bottom - frame.clientHeight;
    }
  }

  // A cell comes into the frame of the picture, likewise.
  function bring(cell) {
    const frame = shown.picture.getBoundingClientRect();
    const box = cell.getBoundingClientRect();
    const space = 24;
    if (box.width < frame.width) {
      if (box.left < frame.left) shown.picture.scrollLeft += box.left - frame.left - space;
      else if (box.right > frame.right) shown.picture.scrollLeft += box.right - frame.right + space;
    }
    if (box.height < frame.height) {
      if (box.top < frame.top) shown.picture.scrollTop += box.top - frame.top - space;
      else if (box.bottom > frame.bottom) {
        shown.picture.scrollTop += box.bottom - frame.bottom + space;
      }
    }
  }

  function moveRow(by) {
    const rows = shown.rows.map((line, row) => row).filter(row => !shown.rows[row].hidden);
    if (rows.length === 0) return;
    const at = rows.indexOf(shown.row);
    choose(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1)
                       : Math.max(0, Math.min(at + by, rows.length - 1))]);
  }

  // From the chosen cell to the nearest one in a direction of the picture.
  function moveCell(dx, dy) {
    const seen = [];
    for (const [row, cells] of shown.cells) {
      for (const cell of cells) {
        const box = cell.getBoundingClientRect();
        if (box.width === 0 && box.height === 0) continue;
        seen.push({row, x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2});
      }
    }
    if (seen.length === 0) return;
    const from = seen.find(each => each.row === shown.row);
    if (!from) {
      choose(seen[0].row);
      return;
    }
    let best = null;
    for (const each of seen) {
      const along = (each.x - from.x) * dx + (each.y - from.y) * dy;
      const across = Math.abs((each.x - from.x) * dy) + Math.abs((each.y - from.y) * dx);
      if (along < 1 || each.row === shown.row) continue;
      const far = along + 3 * across;
      if (best === null || far < best.far) best = {far, row: each.row};
    }
    if (best) choose(best.row);
  }

  // ---- What is said ---------------------------------------------------------------------------

  function textOfRow(row) {
    const cells = all("td", shown.rows[row]).map(td => td.textContent);
    return cells.map((cell, i) => shown.heads[i] ? `${shown.heads[i]}: ${cell}` : cell)
                .filter((text, i) => cells[i] !== "").join(" · ");
  }

  // The line below the picture; screen readers say it when it changes.
  function say(hovered = -1) {
    const parts = [];
    if (shown.steps.length > 1) parts.push(`Step ${shown.step + 1} of ${shown.steps.length}.`);
    const row = hovered >= 0 ? hovered : shown.row;
    if (row >= 0 && shown.rows[row]) parts.push(textOfRow(row));
    const text = parts.join(" ") || shown.readout.dataset.hint;
    if (shown.readout.textContent !== text) shown.readout.textContent = text;
  }

  // ---- The table's search ---------------------------------------------------------------------

  function search(view) {
    const words = one("input.search", view.section).value.toLowerCase().split(/\s+/)
                      .filter(word => word !== "");
    let found = 0;
    for (const line of view.rows) {
      const text = line.textContent.toLowerCase();
      line.hidden = !words.every(word => text.includes(word));
      if (!line.hidden) ++found;
    }
    one(".found", view.section).textContent =
        words.length === 0 ? "" : `${found} of ${view.rows.length} rows`;
  }

  // ---- Size -----------------------------------------------------------------------------------

  // Zoom 0 is as wide as the page, but not so small that words are not read.
  const least = 0.62;
  function scale(view) {
    if (!view.svg) return;
    const box = view.svg.viewBox.baseVal;
    if (!box || box.width === 0) return;
    const room = view.picture.clientWidth;
    const fit = room > 0 ? Math.max(least, Math.min(1, room / box.width)) : 1;
    const factor = view.zoom === 0 ? fit : view.zoom;
    view.svg.style.width = `${box.width * factor}px`;
    view.svg.style.height = `${box.height * factor}px`;
    view.factor = factor;
  }

  function zoom(by) {
    shown.zoom = by === 0 ? 0 : Math.max(0.25, Math.min(6, (shown.factor ?? 1) * by));
    scale(shown);
  }

  // ---- Files ----------------------------------------------------------------------------------

  function save(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], {type}));
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  function nameOf(view, ending) {
    const safe = text => text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "") || "view";
    const parts = [safe(document.body.dataset.kind), safe(view.id)];
    if (view.steps.length > 1) parts.push(`step-${view.steps[view.step]}`);
    return `${parts.join("-")}.${ending}`;
  }

  // The picture as it is seen, without the steps that are not, with the colours' style as in a file.
  function svgText(view) {
    const copy = view.svg.cloneNode(true);
    copy.removeAttribute("style");
    for (const group of all("[data-step]", copy)) {
      if (Number(group.dataset.step) !== view.steps[view.step]) group.remove();
      else {
        group.removeAttribute("style");
        group.removeAttribute("display");
      }
    }
    for (const cell of all(".chosen, .pointed", copy)) {
      cell.classList.remove("chosen", "pointed");
      if (cell.classList.length === 0) cell.removeAttribute("class");
    }
    copy.removeAttribute("role");
    copy.removeAttribute("aria-labelledby");
    const style = document.createElementNS(copy.namespaceURI, "style");
    style.textContent = one("#palette").textContent;
    copy.prepend(style);
    return `${new XMLSerializer().serializeToString(copy)}\n`;
  }

  // The view as `--json` writes it: its table, and the values behind it.
  function dataText(view) {
    const data = one("script.data", view.section);
    const values = {
      id: view.id,
      title: one("h2", view.section).textContent,
      header: view.heads,
      rows: view.rows.map(line => all("td", line).map(td => td.textContent)),
      data: data ? JSON.parse(data.textContent) : null,
    };
    return `${JSON.stringify(values, null, 1)}\n`;
  }

  // ---- Light and dark -------------------------------------------------------------------------

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark"
                              : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function turnTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    themeWord();
  }

  function themeWord() {
    one("button.theme").textContent = isDark() ? "Light" : "Dark";
  }

  // ---- What people do -------------------------------------------------------------------------

  const actions = {
    "play": play,
    "theme": turnTheme,
    "keys": () => one("dialog").showModal(),
    "save-svg": () => save(nameOf(shown, "svg"), "image/svg+xml", svgText(shown)),
    "save-data": () => save(nameOf(shown, "json"), "application/json", dataText(shown)),
    "copy": async button => {
      const range = document.createRange();
      range.selectNodeContents(one(".command code"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      try {
        await navigator.clipboard.writeText(one(".command code").textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Marked";  // the browser does not let a file's page write there
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  };

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button) {
      const {action, move, stepBy, zoomBy} = button.dataset;
      if (action) actions[action](button);
      else if (move) moveView(Number(move));
      else if (stepBy) {
        stop();
        goTo(shown.step + Number(stepBy));
      } else if (zoomBy) zoom(Number(zoomBy));
      return;
    }
    const link = event.target.closest("a");
    if (link?.matches(".skip")) {  // the address is the page's state: it stays
      event.preventDefault();
      one("main").focus();
    }
    const to = views.findIndex(view => view.id === link?.dataset.id);
    if (to >= 0 && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      moveView(to - views.indexOf(shown));
    }
    if (link) return;
    const cell = event.target.closest(".picture [data-row]");
    const line = event.target.closest(".rows tbody tr");
    const row = cell ? whole(cell.dataset.row) : line ? shown.rows.indexOf(line) : -1;
    if (row < 0 || (line && String(getSelection()) !== "")) return;
    stop();
    choose(row === shown.row ? -1 : row);
  });

  let pointed = -1;
  function point(row) {
    if (row === pointed) return;
    if (pointed >= 0) light(pointed, "pointed", false);
    pointed = row;
    if (row >= 0) light(row, "pointed", true);
    say(row);
  }
  document.addEventListener("pointerover", event => {
    if (event.pointerType === "touch") return;
    const cell = event.target.closest(".picture [data-row]");
    const line = event.target.closest(".rows tbody tr");
    point(cell ? whole(cell.dataset.row) : line ? shown.rows.indexOf(line) : -1);
  });

  document.addEventListener("input", event => {
    if (event.target.matches("input.step")) {
      stop();
      goTo(Number(event.target.value));
    } else if (event.target.matches("input.search")) {
      search(shown);
    }
  });

  document.addEventListener("change", event => {
    if (event.target.matches("nav select")) {
      moveView(event.target.selectedIndex - views.indexOf(shown));
    }
  });

  const keys = {
    "n": () => moveView(1),
    "p": () => moveView(-1),
    "j": () => moveRow(1),
    "k": () => moveRow(-1),
    "s": () => { if (shown.steps.length > 1) play(); },
    "d": turnTheme,
    "+": () => zoom(1.25),
    "-": () => zoom(0.8),
    "0": () => zoom(0),
    "/": () => one("input.search", shown.section)?.focus(),
    "?": () => one("dialog").showModal(),
    "Escape": () => choose(-1),
  };

  // Arrows: in the table rows, in the picture cells; left and right are steps where there are any.
  function arrow(key, target) {
    const across = key === "ArrowLeft" || key === "ArrowRight";
    const by = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
    if (across && shown.steps.length > 1) {
      stop();
      goTo(shown.step + by);
      return true;
    }
    if (target.closest(".rows")) {
      if (across) return false;
      moveRow(by);
      return true;
    }
    if (target.closest(".picture") && shown.cells.size > 0) {
      moveCell(across ? by : 0, across ? 0 : by);
      return true;
    }
    return false;
  }

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog").open) return;
    if (event.target.matches("input.search")) {
      if (event.key !== "Escape") return;
      event.target.value = "";
      search(shown);
      event.target.blur();
      event.preventDefault();
      return;
    }
    if (event.target.matches("input, select, textarea") && event.key.length > 1) return;
    let taken = true;
    if (event.key.startsWith("Arrow")) taken = arrow(event.key, event.target);
    else if (event.key === "Home" && shown.steps.length > 1) goTo(0);
    else if (event.key === "End" && shown.steps.length > 1) goTo(shown.steps.length - 1);
    else if (keys[event.key]) keys[event.key]();
    else taken = false;
    if (taken) event.preventDefault();
  });

  addEventListener("hashchange", restore);
  addEventListener("resize", () => scale(shown));
  addEventListener("beforeprint", () => views.forEach(view => { view.section.hidden = false; }));
  addEventListener("afterprint", () => show(shown));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeWord);

  root.classList.add("js");
  themeWord();
  restore();
})();
