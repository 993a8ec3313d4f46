// The controller of a run in the page: the same step as `empowerment.controller.reference`, in
// double precision over weights in single precision. Knows neither a page nor a system.
"use strict";

const activations = {
  identity: (x) => x,
  relu: (x) => Math.max(x, 0),
  sigmoid: (x) => 0.5 + 0.5 * Math.tanh(0.5 * x),
  tanh: Math.tanh,
};

/** Decode an array of little-endian numbers in single precision. */
function decodeArray(array) {
  const bytes = Uint8Array.from(atob(array.data), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const values = new Float64Array(bytes.length / 4);
  for (let i = 0; i < values.length; i++) values[i] = view.getFloat32(4 * i, true);
  return values;
}

/** Return the function that a network computes; weights have a row for each output. */
function makeNetwork(arrays, name, kinds) {
  const layers = kinds.map((kind, index) => ({
    weight: decodeArray(arrays[`${name}.${index}.weight`]),
    bias: decodeArray(arrays[`${name}.${index}.bias`]),
    activate: activations[kind],
  }));
  return (input) => {
    let value = input;
    for (const { weight, bias, activate } of layers) {
      const size = value.length;
      const output = new Array(bias.length);
      for (let row = 0; row < bias.length; row++) {
        let sum = bias[row];
        for (let column = 0; column < size; column++) {
          sum += weight[row * size + column] * value[column];
        }
        output[row] = activate(sum);
      }
      value = output;
    }
    return value;
  };
}

/** Return the function that scales a state for a network; angles become cosine and sine. */
function makeFeatures(centre, halfWidth, angles) {
  return (state) =>
    Array.from(state).flatMap((value, axis) =>
      angles.includes(axis)
        ? [Math.cos(value), Math.sin(value)]
        : [(2 * (value - centre[axis])) / halfWidth[axis]],
    );
}

const isSeen = (observation) => observation !== null && observation.every(Number.isFinite);

/** Return where each column of discrete actions begins in its encoding, and ends. */
const choiceGroups = (choices) =>
  choices.map((count, column) => {
    const end = choices.slice(0, column + 1).reduce((sum, each) => sum + each, 0);
    return [end - count, end];
  });

/** Return the index of the largest score of each column, the first on a tie. */
const choose = (scores, choices) =>
  choiceGroups(choices).map(([first, end]) => {
    const own = scores.slice(first, end);
    return own.indexOf(Math.max(...own));
  });

/** Return an action as the filter takes it, relative to the middle of its limits or one-hot. */
function encodeAction({ choices, low, high }, action) {
  if (!choices.length) return action.map((u, axis) => u - 0.5 * (low[axis] + high[axis]));
  return choices.flatMap((count, column) =>
    Array.from({ length: count }, (_, index) => (index === action[column] ? 1 : 0)),
  );
}

/**
 * Build the controller of a bundle.
 *
 * Its memory has a flag that is 1 after the first step, the filter's state, and the last action,
 * encoded; zeros restart it. An observation that is null, or not finite, counts as missing.
 */
function makeController({ description, arrays }) {
  const { low, high, choices, latent_size: latentSize } = description;
  const isDiscrete = choices.length > 0;
  const encodedSize = isDiscrete ? choices.reduce((sum, each) => sum + each, 0) : low.length;
  const middle = isDiscrete
    ? new Array(encodedSize).fill(0)
    : low.map((limit, axis) => 0.5 * (limit + high[axis]));
  const half = low.map((limit, axis) => 0.5 * (high[axis] - limit));
  const clip = (action) => action.map((u, axis) => Math.min(Math.max(u, low[axis]), high[axis]));
  const network = (name) => makeNetwork(arrays, name, description.networks[name]);
  const features = makeFeatures(
    decodeArray(arrays["states.centre"]),
    decodeArray(arrays["states.half_width"]),
    description.angles,
  );
  const policy = network("policy");
  const track = latentSize ? makeFilter(description, arrays, network) : null;
  const restart = () => new Array(1 + latentSize + encodedSize).fill(0);

  function step(observation, memory) {
    const seen = isSeen(observation);
    const started = memory[0] > 0.5;
    if (!seen && !started) return { action: clip(low.map(() => 0)), memory: restart() };
    let latent = memory.slice(1, 1 + latentSize);
    const last = memory.slice(1 + latentSize).map((u, axis) => u + middle[axis]);
    if (track) latent = track(seen ? observation : null, latent, last, started);
    else if (!seen) {
      return { action: isDiscrete ? choose(last, choices) : clip(last), memory: memory.slice() };
    }
    const output = policy(features(track ? latent : observation));
    if (isDiscrete) {
      const action = choose(output, choices);
      return { action, memory: [1, ...latent, ...encodeAction(description, action)] };
    }
    const relative = half.map((width, axis) => width * Math.tanh(output[axis]));
    const action = clip(relative.map((u, axis) => u + middle[axis]));
    return { action, memory: [1, ...latent, ...relative] };
  }

  return { restart, step };
}

/** Return the function that tracks the state: predict, then multiply by the measurement. */
function makeFilter(description, arrays, network) {
  const [recognise, start, transition, measure] = [
    "recognition",
    "start",
    "transition",
    "measurement",
  ].map(network);
  const [offset, scale, actionOffset, actionScale] = [
    "observations.offset",
    "observations.scale",
    "actions.offset",
    "actions.scale",
  ].map((name) => decodeArray(arrays[name]));
  const size = description.latent_size;
  const least = description.least_scale;
  const variance =
    description.scales === "square"
      ? (raw) => raw * raw + least * least
      : (raw) => (Math.max(raw, 0) + Math.log1p(Math.exp(-Math.abs(raw))) + least) ** 2;

  return (observation, latent, action, started) => {
    const scaled = observation && observation.map((x, axis) => (x - offset[axis]) / scale[axis]);
    if (!started) {
      return start(recognise(Array(description.num_initial).fill(scaled).flat()));
    }
    const applied = action.map((u, axis) => (u - actionOffset[axis]) / actionScale[axis]);
    const output = transition([...latent, ...applied]);
    const predicted = latent.map((z, axis) => (description.residual ? z : 0) + output[axis]);
    if (!scaled) return predicted;
    const measured = measure(scaled);
    return predicted.map((z, axis) => {
      const own = variance(output[size + axis]);
      const other = variance(measured[size + axis]);
      return z + (own / (own + other)) * (measured[axis] - z);
    });
  };
}

/** Return the region that the bound of a bundle is fitted in. */
function boundRegion({ arrays }) {
  const centre = decodeArray(arrays["states.centre"]);
  const half = decodeArray(arrays["states.half_width"]);
  return {
    low: centre.map((at, axis) => at - half[axis]),
    high: centre.map((at, axis) => at + half[axis]),
  };
}

/** Return the function that estimates empowerment in nats at what the policy sees; or null. */
function makeBound({ description, arrays }) {
  if (!description.networks.bound) return null;
  const network = makeNetwork(arrays, "bound", description.networks.bound);
  const { angles } = description;
  const { low, high } = boundRegion({ arrays });
  const features = makeFeatures(
    decodeArray(arrays["states.centre"]),
    decodeArray(arrays["states.half_width"]),
    angles,
  );
  const within = (value, axis) =>
    angles.includes(axis) ? value : Math.min(Math.max(value, low[axis]), high[axis]);
  return (state) => network(features(Array.from(state).map(within)))[0];
}
