// A system under the policy, and the same system under random actions. Knows no page.
"use strict";

/** Sample from the standard normal distribution, by the method of Box and Muller. */
const normal = (random) =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/**
 * Build the simulation of a run.
 *
 * `data` has the controller bundle, the system with its parameters, the noise of a perceived
 * observation, the surrogate and the stored landscapes, the agent's own first. What is disturbed can be changed at any
 * time: `disturbance.noise` in units of that noise, `disturbance.dropped` as a share.
 */
function makeSimulation(data, random = Math.random) {
  const system = systems[data.system](data.parameters);
  const controller = makeController(data.bundle);
  const surrogate = data.surrogate && makeSurrogate(data.surrogate);
  const { low, high, latent_size: latentSize } = data.bundle.description;
  const disturbance = { noise: 0, dropped: 0 };
  const anyAction = () => low.map((limit, axis) => limit + random() * (high[axis] - limit));

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
  }

  function perceive(state) {
    if (random() < disturbance.dropped) return null;
    return system
      .observe(state)
      .map((value, axis) => value + disturbance.noise * data.noise[axis] * normal(random));
  }

  /** Advance the system of an actor by one action; one that is held is only observed. */
  function advance(actor) {
    const observation = perceive(actor.state);
    const { action, memory } = controller.step(observation, actor.memory);
    actor.isSeen = observation !== null;
    actor.action = action;
    actor.memory = memory;
    if (actor.name === "random") {
      actor.action = anyAction();
      // The filter has to know what was done.
      actor.action.forEach((u, axis) => {
        actor.memory[1 + latentSize + axis] = u - 0.5 * (low[axis] + high[axis]);
      });
    }
    actor.before = actor.state;
    if (actor.isHeld) return;
    for (let count = 0; count < data.repeat; count++) {
      actor.state = system.step(actor.state, actor.action);
    }
    actor.trail.push(actor.state);
    if (actor.trail.length > 60) actor.trail.shift();
  }

  /** Return the coordinates of a state as they are observed where it is painted. */
  const shown = (state) =>
    state.map((value, axis) => (system.periodic.includes(axis) ? wrapped(value) : value));

  /** Return the empowerment in nats where an actor is; null if nothing is stored that tells it. */
  function empowerment(actor) {
    if (surrogate && latentSize) {
      return actor.memory[0] ? surrogate(actor.memory.slice(1, 1 + latentSize)) : null;
    }
    if (surrogate) return surrogate(system.observe(actor.state));
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
    slice: makeSlice(data, system, surrogate),
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

/** Return what computes the landscape over two coordinates, the others as in a state; or null. */
function makeSlice(data, system, surrogate) {
  const names = data.surrogate ? data.surrogate.names : [];
  const [axisX, axisY] = system.landscape.map((name) => names.indexOf(name));
  if (data.landscapes.length || axisX < 0 || axisY < 0) return null;
  const { low, high } = data.surrogate;
  const spread = (axis) =>
    Array.from({ length: sliceSize }, (_, index) =>
      low[axis] + ((high[axis] - low[axis]) * index) / (sliceSize - 1),
    );
  const [x, y] = [spread(axisX), spread(axisY)];
  return (state) => {
    const at = system.observe(state);
    const values = x.flatMap((first) =>
      y.map((second) => {
        at[axisX] = first;
        at[axisY] = second;
        return surrogate(at);
      }),
    );
    return { names: system.landscape, x, y, values, limits: data.surrogate.limits };
  };
}
