// The replay of a report: films, charts and a slider that show the same time.
"use strict";

/** Move a film to a time; of the times that are asked for meanwhile only the last one counts. */
function makeSeeker(film) {
  let wanted = null;
  const go = (time) => {
    wanted = time;
    if (!film.seeking && film.readyState > 0) film.currentTime = time;
  };
  const next = () => {
    if (wanted !== null && Math.abs(film.currentTime - wanted) > 1e-3) film.currentTime = wanted;
  };
  film.addEventListener("seeked", next);
  film.addEventListener("loadedmetadata", next);
  return go;
}

/** Return how places across a chart stand for times, and what moves its cursor. */
function makeCursor(svg) {
  const [left, right, from, to] = ["left", "right", "from", "to"].map((name) =>
    Number(svg.dataset[name]),
  );
  const cursor = svg.querySelector(".cursor");
  return {
    move(time) {
      const share = Math.min(Math.max((time - from) / (to - from), 0), 1);
      cursor.setAttribute("transform", `translate(${share * (right - left)} 0)`);
    },
    time(event) {
      const box = svg.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      return from + ((to - from) * (place - left)) / (right - left);
    },
  };
}

/** Let the reader move through recorded episodes. */
function startReplay(section, data) {
  const find = (name) => section.querySelector(`[data-replay="${name}"]`);
  const slider = find("time");
  const last = Number(slider.max);
  const step = data.interval || 1;
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const actors = Object.entries(data.episodes).map(([name, episode]) => {
    const film = find(`${name}-film`);
    return { name, episode, film, seek: film ? makeSeeker(film) : () => {} };
  });
  const charts = [...section.querySelectorAll("svg[data-left]")];
  const cursors = charts.map(makeCursor);
  const state = { at: 0, isRunning: false, before: null };

  function show(at) {
    state.at = Math.min(Math.max(at, 0), last);
    const row = Math.floor(state.at + 1e-9);
    slider.value = row;
    const clock = data.interval ? `${(row * step).toFixed(2)} s` : `action ${row}`;
    find("clock").textContent = clock;
    slider.setAttribute("aria-valuetext", clock);
    for (const { name, episode, seek } of actors) {
      const own = Math.min(row, episode.length - 1);
      const nats = episode.empowerment && episode.empowerment[own];
      find(`${name}-value`).textContent = nats === null ? "–" : `${nats.toFixed(2)} nats`;
      const isOver = episode.ended && row >= episode.length - 1;
      find(`${name}-end`).textContent = isOver ? "(the episode has ended)" : "";
      const frame = Math.min(Math.floor(own / data.stride), episode.frames - 1);
      seek((frame + 0.5) / data.fps);
    }
    cursors.forEach((cursor) => cursor.move(row * step));
  }

  function run(isRunning) {
    if (isRunning && state.at >= last) show(0);
    state.isRunning = isRunning;
    state.before = null;
    find("run").textContent = isRunning ? "Pause" : "Play";
    if (isRunning) window.requestAnimationFrame(frame);
  }

  function frame(now) {
    if (!state.isRunning) return;
    // A page in the background gets no frames: it does not catch up.
    const elapsed = state.before === null ? 0 : Math.min((now - state.before) / 1000, 0.25);
    state.before = now;
    show(state.at + elapsed * data.fps * data.stride);
    if (state.at >= last) run(false);
    else window.requestAnimationFrame(frame);
  }

  const go = (at) => {
    run(false);
    show(Math.round(at));
  };
  find("run").addEventListener("click", () => run(!state.isRunning));
  slider.addEventListener("input", () => go(Number(slider.value)));
  slider.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    run(!state.isRunning);
    event.preventDefault();
  });
  for (const { film } of actors) {
    if (film) film.addEventListener("click", () => run(!state.isRunning));
  }
  charts.forEach((svg, index) => {
    const follow = (event) => go(cursors[index].time(event) / step);
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      follow(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) follow(event);
    });
  });
  find("controls").hidden = false;
  show(0);
  if (!reduced.matches) run(true);
  return { show, run, state };
}

{
  const section = document.getElementById("replay");
  const data = JSON.parse(document.getElementById("replay-data").textContent);
  section.replay = startReplay(section, data);
}
