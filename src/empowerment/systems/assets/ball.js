// The ball in a box: the equations of `worlds/ball.py`.
"use strict";

systems.ball = (p) => {
  const inside = (value) => Math.min(Math.max(value, 0), p.side);
  const poke = 0.3 * p.side;
  return {
    start: [0.05 * p.side, 0.08 * p.side],
    view: { width: 1.3 * p.side, height: 1.3 * p.side, x: p.side / 2, y: p.side / 2 },
    landscape: ["x", "y"],
    periodic: [],
    pokes: { left: [-poke, 0], right: [poke, 0], up: [0, poke], down: [0, -poke] },

    step: (state, action) =>
      state.map((place, axis) => inside(place + limited(action[axis], p.max_step))),

    observe: (state) => state.map(inside),

    drag: (state, point) => point.map(inside),

    draw(pen, [x, y], action) {
      const radius = 0.066 * p.side;
      pen.box([-radius, -radius], [p.side + radius, p.side + radius]);
      pen.disc([x, y], radius, "accent");
      pen.arrow([x, y], action.map((move) => (1.5 * radius * move) / p.max_step));
    },
  };
};
