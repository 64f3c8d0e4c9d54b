// The lanes: drawn anew, as SVG, for the part of the call that is in view.

const tops = {};
let rows = 0;
const SOUND = 40, HEAD = 34;
for (const [lane, count] of session.lanes) { tops[lane] = rows; rows += count; }
const waits = packed(session.waits);
const waitRows = Math.max(0, ...waits.map(([, row]) => row + 1));
const bottom = HEAD + SOUND + rows * ROW, height = bottom + waitRows * ROW + 22;
const rowTop = (lane, row) => HEAD + SOUND + (tops[lane] + row) * ROW;
let svg, head, width = 0;

function packed(spans) {  // a row for each wait, so that none lies over another
  const free = [];
  return spans.map((wait) => {
    let row = free.findIndex((until) => until <= wait[0]);
    if (row < 0) row = free.length;
    free[row] = Math.max(wait[1], wait[0] + end * 0.14);
    return [wait, row];
  });
}

const x = (us) => LEFT + (us - from) / (to - from) * (width - LEFT - RIGHT);
const at = (px) => from + (px - LEFT) / (width - LEFT - RIGHT) * (to - from);

function view(first, last) {
  const length = Math.min(Math.max(last - first, SHORTEST), end);
  from = Math.min(Math.max(first, 0), Math.max(end - length, 0));
  to = Math.max(from + length, from + 1);
  paint();
}

function zoom(factor, around = now >= from && now <= to ? now : (from + to) / 2) {
  const length = Math.min(Math.max((to - from) * factor, SHORTEST), end);
  const share = (around - from) / (to - from);
  view(around - share * length, around + (1 - share) * length);
}

function paint() {
  width = lanes.getBoundingClientRect().width || 900;
  lanes.dataset.from = Math.round(from);
  lanes.dataset.to = Math.round(to);
  const fresh = document.createElementNS(SVG, "svg");
  fresh.setAttribute("height", height);
  fresh.setAttribute("viewBox", `0 0 ${width} ${height}`);
  fresh.setAttribute("aria-hidden", "true");
  patterns(fresh);
  const clip = draw(draw(fresh, "defs", {}), "clipPath", { id: "inside" });
  draw(clip, "rect", { x: LEFT, y: 0, width: Math.max(width - LEFT - RIGHT, 1), height });
  backdrop(fresh);
  const inside = draw(fresh, "g", { "clip-path": "url(#inside)" });
  wave(inside);
  lines(inside);
  bars(inside);
  marks(inside);
  waiting(inside);
  flags(inside);
  head = draw(fresh, "g", {});
  draw(head, "line", { class: "playhead", y1: HEAD - 8, y2: bottom + waitRows * ROW });
  draw(head, "path", { class: "knob", d: `M-6,${HEAD - 16} h12 v6 l-6,6 l-6,-6 z` });
  if (svg) svg.remove();
  lanes.append(svg = fresh);
  place();
}

function place() {
  if (!head) return;
  head.setAttribute("transform", `translate(${x(now)},0)`);
  head.setAttribute("visibility", now >= from - 1 && now <= to + 1 ? "visible" : "hidden");
}

function patterns(parent) {
  const defs = draw(parent, "defs", {});
  for (const [name, turn, line] of [["tail", 45, "effect"], ["unheard", -45, "hatch"]]) {
    const box = { id: `hatch-${name}`, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` };
    const pattern = draw(defs, "pattern", box);
    draw(pattern, "rect", { width: 7, height: 7, style: `fill:var(--${name})` });
    draw(pattern, "line", { y2: 7, style: `stroke:var(--${line})`, "stroke-width": 2.4 });
  }
}
const fill = (look) => LOOKS[look][1] ? `fill:url(#hatch-${LOOKS[look][0]})` : `fill:var(--${LOOKS[look][0]})`;

function step() {  // the shortest round distance between grid lines that leaves room for their numbers
  const least = (to - from) / Math.max((width - LEFT - RIGHT) / 90, 1);
  for (let ten = 1000; ; ten *= 10) for (const of of [1, 2, 5]) if (ten * of >= least) return ten * of;
}

function backdrop(parent) {
  let band = 0;
  for (const [lane, count] of [["sound", 0], ...session.lanes]) {
    const top = count ? rowTop(lane, 0) : HEAD, tall = count ? count * ROW : SOUND;
    if (band++ % 2 === 0) draw(parent, "rect", { class: "band", x: 0, y: top, width, height: tall });
    draw(parent, "text", { class: "name", x: 8, y: top + tall / 2 + 4 }, lane);
  }
  if (waitRows) draw(parent, "text", { class: "name", x: 8, y: bottom + waitRows * ROW / 2 + 4 }, "waits");
  const gap = step(), digits = Math.max(0, 6 - Math.floor(Math.log10(gap)));
  for (let us = Math.ceil(from / gap) * gap; us <= to; us += gap) {
    draw(parent, "line", { class: "grid", x1: x(us), x2: x(us), y1: HEAD, y2: height - 20 });
    draw(parent, "text", { class: "tick", x: x(us), y: height - 5, "text-anchor": "middle" }, `${seconds(us, digits)} s`);
  }
}

function wave(parent) {  // the loudest of each 20 ms: the caller upwards, the agent downwards
  const middle = HEAD + SOUND / 2;
  session.sound.forEach((peaks, side) => {
    const loudest = Math.max(1, ...peaks), sign = side ? 1 : -1;
    const first = Math.max(0, Math.floor(from / FRAME)), last = Math.min(peaks.length, Math.ceil(to / FRAME));
    let path = `M${x(first * FRAME)},${middle}`;
    for (let bin = first; bin < last; bin++) {
      const y = (middle + sign * peaks[bin] / loudest * (SOUND / 2 - 3)).toFixed(1);
      path += `L${x(bin * FRAME).toFixed(1)},${y}L${x((bin + 1) * FRAME).toFixed(1)},${y}`;
    }
    draw(parent, "path", { class: side ? "wave-agent" : "wave-caller", d: `${path}L${x(last * FRAME)},${middle}Z` });
  });
}

const measure = document.createElement("canvas").getContext("2d");
function wide(text) {
  measure.font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  return measure.measureText(text).width;
}
function fitted(text, room) {
  if (wide(text) <= room) return text;
  let last = text.length;
  while (last > 2 && wide(`${text.slice(0, last)}…`) > room) last--;
  return last > 2 ? `${text.slice(0, last).trimEnd()}…` : "";
}

function bars(parent) {
  session.bars.forEach(([lane, row, start, stop, look, label], index) => {
    if (stop < from || start > to) return;
    const left = x(start), right = x(stop), y = rowTop(lane, row) + 3;
    const box = { class: "bar-box", x: left, y, width: Math.max(right - left, 1), height: ROW - 6, rx: 3, style: fill(look) };
    draw(parent, "rect", { ...box, "data-bar": index });
    const seen = [Math.max(left, LEFT), Math.min(right, width - RIGHT)];
    const text = LOOKS[look][1] ? "" : fitted(label, seen[1] - seen[0] - 8);
    const dark = LOOKS[look][2] ? (LOOKS[look][0] === "first" ? "" : "on-light") : "on-dark";
    if (text) draw(parent, "text", { class: dark, x: (seen[0] + seen[1]) / 2, y: y + 14.5, "text-anchor": "middle" }, text);
  });
}

function marks(parent) {
  session.marks.forEach(([lane, row, us, look], index) => {
    const late = look === "late note", y = rowTop(lane, row) + ROW / 2;
    const d = late ? "m0,-6 6,6 -6,6 -6,-6z" : "m-6,-5 12,0 -6,10z";
    draw(parent, "path", { class: "mark", d, transform: `translate(${x(us)},${y})`, "data-mark": index });
  });
}

const LINES = { "barge-in decided": "barge-in", "playout cut": "cut" };
function lines(parent) {
  const taken = [];
  for (const [us, look] of session.lines) {
    const decided = look === "barge-in decided", text = LINES[look];
    draw(parent, "line", { class: decided ? "line decided" : "line", x1: x(us), x2: x(us), y1: 18, y2: bottom });
    const left = decided ? x(us) - 5 - wide(text) : x(us) + 5, right = left + wide(text);
    if (taken.some(([a, b]) => left < b + 4 && right > a - 4)) continue;
    taken.push([left, right]);
    draw(parent, "text", { x: left, y: 14 }, text);
  }
}

function waiting(parent) {
  for (const [[start, stop, label], row] of waits) {
    const y = bottom + row * ROW + 20, group = draw(parent, "g", { class: "wait" });
    draw(group, "path", { d: `M${x(start)},${y - 4}v8M${x(start)},${y}H${x(stop)}M${x(stop)},${y - 4}v8` });
    const half = wide(label) / 2 + 2;  // a label never leaves the picture while its wait is in it
    const middle = Math.min(Math.max((x(start) + x(stop)) / 2, LEFT + half), width - RIGHT - half);
    if (stop >= from && start <= to) draw(group, "text", { x: middle, y: y - 6, "text-anchor": "middle" }, label);
  }
}

function flags(parent) {
  session.findings.forEach((finding, index) => {
    if (finding.ok || finding.t === null) return;
    const transform = `translate(${x(finding.t)},${HEAD})`;
    draw(parent, "path", { class: "flag", d: "M-1,-2v-16h13l-4,5 4,5h-11v6z", transform, "data-finding": index });
  });
}
