// The pendulum: the equations of `worlds/pendulum.py`, or those of Gymnasium.
"use strict";

systems.pendulum = (p) => ({
  start: [Math.PI, 0],
  view: { width: 3, height: 3, x: 0, y: 0 },
  landscape: ["angle", "velocity"],
  periodic: [0],
  pokes: { left: [0, 3], right: [0, -3] },

  step([angle, velocity], [push]) {
    const torque = limited(push, p.max_torque);
    const fall = ((1.5 * p.gravity) / p.length) * Math.sin(angle);
    const drive = (3 / (p.mass * p.length ** 2)) * (torque - p.friction * velocity);
    const faster = velocity + (fall + drive) * p.interval;
    const speed = limited(faster, p.max_speed);
    return [angle + (p.limit_first ? speed : faster) * p.interval, speed];
  },

  observe: ([angle, velocity]) =>
    p.by_direction ? [Math.cos(angle), Math.sin(angle), velocity] : [wrapped(angle), velocity],

  /** Positive angles lean to the left. */
  drag: ([angle], [x, y]) => [angle + wrapped(Math.atan2(-x, y) - angle), 0],

  draw(pen, [angle], [torque]) {
    const tip = [-Math.sin(angle), Math.cos(angle)];
    pen.ring([0, 0], 1);
    pen.line([[0, 0], tip], 0.09);
    pen.disc(tip, 0.17, "accent");
    pen.disc([0, 0], 0.08, "ink");
    pen.turn([0, 0], torque / p.max_torque);
  },
});
