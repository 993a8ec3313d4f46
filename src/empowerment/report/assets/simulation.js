// A system under the policy, and the same system under random actions. Knows no page.
"use strict";

/** Sample from the standard normal distribution, by the method of Box and Muller. */
const normal = (random) =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Seconds for which a system is left as it is after an episode has ended. */
const endSeconds = 1;

/**
 * Build the simulation of a run.
 *
 * `data` has the controller bundle, the system with its parameters, the noise of a perceived
 * observation, and the stored landscapes, the agent's own first. What is disturbed can be changed
 * at any time: `disturbance.noise` in units of that noise, `disturbance.dropped` as a share.
 */
function makeSimulation(data, random = Math.random) {
  const system = systems[data.system](data.parameters);
  const controller = makeController(data.bundle);
  const bound = makeBound(data.bundle);
  const { description } = data.bundle;
  const { low, high, choices, latent_size: latentSize } = description;
  const disturbance = { noise: 0, dropped: 0 };
  const pause = Math.ceil(endSeconds / data.interval);
  const anyAction = () =>
    choices.length
      ? choices.map((count) => Math.floor(random() * count))
      : low.map((limit, axis) => limit + random() * (high[axis] - limit));

  const actors = ["policy", "random"].map((name) => ({ name, isHeld: false }));
  actors.forEach((actor) => restart(actor));

  function restart(actor) {
    place(actor, system.start);
    actor.memory = controller.restart();
    actor.action = low.map(() => 0);
  }

  /** Move the system of an actor to a state at once. */
  function place(actor, state) {
    actor.state = actor.before = state.slice();
    actor.trail = [];
    actor.isSeen = true;
    actor.left = pause;
    actor.isOver = isOver(state);
  }

  /** Return whether an episode ends in a state; most systems go on for ever. */
  function isOver(state) {
    return Boolean(system.isOver && system.isOver(state));
  }

  function perceive(state) {
    if (random() < disturbance.dropped) return null;
    return system
      .observe(state)
      .map((value, axis) => value + disturbance.noise * data.noise[axis] * normal(random));
  }

  /** Advance the system of an actor by one action; one that is held is only observed. */
  function advance(actor) {
    if (actor.isOver && !actor.isHeld) {
      actor.before = actor.state;
      actor.left -= 1;
      if (actor.left <= 0) restart(actor);
      return;
    }
    const observation = perceive(actor.state);
    const { action, memory } = controller.step(observation, actor.memory);
    actor.isSeen = observation !== null;
    actor.action = action;
    actor.memory = memory;
    if (actor.name === "random") {
      actor.action = anyAction();
      // The filter has to know what was done.
      actor.memory.splice(1 + latentSize, Infinity, ...encodeAction(description, actor.action));
    }
    actor.before = actor.state;
    if (actor.isHeld) return;
    for (let count = 0; count < data.repeat && !actor.isOver; count++) {
      actor.state = system.step(actor.state, actor.action);
      actor.isOver = isOver(actor.state);
    }
    actor.trail.push(actor.state);
    if (actor.trail.length > 60) actor.trail.shift();
  }

  /** Return the coordinates of a state as they are observed where it is painted. */
  const shown = (state) =>
    state.map((value, axis) => (system.periodic.includes(axis) ? wrapped(value) : value));

  /** Return the empowerment in nats where an actor is; null if nothing is stored that tells it. */
  function empowerment(actor) {
    if (bound && latentSize) {
      return actor.memory[0] ? bound(actor.memory.slice(1, 1 + latentSize)) : null;
    }
    if (bound) return bound(system.observe(actor.state));
    const [own] = data.landscapes;
    return own ? interpolated(own, shown(actor.state)) : null;
  }

  return {
    actors,
    disturbance,
    system,
    restart,
    place,
    shown,
    empowerment,
    names: latentSize ? [] : description.names,
    slice: makeSlice(data, system, bound),
    interval: data.interval,
    step: () => actors.forEach(advance),
  };
}

/** Return a landscape's value at a point, linear between its states. */
function interpolated({ x, y, values }, [atX, atY]) {
  const place = (axis, at) => {
    const steps = axis.length - 1;
    const share = (at - axis[0]) / (axis[steps] - axis[0]);
    const where = Math.min(Math.max(share * steps, 0), steps);
    const first = Math.min(Math.floor(where), Math.max(steps - 1, 0));
    return [first, where - first, Math.min(first + 1, steps)];
  };
  const [column, shareX, nextColumn] = place(x, atX);
  const [row, shareY, nextRow] = place(y, atY);
  const at = (i, j) => values[i * y.length + j];
  return (
    (1 - shareX) * ((1 - shareY) * at(column, row) + shareY * at(column, nextRow)) +
    shareX * ((1 - shareY) * at(nextColumn, row) + shareY * at(nextColumn, nextRow))
  );
}

const sliceSize = 21;
const darkest = 0.2;

/** Return limits of the colours: some states with hardly any empowerment may be darker. */
function colourLimits(bound, { low, high }) {
  // Evenly spread over the region, by multiples of irrational numbers.
  const share = (index, axis) => (index * Math.exp(axis + 1)) % 1;
  const values = Array.from({ length: 512 }, (_, index) =>
    bound(low.map((limit, axis) => limit + share(index, axis) * (high[axis] - limit))),
  ).sort((one, other) => one - other);
  return [values[Math.floor(darkest * values.length)], values[values.length - 1]];
}

/** Return what computes the landscape over two coordinates, the others as in a state; or null. */
function makeSlice(data, system, bound) {
  const { names, latent_size: latentSize } = data.bundle.description;
  const [axisX, axisY] = system.landscape.map((name) => names.indexOf(name));
  if (!bound || latentSize || data.landscapes.length || axisX < 0 || axisY < 0) return null;
  const region = boundRegion(data.bundle);
  const limits = colourLimits(bound, region);
  const spread = (axis) =>
    Array.from({ length: sliceSize }, (_, index) =>
      region.low[axis] + ((region.high[axis] - region.low[axis]) * index) / (sliceSize - 1),
    );
  const [x, y] = [spread(axisX), spread(axisY)];
  return (state) => {
    const at = system.observe(state);
    const values = x.flatMap((first) =>
      y.map((second) => {
        at[axisX] = first;
        at[axisY] = second;
        return bound(at);
      }),
    );
    return { names: system.landscape, x, y, values, limits };
  };
}
