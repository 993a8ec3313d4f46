"""Export to C99: one header with the step, one with the weights."""

from collections.abc import Mapping, Sequence

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.choices import labels
from empowerment.controller.export.c_monitor import monitor_arrays, monitor_words
from empowerment.controller.export.c_safety import (
    CONSTANTS,
    SAFETY,
    safety_arrays,
    safety_words,
)
from empowerment.controller.export.c_template import (
    ACT,
    ACT_DISCRETE,
    BOUND,
    CHOOSE,
    FILTER,
    FINISH,
    FINISH_DISCRETE,
    HEADER,
    NEAREST_LATENT,
    NEAREST_OBSERVED,
    NO_FILTER,
    WEIGHTS,
    WITHIN,
)
from empowerment.controller.folding import Layer, fold
from empowerment.controller.safety import Safety

_PER_LINE = 8


def c_files(bundle: Bundle, name: str, safety: Safety | None = None) -> dict[str, str]:
    """Generate the code.

    Args:
        bundle: The controller bundle.
        name: Prefix of every symbol.
        safety: Fault limits; there is no record in C.

    Returns:
        The text of each file, by file name.
    """
    safety = safety or Safety()
    if not safety.monitor:
        bundle = bundle.without_monitor()
    about, folded = bundle.description, fold(bundle)
    low, high = bundle.limits
    offset = bundle.arrays["observations.offset" if about.latent_size else "states.centre"]
    vectors = {"offset": offset, **safety_arrays(bundle, safety), **monitor_arrays(bundle)}
    if not about.choices:
        vectors |= {
            "middle": bundle.middle,
            "half": (high - low) * np.float32(0.5),
            "low": low,
            "high": high,
            "idle": bundle.idle,
        }
    if about.has_bound:
        vectors |= dict(zip(("lowest", "highest"), bundle.region, strict=True))
    for network, layers in folded.items():
        for index, layer in enumerate(layers):
            vectors[f"{network}_{index}_weight"] = layer.weight.T
            vectors[f"{network}_{index}_bias"] = layer.bias
    arrays = [_array(f"{name}_{each}", values) for each, values in vectors.items()]
    widest = max(max(layer.weight.shape) for layers in folded.values() for layer in layers)
    body = FILTER if about.latent_size else NO_FILTER
    if about.choices:
        body, act, finish = CHOOSE + "\n" + body, ACT_DISCRETE, FINISH_DISCRETE
    else:
        act, finish = ACT, FINISH
    words = {
        "ACT": act,
        "FINISH": finish,
        "NAME": name,
        "UPPER": name.upper(),
        "OBSERVATION_NAMES": comment(about.observation_names),
        "ACTION_NAMES": comment(labels(about.action_names, about.choices)),
        "SEEN": about.observation_size,
        "DONE": about.action_size,
        "CHOICES": ", ".join(map(str, about.choices)),
        "LATENT": about.latent_size,
        "MEMORY": about.memory_size,
        "INITIAL": about.num_initial,
        "WIDEST": widest,
        "LEAST": _number(about.least_scale),
        "VARIANCE": "softplus(raw)" if about.scales == "softplus" else "square(raw)",
        "RESIDUAL": "memory[1 + i] + " if about.residual else "",
        "NETWORKS": "\n".join(_network(name, each, folded[each]) for each in folded),
        "FEATURES": _features(about.observation_size, about.angles, "observation[{}]", name),
        "ARRAYS": "\n".join(arrays),
    }
    words["VARIANCE"] = f"{name}_{words['VARIANCE']}"
    words |= safety_words(safety)
    words |= {part: filled(text, words) for part, text in monitor_words(bundle).items()}
    words["BOUND"] = filled(_bound(bundle, name), words) if about.has_bound else ""
    weights = {each: sum(layer.weight.size for layer in folded[each]) for each in folded}
    once, unstepped = weights.get("decoder", 0), weights.get("bound", 0)
    parts = {
        "BODY": body,
        "CONSTANTS": CONSTANTS,
        "SAFETY": filled(SAFETY, {"LIMIT": words["LIMIT"]}),
        # An observation that cannot be used costs a second attempt, without it.
        "PRODUCTS": str(2 * (sum(weights.values()) - once - unstepped) + once),
        "SOFTPLUSES": str(4 * about.latent_size if about.scales == "softplus" else 0),
        "BYTES": str(4 * sum(values.size for values in vectors.values())),
    }
    code = filled(HEADER, words | {part: filled(text, words) for part, text in parts.items()})
    return {f"{name}.h": code, f"{name}_weights.h": filled(WEIGHTS, words)}


def _bound(bundle: Bundle, name: str) -> str:
    """Generate the function that returns empowerment."""
    about, nearest = bundle.description, NEAREST_LATENT
    if not about.latent_size:
        value = f"{name}_within(observation[{{0}}], {name}_lowest[{{0}}], {name}_highest[{{0}}])"
        features = _features(about.observation_size, about.angles, value, name)
        nearest = filled(NEAREST_OBSERVED, {"NEAREST_FEATURES": features})
    return WITHIN + filled(BOUND, {"NEAREST": nearest})


def filled(text: str, words: Mapping[str, object]) -> str:
    """Replace the words between @ in a template."""
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    return text


def comment(names: Sequence[str]) -> str:
    """Make names safe inside a comment."""
    joined = ", ".join("".join(c if c.isprintable() else " " for c in name) for name in names)
    return joined.replace("*/", "* /").replace("@", "at")[:500]


def _array(name: str, values: np.ndarray) -> str:
    """Generate an array; nine digits represent single precision exactly."""
    numbers = [_number(value) for value in values.ravel().tolist()]
    lines = [
        "  " + ", ".join(numbers[i : i + _PER_LINE]) for i in range(0, len(numbers), _PER_LINE)
    ]
    return f"static const float {name}[{len(numbers)}] = {{\n" + ",\n".join(lines) + "\n};"


def _number(value: float) -> str:
    text = f"{value:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def _network(name: str, network: str, layers: list[Layer]) -> str:
    """Generate the function of a network; hidden layers alternate between two buffers."""
    lines = []
    source, last = "input", len(layers) - 1
    for index, layer in enumerate(layers):
        out_size, in_size = layer.weight.shape
        target = "output" if index == last else ("one", "two")[index % 2]
        each = f"{name}_{network}_{index}"
        arguments = f"{each}_weight, {each}_bias, {in_size}, {out_size}, {source}, {target}"
        lines.append(f"  {name}_dense({arguments});")
        if layer.activation != "identity":
            lines.append(f"  {name}_{layer.activation}({out_size}, {target});")
        source = target
    used = {0: "", 1: "one"}.get(last, "one two").split()
    buffers = [f"  float {buffer}[{name.upper()}_WIDEST];" for buffer in used]
    head = f"static inline void {name}_{network}(const float *input, float *output) {{"
    return "\n".join([head, *buffers, *lines, "}", ""])


def _features(size: int, angles: tuple[int, ...], value: str, name: str) -> str:
    """Generate the input of a network from an observation, without a filter.

    Args:
        size: Number of axes.
        angles: Those that are angles.
        value: Expression for the value of another axis, with a place for its number.
        name: Prefix of every symbol.
    """
    lines, place = [], 0
    for axis in range(size):
        if axis in angles:
            lines.append(f"  input[{place}] = cosf(observation[{axis}]);")
            lines.append(f"  input[{place + 1}] = sinf(observation[{axis}]);")
            place += 2
        else:
            lines.append(f"  input[{place}] = {value.format(axis)} - {name}_offset[{axis}];")
            place += 1
    return "\n".join(lines)
