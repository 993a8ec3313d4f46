// Gymnasium's pole on a cart: its equations, and where its episodes end.
"use strict";

systems.gymnasium_cart_pole = (p) => ({
  start: [0, 0, 0.04, 0],
  view: { width: 2.3 * p.x_threshold, height: 5 * p.length, x: 0, y: 1.5 * p.length },
  landscape: ["position", "angle"],
  periodic: [],
  pokes: { left: [0, 0, 0, -0.6], right: [0, 0, 0, 0.6] },

  step([x, speed, angle, turning], [choice]) {
    const force = choice === 1 ? p.force_mag : -p.force_mag;
    const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
    const total = p.masscart + p.masspole;
    const moment = p.masspole * p.length;
    const push = (force + moment * turning ** 2 * sine) / total;
    const spin =
      (p.gravity * sine - cosine * push) /
      (p.length * (4 / 3 - (p.masspole * cosine ** 2) / total));
    return [
      x + p.tau * speed,
      speed + p.tau * (push - (moment * spin * cosine) / total),
      angle + p.tau * turning,
      turning + p.tau * spin,
    ];
  },

  isOver: ([x, , angle]) =>
    Math.abs(x) > p.x_threshold || Math.abs(angle) > p.theta_threshold_radians,

  observe: (state) => state.slice(),

  /** Tilt the pole to a point, as far as an episode goes on; positive angles lean to the right. */
  drag([x], [toX, toY]) {
    const most = 0.95 * p.theta_threshold_radians;
    return [limited(x, 0.95 * p.x_threshold), 0, limited(Math.atan2(toX - x, toY), most), 0];
  },

  draw(pen, [x, , angle], [choice]) {
    const tip = [x + 2 * p.length * Math.sin(angle), 2 * p.length * Math.cos(angle)];
    pen.box([-p.x_threshold, -0.02], [p.x_threshold, 0.02]);
    pen.box([x - 0.25, -0.14], [x + 0.25, 0.14], "steel");
    pen.line([[x, 0], tip], 0.08);
    pen.disc(tip, 0.1, "accent");
    pen.arrow([x, -0.3], [choice === 1 ? 0.5 : -0.5, 0]);
  },
});
