// Pointer, wheel and keys: what one does with the lanes.

const local = (event) => event.clientX - lanes.getBoundingClientRect().left;
let grip = null;
lanes.addEventListener("pointerdown", (event) => {
  if (event.button === 0) grip = { px: local(event), from, to, moved: false };
});
window.addEventListener("pointermove", (event) => {
  if (!grip) return;
  const shift = local(event) - grip.px;
  if (Math.abs(shift) > 4) grip.moved = true;
  if (!grip.moved) return;
  const us = shift / (width - LEFT - RIGHT) * (grip.to - grip.from);
  view(grip.from - us, grip.to - us);
});
window.addEventListener("pointerup", (event) => {
  if (grip && !grip.moved) go(at(local(event)));
  grip = null;
});
window.addEventListener("pointercancel", () => { grip = null; });
lanes.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const us = (event.deltaX || event.deltaY) / width * (to - from);
    view(from + us, to + us);
  } else zoom(2 ** (event.deltaY / 240), at(local(event)));
}, { passive: false });
lanes.addEventListener("mousemove", (event) => {
  const { bar, mark, finding } = event.target.dataset;
  for (const box of lanes.querySelectorAll(".hover")) box.classList.remove("hover");
  let title = "", text = "";
  if (bar !== undefined) {
    const [lane, , start, stop, look, label] = session.bars[bar];
    event.target.classList.add("hover");
    title = label || look;
    text = `${lane}: ${look}. ${seconds(start)} s to ${seconds(stop)} s, ${span(stop - start)}`;
  } else if (mark !== undefined) {
    title = session.marks[mark][3];
    text = `at ${seconds(session.marks[mark][2])} s`;
  } else if (finding !== undefined) {
    title = session.findings[finding].name;
    text = session.findings[finding].message;
  } else {
    const us = at(local(event));
    if (us >= 0 && us <= end) text = `${seconds(us, 3)} s`;
  }
  tip.hidden = !text;
  tip.replaceChildren(...(title ? [make("b", {}, title)] : []), text);
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + tip.offsetHeight < innerHeight ? below : event.clientY - tip.offsetHeight - 12}px`;
});
lanes.addEventListener("mouseleave", () => {
  tip.hidden = true;
  for (const box of lanes.querySelectorAll(".hover")) box.classList.remove("hover");
});

const neighbour = (way) => {
  const times = session.story.map(([t]) => t);
  return way > 0 ? times.find((t) => t > now) ?? end : times.findLast((t) => t < now) ?? 0;
};
const KEYS = {
  ArrowLeft: (event) => go(now - (event.shiftKey ? SECOND : FRAME)),
  ArrowRight: (event) => go(now + (event.shiftKey ? SECOND : FRAME)),
  Home: () => go(0), End: () => go(end),
  n: () => go(neighbour(1)), p: () => go(neighbour(-1)),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => view(0, end),
  " ": () => { if (audio.paused) audio.play(); else audio.pause(); },
};
document.addEventListener("keydown", (event) => {
  const own = event.target.closest("button, audio, a, input");
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  if (own && (event.key === " " || own === audio)) return;
  if (["Home", "End", " "].includes(event.key) && event.target !== lanes && event.target !== document.body) return;
  event.preventDefault();
  KEYS[event.key](event);
});
$("in").addEventListener("click", () => zoom(0.5));
$("out").addEventListener("click", () => zoom(2));
$("fit").addEventListener("click", () => view(0, end));
