// What systems in the page share.
"use strict";

/** The systems that a page can run, each built from the parameters of its world. */
const systems = {};

const limited = (value, limit) => Math.min(Math.max(value, -limit), limit);

/** Return an angle within half a turn. */
const wrapped = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

/** Integrate a motion over an interval, by the method of Runge and Kutta of fourth order. */
function held(motion, state, interval, substeps) {
  const step = interval / substeps;
  const moved = (from, by, rate) => from.map((value, axis) => value + by * rate[axis]);
  let at = state;
  for (let count = 0; count < substeps; count++) {
    const first = motion(at);
    const second = motion(moved(at, 0.5 * step, first));
    const third = motion(moved(at, 0.5 * step, second));
    const fourth = motion(moved(at, step, third));
    at = at.map(
      (value, axis) =>
        value + (step / 6) * (first[axis] + 2 * second[axis] + 2 * third[axis] + fourth[axis]),
    );
  }
  return at;
}

/** Solve a small, positive definite system of equations by elimination. */
function solved(matrix, vector) {
  const rows = matrix.map((row, index) => [...row, vector[index]]);
  const size = rows.length;
  for (let pivot = 0; pivot < size; pivot++) {
    for (let row = pivot + 1; row < size; row++) {
      const share = rows[row][pivot] / rows[pivot][pivot];
      rows[row] = rows[row].map((value, column) => value - share * rows[pivot][column]);
    }
  }
  const found = new Array(size).fill(0);
  for (let row = size - 1; row >= 0; row--) {
    let rest = rows[row][size];
    for (let column = row + 1; column < size; column++) rest -= rows[row][column] * found[column];
    found[row] = rest / rows[row][row];
  }
  return found;
}

const rodRadius = 0.02;

/** Return the moment of inertia of a rod about its end: a capsule, as in `worlds/rods.py`. */
function rodMoment(mass, length) {
  const ends = (4 / 3) * rodRadius;
  const share = length / (length + ends);
  const middle = length ** 2 / 12 + rodRadius ** 2 / 4;
  const caps = 0.4 * rodRadius ** 2 + length ** 2 / 4 + (3 / 8) * length * rodRadius;
  return mass * (share * middle + (1 - share) * caps + length ** 2 / 4);
}
