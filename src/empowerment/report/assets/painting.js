// Pictures in the page: a system, and a landscape with where the system is.
"use strict";

/** Fit a canvas to its place on the screen; return its context and its size. */
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Return how places of a system are placed in a picture of a size, and back. */
function makeMapping(view, width, height) {
  const scale = Math.min(width / view.width, height / view.height);
  return {
    scale,
    to: ([x, y]) => [width / 2 + scale * (x - view.x), height / 2 - scale * (y - view.y)],
    from: ([x, y]) => [view.x + (x - width / 2) / scale, view.y - (y - height / 2) / scale],
  };
}

/** Return the strokes by which systems draw themselves, in their own units. */
function makePen(context, mapping, colours) {
  const { scale, to } = mapping;
  const stroke = (points, width, colour) => {
    context.beginPath();
    points.forEach((point) => context.lineTo(...to(point)));
    context.lineWidth = width;
    context.strokeStyle = colours[colour];
    context.lineCap = context.lineJoin = "round";
    context.stroke();
  };
  const head = (tip, angle, size, colour) => {
    const barb = (turn) => [
      tip[0] - size * Math.cos(angle + turn),
      tip[1] - size * Math.sin(angle + turn),
    ];
    stroke([barb(0.5), tip, barb(-0.5)], 3, colour);
  };
  return {
    line: (points, width, colour = "ink") => stroke(points, scale * width, colour),
    disc(centre, radius, colour) {
      context.beginPath();
      context.arc(...to(centre), scale * radius, 0, 2 * Math.PI);
      context.fillStyle = colours[colour];
      context.fill();
    },
    ring(centre, radius) {
      context.beginPath();
      context.arc(...to(centre), scale * radius, 0, 2 * Math.PI);
      context.lineWidth = 2;
      context.strokeStyle = colours.faint;
      context.stroke();
    },
    box([left, bottom], [right, top], colour = "faint") {
      const [x, y] = to([left, top]);
      context.fillStyle = context.strokeStyle = colours[colour];
      context.lineWidth = 2;
      const size = [scale * (right - left), scale * (top - bottom)];
      if (colour === "faint") context.strokeRect(x, y, ...size);
      else context.fillRect(x, y, ...size);
    },
    arrow([x, y], [alongX, alongY]) {
      const length = Math.hypot(alongX, alongY);
      if (scale * length < 4) return;
      const tip = [x + alongX, y + alongY];
      stroke([[x, y], tip], 3, "action");
      head(tip, Math.atan2(alongY, alongX), 7 / scale, "action");
    },
    /** An arc as long as a torque is large, anticlockwise if it is positive. */
    turn([x, y], strength) {
      if (Math.abs(strength) < 0.02) return;
      const radius = 44 / scale;
      const around = (angle) => [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
      const end = Math.PI / 2 + 0.75 * Math.PI * strength;
      const angles = Array.from({ length: 17 }, (_, i) => Math.PI / 2 + ((end - Math.PI / 2) * i) / 16);
      stroke(angles.map(around), 3, "action");
      head(around(end), end + (Math.sign(strength) * Math.PI) / 2, 7 / scale, "action");
    },
  };
}

/** Draw the system of an actor between its last two states. */
function paintActor(canvas, simulation, actor, share, colours) {
  const { context, width, height } = fitted(canvas);
  const state = actor.state.map(
    (value, axis) => actor.before[axis] + share * (value - actor.before[axis]),
  );
  const mapping = makeMapping(simulation.system.view, width, height);
  const accent = actor.name === "policy" ? colours.policy : colours.random;
  simulation.system.draw(makePen(context, mapping, { ...colours, accent }), state, actor.action);
  if (actor.isSeen && !actor.isOver) return;
  context.fillStyle = colours.ink;
  context.font = "13px sans-serif";
  context.fillText(actor.isOver ? "the episode has ended" : "not observed", 8, 18);
}

const mapFineness = 96;

/** Paint a landscape to a canvas of its own: values are interpolated, not colours. */
function paintedLandscape(landscape, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = mapFineness;
  const context = canvas.getContext("2d");
  const image = context.createImageData(mapFineness, mapFineness);
  const { x, y, limits } = landscape;
  const along = (axis, index) =>
    axis[0] + ((axis[axis.length - 1] - axis[0]) * index) / (mapFineness - 1);
  for (let row = 0; row < mapFineness; row++) {
    for (let column = 0; column < mapFineness; column++) {
      const point = [along(x, column), along(y, mapFineness - 1 - row)];
      const share = (interpolated(landscape, point) - limits[0]) / (limits[1] - limits[0]);
      const place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
      image.data.set([...scale[Math.round(place)], 255], 4 * (row * mapFineness + column));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const mapMargin = { left: 44, right: 8, top: 8, bottom: 34 };

/** Return how coordinates are placed in the picture of a landscape, and back. */
function mapPlaces({ x, y }, width, height) {
  const [left, top] = [mapMargin.left, mapMargin.top];
  const [wide, high] = [width - left - mapMargin.right, height - top - mapMargin.bottom];
  const [rangeX, rangeY] = [x, y].map((axis) => axis[axis.length - 1] - axis[0]);
  return {
    area: [left, top, wide, high],
    to: ([atX, atY]) => [
      left + (wide * (atX - x[0])) / rangeX,
      top + high - (high * (atY - y[0])) / rangeY,
    ],
    from: ([atX, atY]) => [
      x[0] + (rangeX * (atX - left)) / wide,
      y[0] + (rangeY * (top + high - atY)) / high,
    ],
  };
}

/** Draw a landscape with labelled axes, the way of the policy, and where both actors are. */
function paintMap(canvas, landscape, picture, ways, units, colours) {
  const { context, width, height } = fitted(canvas);
  const places = mapPlaces(landscape, width, height);
  const [left, top, wide, high] = places.area;
  context.drawImage(picture, left, top, wide, high);
  context.fillStyle = colours.ink;
  context.font = "12px sans-serif";
  const label = (axis) => {
    const name = landscape.names[axis];
    return units[name] ? `${name} / ${units[name]}` : name;
  };
  const ends = (axis) => [axis[0], axis[axis.length - 1]].map((value) => value.toFixed(1));
  const [low, far] = [ends(landscape.x), ends(landscape.y)];
  context.textAlign = "left";
  context.fillText(low[0], left, height - 18);
  context.textAlign = "right";
  context.fillText(low[1], left + wide, height - 18);
  context.fillText(far[0], left - 5, top + high);
  context.fillText(far[1], left - 5, top + 10);
  context.textAlign = "center";
  context.fillText(label(0), left + wide / 2, height - 4);
  context.save();
  context.translate(12, top + high / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(label(1), 0, 0);
  context.restore();
  context.save();
  context.beginPath();
  context.rect(left, top, wide, high);
  context.clip();
  for (const { name, trail, now } of ways) {
    context.fillStyle = name === "policy" ? "#fff" : "rgba(255, 255, 255, 0.45)";
    trail.forEach((point) => {
      const [x, y] = places.to(point);
      context.fillRect(x - 1.5, y - 1.5, 3, 3);
    });
    const [x, y] = places.to(now);
    context.beginPath();
    if (name === "policy") context.arc(x, y, 7, 0, 2 * Math.PI);
    else context.rect(x - 5, y - 5, 10, 10);
    context.fillStyle = colours[name];
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = "#fff";
    context.stroke();
  }
  context.restore();
}
