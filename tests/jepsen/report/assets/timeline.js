"use strict";
// Draws the operations of the chosen window of time. All words from the run reach the page as text, never as markup.
const run = JSON.parse(document.getElementById("run").textContent);
const [COLUMN, F, KIND, START, END, INVOKED, ENDED, PROCESS, ASKED, ANSWERED, ERROR, FINAL] = Array(12).keys();
const HEAD = 38, GUTTER = 170, HEIGHT = 680, BOX_MIN = 3;
const FAULT_COLOURS = ["#d9534f", "#8e6bbf", "#c58a1b", "#3a8a8a", "#a0527a", "#6b7a2f", "#4f6fb3", "#7f7f7f"];
const KINDS = ["ok", "fail", "info"];
const byId = (id) => document.getElementById(id);
// Asked once a drawing, since the scheme may change from light to dark, and not once an operation.
let colours = new Map();
function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  }
  return colours.get(name);
}
const end = Math.max(run.end, 1);
const faultNames = [...new Set(run.windows.map((each) => each[0]))].sort();
const guilty = new Set(run.violations.flatMap((each) => each.lines));
const shownKinds = new Set(KINDS), shownFs = new Set(run.fs.map((_, place) => place));
const columnWidth = run.columns.length <= 16 ? 92 : 64;
let length = Math.min(end, run.ops.length ? Math.max(500000, Math.round(end * 400 / run.ops.length)) : end);
let start = 0, drawn = [], marks = [], planned = false;

const seconds = (micros) => (micros / 1e6).toFixed(3) + " s";
const faultColour = (f) => FAULT_COLOURS[faultNames.indexOf(f) % FAULT_COLOURS.length];
const isShown = (op) => shownKinds.has(op[KIND]) && shownFs.has(op[F]);
const isGuilty = (op) => guilty.has(op[INVOKED]) || guilty.has(op[ENDED]);

function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.textBaseline = "middle";
  pen.font = "11px system-ui, sans-serif";
  return pen;
}

function write(pen, words, x, y, width) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y - 8, width, 16);
  pen.clip();
  pen.fillText(words, x, y);
  pen.restore();
}

function label(op) {
  const value = op[ANSWERED] !== null && op[ASKED] === null ? op[ANSWERED] : op[ASKED];
  return run.fs[op[F]] + (value === null ? "" : " " + value.slice(0, 24));
}

const yOf = (time) => HEAD + (time - start) * (HEIGHT - HEAD) / length;

function drawChart() {
  const canvas = byId("chart");
  const width = Math.max(byId("scroller").clientWidth || 900, GUTTER + run.columns.length * columnWidth);
  const pen = prepare(canvas, width, HEIGHT);
  drawn = [];
  marks = [];
  drawGaps(pen, width);
  drawTimes(pen, width);
  drawWindows(pen, width);
  drawOps(pen);
  drawActs(pen);
  drawHeads(pen, width);
}

function drawGaps(pen, width) {
  pen.strokeStyle = colour("line");
  for (const [from, to] of run.gaps) {
    const top = Math.max(HEAD, yOf(from)), bottom = Math.min(HEIGHT, yOf(to) + 1);
    for (let y = top; y < bottom; y += 6) {
      pen.beginPath();
      pen.moveTo(GUTTER, y);
      pen.lineTo(width, y + 6);
      pen.stroke();
    }
  }
}

function drawTimes(pen, width) {
  const steps = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 3e8, 6e8, 3.6e9];
  const step = steps.find((each) => length / each <= 14) || 3.6e9;
  for (let time = Math.ceil(start / step) * step; time <= start + length; time += step) {
    const y = yOf(time);
    pen.fillStyle = colour("line");
    pen.fillRect(62, y, width - 62, 1);
    pen.fillStyle = colour("faint");
    pen.fillText((time / 1e6).toFixed(step < 1e4 ? 3 : step < 1e6 ? 2 : 0) + " s", 4, y);
  }
}

function drawWindows(pen, width) {
  const rows = Math.max(1, faultNames.length), bar = Math.min(18, (GUTTER - 66) / rows);
  for (const each of run.windows) {
    const [f, words, from, to] = each, until = to === null ? end : to;
    const top = Math.max(HEAD, yOf(from)), bottom = Math.min(HEIGHT, yOf(until));
    if (bottom < HEAD || top > HEIGHT) continue;
    const height = Math.max(2, bottom - top), x = 64 + faultNames.indexOf(f) * bar;
    pen.fillStyle = faultColour(f);
    pen.globalAlpha = 0.1;
    pen.fillRect(GUTTER, top, width - GUTTER, height);
    pen.globalAlpha = 0.85;
    pen.fillRect(x, top, bar - 3, height);
    pen.globalAlpha = 1;
    const span = words + "\n" + seconds(from) + " to " + (to === null ? "the end: never healed" : seconds(to));
    marks.push([x, top, bar - 3, height, "fault: " + span]);
    if (height < 40 || bar < 12) continue;
    pen.save();
    pen.translate(x + (bar - 3) / 2, top + 6);
    pen.rotate(Math.PI / 2);
    pen.fillStyle = "#ffffff";
    write(pen, words, 0, 0, height - 10);
    pen.restore();
  }
}

function drawOps(pen) {
  const below = new Map(), visible = [];
  for (const op of run.ops) {
    if (op[START] > start + length) break;
    if (op[END] >= start && isShown(op)) visible.push(op);
  }
  for (const op of visible) {
    const x = GUTTER + op[COLUMN] * columnWidth + 3, y = Math.max(HEAD, yOf(op[START]));
    const height = Math.max(BOX_MIN, Math.min(HEIGHT, yOf(op[END])) - y), width = columnWidth - 6;
    pen.fillStyle = colour(op[KIND]);
    pen.fillRect(x, y, width, height);
    if (isGuilty(op)) {
      pen.strokeStyle = colour("bad");
      pen.lineWidth = 3;
      pen.strokeRect(x - 1.5, y - 1.5, width + 3, height + 3);
      pen.lineWidth = 1;
    }
    drawn.push([x, y, width, height, op]);
  }
  pen.fillStyle = colour("text");
  for (let place = drawn.length - 1; place >= 0; place--) {
    const [x, y, width, , op] = drawn[place];
    if ((below.get(x) ?? HEIGHT) - y >= 13) write(pen, label(op), x + 3, y + 7, width - 4);
    below.set(x, y);
  }
}

function drawActs(pen) {
  pen.fillStyle = colour("bad");
  for (const [time, words] of run.acts) {
    const y = yOf(time);
    if (y < HEAD || y > HEIGHT) continue;
    pen.beginPath();
    pen.moveTo(GUTTER - 9, y);
    pen.lineTo(GUTTER - 1, y - 4);
    pen.lineTo(GUTTER - 1, y + 4);
    pen.fill();
    marks.push([GUTTER - 10, y - 5, 10, 10, "nemesis: " + words + "\n" + seconds(time)]);
  }
}

function drawHeads(pen, width) {
  pen.fillStyle = colour("panel");
  pen.fillRect(0, 0, width, HEAD);
  pen.fillStyle = colour("faint");
  write(pen, "faults", 66, 28, GUTTER - 66);
  let before = NaN;
  run.columns.forEach((column, place) => {
    const x = GUTTER + place * columnWidth;
    pen.fillStyle = colour("text");
    if (column.node !== before) {
      write(pen, column.node === null ? "no node" : "node " + column.node, x + 4, 11, columnWidth);
      pen.fillRect(x, 0, 1, HEIGHT);
    }
    before = column.node;
    pen.fillStyle = colour("faint");
    write(pen, "client " + column.client, x + 4, 28, columnWidth - 6);
  });
}

function drawOverview() {
  const canvas = byId("overview"), width = canvas.clientWidth || 900, height = 46;
  const pen = prepare(canvas, width, height);
  canvas.style.width = "100%";
  const scale = width / end, counts = KINDS.map(() => new Uint32Array(Math.ceil(width) + 1));
  for (const op of run.ops) if (isShown(op)) counts[KINDS.indexOf(op[KIND])][Math.floor(op[START] * scale)]++;
  const most = Math.max(1, ...counts.flatMap((row) => [...row]));
  for (const [f, , from, to] of run.windows) {
    pen.fillStyle = faultColour(f);
    pen.globalAlpha = 0.25;
    pen.fillRect(from * scale, 0, Math.max(1, ((to === null ? end : to) - from) * scale), height);
    pen.globalAlpha = 1;
  }
  counts.forEach((row, kind) => {
    pen.fillStyle = colour(KINDS[kind]);
    row.forEach((count, x) => {
      if (count) pen.fillRect(x, height - 4 - 30 * count / most, 1, 4 + 30 * count / most);
    });
  });
  pen.fillStyle = colour("bad");
  for (const each of run.violations) for (const time of each.times) pen.fillRect(time * scale - 1, 0, 3, 10);
  pen.strokeStyle = colour("text");
  pen.strokeRect(start * scale + 0.5, 0.5, Math.max(3, length * scale) - 1, height - 1);
}

function draw() {
  planned = false;
  colours = new Map();
  byId("start").max = Math.max(0, Math.ceil(end - length));
  byId("start").value = start;
  byId("range").textContent = seconds(start) + " to " + seconds(Math.min(end, start + length));
  drawOverview();
  drawChart();
}

function plan() {
  if (!planned) requestAnimationFrame(draw);
  planned = true;
}

function move(to, newLength) {
  length = Math.min(end, Math.max(2000, newLength ?? length));
  start = Math.round(Math.min(Math.max(0, end - length), Math.max(0, to)));
  plan();
}

function describe(op) {
  const lines = ["process " + op[PROCESS] + ", " + run.fs[op[F]] + ": " + op[KIND] + (op[FINAL] ? ", final" : "")];
  if (op[ASKED] !== null) lines.push("asked: " + op[ASKED]);
  if (op[ANSWERED] !== null) lines.push("answered: " + op[ANSWERED]);
  if (op[ERROR] !== null) lines.push("error: " + op[ERROR]);
  lines.push(seconds(op[START]) + " to " + (op[ENDED] < 0 ? "no end" : seconds(op[END]))
    + " (" + ((op[END] - op[START]) / 1000).toFixed(1) + " ms)");
  lines.push("lines of the history: " + op[INVOKED] + (op[ENDED] < 0 ? "" : " and " + op[ENDED]));
  for (const each of run.violations) {
    if (each.lines.includes(op[INVOKED]) || each.lines.includes(op[ENDED])) {
      lines.push("VIOLATION " + each.checker + ", " + each.kind + ": " + each.text);
    }
  }
  return lines.join("\n");
}

function under(event) {
  const box = byId("chart").getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const inside = ([left, top, width, height]) =>
    x >= left && x <= left + width && y >= top - 1 && y <= top + height + 1;
  const mark = marks.findLast(inside), op = drawn.findLast(inside);
  return op ? describe(op[4]) : mark ? mark[4] : null;
}

function choices(select, first, entries) {
  select.append(new Option(first, ""));
  entries.forEach(([words, value]) => select.append(new Option(words, value)));
  select.disabled = entries.length === 0;
}

function filter(words, swatch, set, value) {
  const box = document.createElement("input"), holder = document.createElement("label");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { set[box.checked ? "add" : "delete"](value); plan(); });
  holder.append(box);
  if (swatch) {
    const square = document.createElement("span");
    square.className = "swatch";
    square.style.background = "var(--" + swatch + ")";
    holder.append(square);
  }
  holder.append(words);
  byId("filters").append(holder);
}

function setUp() {
  const lengths = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300].map((each) => each * 1e6).filter((each) => each < end);
  choices(byId("length"), "choose", [...lengths.map((each) => [each / 1e6 + " s", each]), ["all", end]]);
  choices(byId("faults"), "go to", run.windows.map((each) => [seconds(each[2]) + " " + each[1], each[2]]));
  choices(byId("violations"), run.violations.length ? "go to" : "none", run.violations.filter((each) => each.times.length)
    .map((each) => [each.kind + " " + each.text.slice(0, 60), Math.max(...each.times)]));
  KINDS.forEach((kind) => filter(kind, kind, shownKinds, kind));
  run.fs.forEach((f, place) => filter(f, null, shownFs, place));
  byId("length").addEventListener("change", (event) => event.target.value && move(start, Number(event.target.value)));
  byId("start").addEventListener("input", (event) => move(Number(event.target.value)));
  for (const id of ["faults", "violations"]) {
    byId(id).addEventListener("change", (event) => {
      if (event.target.value !== "") move(Number(event.target.value) - length / 3);
    });
  }
  const jump = (event) => {
    const box = byId("overview").getBoundingClientRect();
    if (event.buttons) move((event.clientX - box.left) / box.width * end - length / 2);
  };
  byId("overview").addEventListener("pointerdown", jump);
  byId("overview").addEventListener("pointermove", jump);
  setUpChart();
  window.addEventListener("resize", plan);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", plan);
  const first = run.violations.flatMap((each) => each.times);
  move(first.length ? Math.max(0, Math.min(...first) - length / 3) : 0);
}

function setUpChart() {
  const chart = byId("chart"), hint = byId("hint");
  chart.addEventListener("wheel", (event) => {
    if (event.shiftKey) return;
    event.preventDefault();
    if (!event.ctrlKey) return move(start + Math.sign(event.deltaY) * length * 0.12);
    const share = Math.max(0, event.offsetY - HEAD) / (HEIGHT - HEAD), middle = start + share * length;
    const longer = Math.min(end, Math.max(2000, length * (event.deltaY > 0 ? 1.25 : 0.8)));
    move(middle - share * longer, longer);
  }, { passive: false });
  chart.addEventListener("mousemove", (event) => {
    const words = under(event);
    hint.hidden = words === null;
    if (words === null) return;
    hint.textContent = words;
    hint.style.left = Math.min(event.clientX + 14, Math.max(0, window.innerWidth - hint.offsetWidth - 8)) + "px";
    hint.style.top = Math.min(event.clientY + 14, Math.max(0, window.innerHeight - hint.offsetHeight - 8)) + "px";
  });
  chart.addEventListener("mouseleave", () => { hint.hidden = true; });
  chart.addEventListener("click", (event) => {
    const words = under(event);
    if (words === null) return;
    byId("kept").hidden = false;
    byId("kept").textContent = words;
  });
}

setUp();
