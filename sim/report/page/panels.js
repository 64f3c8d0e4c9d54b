// What stands below the lanes: the context as it stood, the story, the findings and the numbers.

// -- the context as it stood ------------------------------------------------------------------------------

let standing = "";
function showContext() {
  $("context-at").textContent = `${seconds(now)} s`;
  const messages = new Map();
  let count = 0, last = null;
  for (const change of session.context) {
    if (change.t > now) break;
    count++;
    last = change.message;
    if (change.removed) messages.delete(change.message);
    else if (change.role === undefined) {
      const message = messages.get(change.message);
      if (message) messages.set(change.message, { ...message, text: change.text, said: message.said ?? message.text });
    } else messages.set(change.message, change);
  }
  if (standing === String(count)) return;
  standing = String(count);
  const items = [...messages.values()].map((message) => spoken(message, message.message === last));
  if (session.system) items.unshift(spoken({ role: "system", text: session.system, calls: [] }, false));
  if (!items.length) items.push(make("li", {}, "Nothing has been said yet."));
  $("context").replaceChildren(...items);
  const fresh = $("context").querySelector(".fresh");
  if (fresh) keepSeen($("context"), fresh);
}

function spoken(message, fresh) {
  const item = make("li", { class: fresh ? `${message.role} fresh` : message.role });
  const more = [message.source === "answer" ? "" : message.source, message.call, message.error].filter(Boolean);
  item.append(make("div", { class: "role" }, [message.role, ...more].join(" · ")));
  const text = make("div", { class: "text" }, message.text);
  if (message.said !== undefined && message.said.startsWith(message.text)) {
    text.append(make("del", { title: "never heard, so no longer in the context" }, message.said.slice(message.text.length)));
  }
  item.append(text, ...message.calls.map((call) => make("div", { class: "call" }, `→ ${call}`)));
  return item;
}

function keepSeen(box, item) {
  const top = item.offsetTop, low = top + item.offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top - 8;
  else if (low > box.scrollTop + box.clientHeight) box.scrollTop = low - box.clientHeight + 8;
}

// -- the story, the findings and the numbers --------------------------------------------------------------

let reached = -1;
const told = session.story.map(([t, text]) => {
  const button = make("button", { type: "button" }, make("time", {}, seconds(t)), make("span", {}, text));
  button.addEventListener("click", () => go(t));
  $("story").append(make("li", {}, button));
  return button;
});
function showStory() {
  const last = session.story.findLastIndex(([t]) => t <= now);
  if (last === reached) return;
  if (reached >= 0) told[reached].removeAttribute("aria-current");
  reached = last;
  told.forEach((button, index) => button.classList.toggle("ahead", index > last));
  if (last >= 0) {
    told[last].setAttribute("aria-current", "true");
    keepSeen($("story"), told[last].parentNode);
  }
  lanes.setAttribute("aria-valuetext", `${seconds(now, 3)} seconds: ${heading()}`);
}

const held = $("held"), wrong = session.findings.filter((finding) => !finding.ok);
const violated = wrong.filter((finding) => finding.kind === "violation").length;
for (const finding of session.findings) {
  const word = finding.kind === "violation" ? "violated" : finding.ok ? "held" : "not as expected";
  const where = finding.t === null ? "–" : make("button", { type: "button" }, seconds(finding.t));
  if (finding.t !== null) where.addEventListener("click", () => { go(finding.t); lanes.scrollIntoView({ block: "nearest" }); });
  const verdict = finding.kind === "announced violation" ? finding.kind : word;
  const row = make("tr", {}, ...[verdict, finding.name, where, finding.message].map((cell) => make("td", {}, cell)));
  row.firstChild.className = finding.ok ? "good" : "bad";
  (finding.ok ? held.querySelector("tbody") : $("findings").tBodies[0]).append(row);
}
const good = session.findings.length - wrong.length;
$("findings").hidden = !wrong.length;
held.hidden = !good;
held.querySelector("summary").textContent = `${good} as expected`;
$("summary").textContent = wrong.length
  ? `Violations: ${violated}. Not as expected: ${wrong.length - violated}.`
  : "Every invariant that is checked held, and everything is as expected.";
for (const [name, value, about] of session.metrics) {
  $("metrics").tBodies[0].append(make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value), make("td", {}, about)));
}

const used = new Set(session.bars.map((bar) => bar[4]));
for (const look of Object.keys(LOOKS).filter((name) => used.has(name))) {
  const sample = document.createElementNS(SVG, "svg");
  draw(sample, "rect", { width: 20, height: 14, rx: 3, style: fill(look) });
  $("legend").append(make("li", {}, sample, look));
}
for (const [look, d] of [["end of turn decided", "M4,3h12l-6,10z"], ["late note", "M10,1 16,7 10,13 4,7z"]]) {
  if (!session.marks.some((mark) => mark[3] === look)) continue;
  const sample = document.createElementNS(SVG, "svg");
  draw(sample, "path", { d, fill: "currentColor" });
  $("legend").append(make("li", {}, sample, look));
}
