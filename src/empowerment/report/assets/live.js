// The live section of a report: connects the simulation with what the reader sees and touches.
"use strict";

const drawnColours = ["ink", "steel", "faint", "policy", "random", "action"];

/** Run a simulation in a section of the page. */
function startLive(section, data) {
  const find = (name) => section.querySelector(`[data-live="${name}"]`);
  const simulation = makeSimulation(data);
  const { actors, disturbance, system } = simulation;
  const canvases = actors.map((actor) => find(actor.name));
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const state = { isRunning: !reduced.matches, ahead: 0, last: null, time: 0 };
  let colours = {};
  const hasLandscapes = data.landscapes.length > 0;
  let landscape = null;
  let picture = null;
  let slicedAt = -Infinity;

  function readColours() {
    const style = getComputedStyle(section);
    colours = Object.fromEntries(
      drawnColours.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
  }

  /** Advance by a number of actions at once. */
  function advance(count) {
    for (let done = 0; done < count; done++) {
      simulation.step();
      state.time += simulation.interval;
    }
  }

  function show(chosen) {
    landscape = chosen;
    picture = paintedLandscape(landscape, data.colours);
    const [low, high] = landscape.limits.map((limit) => limit.toFixed(2));
    find("low").textContent = low;
    find("high").textContent = `${high} nats`;
  }

  function slice(now) {
    if (!simulation.slice || now - slicedAt < 250) return;
    show(simulation.slice(actors[0].state));
    slicedAt = now;
  }

  function way(actor) {
    const { names } = simulation;
    const axes = hasLandscapes ? [0, 1] : system.landscape.map((name) => names.indexOf(name));
    const at = (each) => {
      const all = simulation.shown(each);
      return axes.map((axis) => all[axis]);
    };
    return { name: actor.name, trail: actor.trail.map(at), now: at(actor.state) };
  }

  function paint(now) {
    const share = state.isRunning ? Math.min(state.ahead / simulation.interval, 1) : 1;
    actors.forEach((actor, index) => {
      paintActor(canvases[index], simulation, actor, actor.isHeld ? 1 : share, colours);
      const value = simulation.empowerment(actor);
      find(`${actor.name}-value`).textContent = value === null ? "–" : `${value.toFixed(2)} nats`;
    });
    slice(now);
    if (landscape) {
      paintMap(find("map"), landscape, picture, actors.map(way).reverse(), data.units, colours);
    }
    find("time").textContent = `${state.time.toFixed(1)} s`;
  }

  function frame(now) {
    const elapsed = state.last === null ? 0 : (now - state.last) / 1000;
    state.last = now;
    if (state.isRunning) {
      // A page in the background gets no frames: it does not catch up.
      state.ahead += Math.min(elapsed, 0.25);
      const count = Math.floor(state.ahead / simulation.interval);
      advance(count);
      state.ahead -= count * simulation.interval;
    }
    paint(now);
    window.requestAnimationFrame(frame);
  }

  function run(isRunning) {
    state.isRunning = isRunning;
    state.ahead = 0;
    find("run").textContent = isRunning ? "Pause" : "Run";
    find("step").disabled = isRunning;
  }

  function poke(actor, direction) {
    const change = system.pokes[direction];
    if (change) simulation.place(actor, actor.state.map((value, axis) => value + change[axis]));
    return Boolean(change);
  }

  const pointOn = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  /** Let a pointer, or a finger, move what is drawn in a canvas. */
  function draggable(canvas, actor, move) {
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      actor.isHeld = true;
      move(pointOn(canvas, event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (actor.isHeld) move(pointOn(canvas, event));
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      canvas.addEventListener(end, () => (actor.isHeld = false));
    }
  }

  actors.forEach((actor, index) => {
    const canvas = canvases[index];
    draggable(canvas, actor, (point) => {
      const mapping = makeMapping(system.view, canvas.clientWidth, canvas.clientHeight);
      simulation.place(actor, system.drag(actor.state, mapping.from(point)));
    });
    canvas.addEventListener("keydown", (event) => {
      const direction = event.key.replace("Arrow", "").toLowerCase();
      if (event.key === " ") run(!state.isRunning);
      else if (event.key.toLowerCase() === "r") simulation.restart(actor);
      else if (!poke(actor, direction)) return;
      event.preventDefault();
    });
  });

  const map = find("map");
  const which = find("which");
  data.landscapes.forEach(({ about }) => which.add(new Option(about)));
  which.addEventListener("change", () => show(data.landscapes[which.selectedIndex]));
  find("which-label").hidden = data.landscapes.length < 2;
  if (hasLandscapes) {
    show(data.landscapes[0]);
    draggable(map, actors[0], (point) => {
      const places = mapPlaces(landscape, map.clientWidth, map.clientHeight);
      simulation.place(actors[0], places.from(point));
    });
  }

  const slide = (name, write, text) => {
    const input = find(name);
    const change = () => {
      write(Number(input.value));
      find(`${name}-text`).textContent = text(Number(input.value));
    };
    input.addEventListener("input", change);
    change();
  };
  slide("noise", (value) => (disturbance.noise = value), (value) => `${value} ×`);
  slide("dropped", (value) => (disturbance.dropped = value / 100), (value) => `${value} %`);

  find("run").addEventListener("click", () => run(!state.isRunning));
  find("step").addEventListener("click", () => advance(1));
  find("restart").addEventListener("click", () => {
    actors.forEach(simulation.restart);
    state.time = 0;
  });
  for (const direction of ["left", "right", "up", "down"]) {
    const button = find(direction);
    button.hidden = !system.pokes[direction];
    button.addEventListener("click", () => actors.forEach((actor) => poke(actor, direction)));
  }

  reduced.addEventListener("change", () => run(!reduced.matches));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", readColours);
  readColours();
  run(state.isRunning);
  find("map-figure").hidden = !hasLandscapes && !simulation.slice;
  section.hidden = false;
  window.requestAnimationFrame(frame);
  return { simulation, advance, run, paint };
}

{
  const section = document.getElementById("live");
  const data = JSON.parse(document.getElementById("live-data").textContent);
  section.live = startLive(section, data);
}
