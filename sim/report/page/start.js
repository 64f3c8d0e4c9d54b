// The head of the page, and the first drawing of it all.

$("verdict").textContent = session.ok ? "ok" : "failed";
$("verdict").classList.add(session.ok ? "good" : "bad");
$("about").textContent = session.about;
const tie = session.tie_seed === null ? "" : `, tie seed ${session.tie_seed}`;
$("facts").textContent = `${seconds(session.end_us)} s of virtual time, seed ${session.seed}${tie}, digest ${session.digest}`;
lanes.setAttribute("aria-valuemin", 0);
lanes.setAttribute("aria-valuemax", end);
new ResizeObserver(paint).observe(lanes);
paint();
show();
