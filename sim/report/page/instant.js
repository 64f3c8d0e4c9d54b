// The session's data, small helpers, and the instant that everything on the page stands at. Instants are whole
// microseconds, as everywhere. The scripts of this folder are parts of one function, in the order that html.py names.

const session = JSON.parse(document.getElementById("session").textContent);
const end = Math.max(session.end_us, 1);
const $ = (id) => document.getElementById(id);
const audio = $("audio"), lanes = $("lanes"), tip = $("tip");
const FRAME = 20000, SECOND = 1e6, LEFT = 64, RIGHT = 14, ROW = 26, SHORTEST = 40000;
const SVG = "http://www.w3.org/2000/svg";

const LOOKS = {  // colour, whether it is hatched, whether its text is dark on it
  "caller speaks": ["caller"], "speech seen by the VAD": ["voiced", 0, 1],
  "LLM, until its first token": ["first", 0, 1], "LLM streams": ["stream", 0, 1],
  "waits for an approval": ["waiting", 0, 1], "read-only tool": ["read"], "side effect": ["effect"],
  "still running after its slot was answered": ["tail", 1, 1],
  "filler or fallback heard": ["filler", 0, 1], "bot heard": ["bot"], "received, never heard": ["unheard", 1, 1],
};

const seconds = (us, digits = 6) => (us / SECOND).toFixed(digits);
const span = (us) => us >= SECOND ? `${+(us / SECOND).toFixed(6)} s` : us >= 1000 ? `${+(us / 1000).toFixed(3)} ms` : `${us} µs`;
const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const draw = (parent, name, attributes, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
};

// -- the instant ------------------------------------------------------------------------------------------

let now = 0, from = 0, to = end;

function go(us, { sound = true, reveal = true } = {}) {
  now = Math.min(Math.max(Math.round(us), 0), end);
  if (sound) audio.currentTime = now / SECOND;
  if (reveal && (now < from || now > to)) view(now - (to - from) / 2, now + (to - from) / 2);
  show();
}

function show() {
  $("now").textContent = `${seconds(now)} s`;
  lanes.setAttribute("aria-valuenow", now);
  lanes.setAttribute("aria-valuetext", `${seconds(now, 3)} seconds: ${heading()}`);
  place();
  showContext();
  showStory();
}

const heading = () => reached < 0 ? "before the call" : session.story[reached][1];

// The sound leads while it plays; when it stands still, what was asked for is kept to the microsecond.
function follow() {
  const heard = Math.round(audio.currentTime * SECOND);
  if (!audio.paused || Math.abs(heard - now) > 1000) {
    const shown = now >= from && now <= to;
    go(heard, { sound: false, reveal: audio.paused });
    if (!audio.paused && shown && now > to) view(to, to + (to - from));
  }
  if (!audio.paused && !audio.ended) requestAnimationFrame(follow);
}
for (const event of ["play", "seeked", "timeupdate", "pause", "ended"]) audio.addEventListener(event, follow);
