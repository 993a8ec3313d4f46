// Rods on hinges: the equations of `worlds/rods.py`.
"use strict";

systems.chain = (p) => {
  const count = p.num_links;
  const numbers = Array.from({ length: count }, (_, index) => index);
  const ml2 = p.mass * p.length ** 2;
  const own = rodMoment(p.mass, p.length) - 0.5 * ml2;
  const inertia = numbers.map((row) =>
    numbers.map((column) => ml2 * (count - 0.5 - Math.max(row, column)) + (row === column ? own : 0)),
  );
  const weights = numbers.map((rod) => p.mass * p.length * (count - 0.5 - rod));
  const summed = (values) => {
    let sum = 0;
    return values.map((value) => (sum += value));
  };

  function motion(state, torque) {
    const velocities = state.slice(count);
    const angles = summed(state.slice(0, count));
    const speeds = summed(velocities);
    const driving = velocities.map((speed) => -p.damping * speed);
    p.driven.forEach((hinge, motor) => (driving[hinge] += torque[motor]));
    const force = numbers.map((row) => {
      const reaction = row + 1 < count ? driving[row + 1] : 0;
      const centrifugal = numbers.reduce(
        (sum, column) =>
          sum + inertia[row][column] * Math.sin(angles[row] - angles[column]) * speeds[column] ** 2,
        0,
      );
      return driving[row] - reaction - centrifugal + p.gravity * weights[row] * Math.sin(angles[row]);
    });
    const matrix = numbers.map((row) =>
      numbers.map((column) => inertia[row][column] * Math.cos(angles[row] - angles[column])),
    );
    const faster = solved(matrix, force);
    return [...velocities, ...faster.map((each, rod) => each - (rod ? faster[rod - 1] : 0))];
  }

  const reach = count * p.length;
  const shove = [...numbers.map(() => 0), 3, ...numbers.slice(1).map(() => 0)];
  return {
    start: [Math.PI, ...new Array(2 * count - 1).fill(0)],
    view: { width: 2.4 * reach, height: 2.4 * reach, x: 0, y: 0 },
    landscape: count > 1 ? ["angle_1", "angle_2"] : ["angle_1", "velocity_1"],
    periodic: numbers,
    pokes: { left: shove, right: shove.map((value) => -value) },

    step(state, action) {
      const torque = action.map((push) => limited(push, p.max_torque));
      return held((at) => motion(at, torque), state, p.interval, p.substeps);
    },

    observe: (state) => state.map((value, axis) => (axis < count ? wrapped(value) : value)),

    /** Turn the whole chain at its pivot; positive angles lean to the left. */
    drag([angle, ...others], [x, y]) {
      const offset = wrapped(Math.atan2(-x, y) - angle);
      return [angle + offset, ...others.slice(0, count - 1), ...numbers.map(() => 0)];
    },

    draw(pen, state, action) {
      const places = [[0, 0]];
      for (const angle of summed(state.slice(0, count))) {
        const [x, y] = places[places.length - 1];
        places.push([x - p.length * Math.sin(angle), y + p.length * Math.cos(angle)]);
      }
      pen.line(places, 0.04 * reach);
      places.slice(0, -1).forEach((place) => pen.disc(place, 0.035 * reach, "steel"));
      pen.disc(places[count], 0.06 * reach, "accent");
      p.driven.forEach((hinge, motor) => pen.turn(places[hinge], action[motor] / p.max_torque));
    },
  };
};

systems.cart_pole = (p) => {
  const half = 0.5 * p.pole_mass * p.pole_length;
  const moment = rodMoment(p.pole_mass, p.pole_length);

  function motion([position, angle, velocity, turning], force) {
    const coupling = half * Math.cos(angle);
    const pull = force - p.stiffness * position - p.cart_damping * velocity;
    const forces = [
      pull + half * Math.sin(angle) * turning ** 2,
      p.gravity * half * Math.sin(angle) - p.pole_damping * turning,
    ];
    const inertia = [
      [p.cart_mass + p.pole_mass, coupling],
      [coupling, moment],
    ];
    return [velocity, turning, ...solved(inertia, forces)];
  }

  return {
    start: [0, Math.PI, 0, 0],
    view: { width: 2.3 * p.rail, height: 2.8 * p.pole_length, x: 0, y: 0 },
    landscape: ["angle", "turning"],
    periodic: [1],
    pokes: { left: [0, 0, 0, -3], right: [0, 0, 0, 3] },

    step(state, [push]) {
      const force = limited(push, p.max_force);
      return held((at) => motion(at, force), state, p.interval, p.substeps);
    },

    observe: ([position, angle, ...speeds]) => [position, wrapped(angle), ...speeds],

    /** Turn the pole to a point; positive angles lean to the right. */
    drag([position, angle], [x, y]) {
      return [position, angle + wrapped(Math.atan2(x - position, y) - angle), 0, 0];
    },

    draw(pen, [position, angle], [force]) {
      const tip = [
        position + p.pole_length * Math.sin(angle),
        p.pole_length * Math.cos(angle),
      ];
      pen.box([-p.rail, -0.02], [p.rail, 0.02]);
      pen.box([position - 0.2, -0.12], [position + 0.2, 0.12], "steel");
      pen.line([[position, 0], tip], 0.07);
      pen.disc(tip, 0.1, "accent");
      pen.arrow([position, -0.3], [(0.6 * force) / p.max_force, 0]);
    },
  };
};
