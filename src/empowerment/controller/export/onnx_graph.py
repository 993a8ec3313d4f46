"""Export to ONNX: the step as a graph, built node by node."""

from typing import Any

import numpy as np
import onnx  # pyright: ignore[reportMissingImports]
import onnxruntime  # pyright: ignore[reportMissingImports]
from onnx import TensorProto, helper, numpy_helper  # pyright: ignore[reportMissingImports]

from empowerment.controller.bundle import Bundle
from empowerment.controller.choices import labels
from empowerment.controller.export.validation import Step
from empowerment.controller.folding import Layer, fold

OPSET = 17
"""Operator set of the graph; widely supported."""

_IR_VERSION = 8  # The matching IR version.
_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}


class _Graph:
    """Nodes and constants, numbered in the order of creation."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.constants: list = []

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **settings: Any) -> str:
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **settings))
        return name

    def network(self, layers: list[Layer], value: str) -> str:
        for layer in layers:
            value = self.node("MatMul", value, self.constant(layer.weight.T))
            value = self.node("Add", value, self.constant(layer.bias))
            if layer.activation != "identity":
                value = self.node(_ACTIVATIONS[layer.activation], value)
        return value

    def part(self, value: str, begin: int, end: int) -> str:
        places = [self.constant([place], np.int64) for place in (begin, end)]
        return self.node("Slice", value, *places)

    def all_finite(self, value: str) -> str:
        """Return whether all of a vector is finite, as a vector of size one."""
        odd = self.node("Or", self.node("IsNaN", value), self.node("IsInf", value))
        return self.node("Not", self.node("Cast", self._largest(odd), to=TensorProto.BOOL))

    def _largest(self, flags: str) -> str:
        number = self.node("Cast", flags, to=TensorProto.FLOAT)
        return self.node("ReduceMax", number, axes=[0], keepdims=1)


def onnx_model(bundle: Bundle) -> bytes:
    """Build the graph of a step, from `observation` and `state` to `action` and `next_state`.

    If there is a bound, then also to `empowerment`.

    Args:
        bundle: The controller bundle.

    Returns:
        The serialised model, which has passed ONNX's checker.
    """
    about = bundle.description
    graph, folded = _Graph(), fold(bundle)
    low, high = bundle.limits
    size = about.latent_size
    begun = graph.node("Greater", graph.part("state", 0, 1), graph.constant([0.5]))
    before = graph.part("state", 1 + size, about.memory_size)
    seen = graph.all_finite("observation")
    offset = graph.constant(bundle.arrays["observations.offset" if size else "states.centre"])
    whole = graph.node("Where", seen, "observation", offset)
    shifted = graph.node("Sub", whole, offset)
    if size:
        latent = graph.part("state", 1, 1 + size)
        tracked = _track(graph, bundle, folded, shifted, latent, begun, seen)
        tracked = graph.node("Where", graph.all_finite(tracked), tracked, latent)
        acts = graph.node("Or", begun, seen)
        latent = graph.node("Where", acts, tracked, latent)
        value = latent
    else:
        value, acts, latent = _features(graph, bundle, whole, shifted), seen, None
    relative = graph.network(folded["policy"], value)
    if not about.choices:
        relative = graph.node("Tanh", relative)
        relative = graph.node("Mul", relative, graph.constant((high - low) * np.float32(0.5)))
    acts = graph.node("And", acts, graph.all_finite(relative))
    relative = graph.node("Where", acts, relative, before)
    started = graph.node("Or", acts, begun)
    if about.choices:
        action, encoded = _choose(graph, relative, about.choices)
        relative = graph.node("Where", started, encoded, relative)
    else:
        action = graph.node("Add", relative, graph.constant(bundle.middle))
    action = graph.node("Where", started, action, graph.constant(bundle.idle))
    action = graph.node("Max", action, graph.constant(low))
    graph.node("Min", action, graph.constant(high), output="action")
    flag = graph.node("Cast", started, to=TensorProto.FLOAT)
    parts = [flag, relative] if latent is None else [flag, latent, relative]
    graph.node("Concat", *parts, output="next_state", axis=0)
    if about.has_bound:
        value = whole if latent is None else latent
        known = graph.node("And", started, seen) if latent is None else started
        _empowerment(graph, bundle, folded["bound"], value, known)
    return _finished(graph, bundle)


def runtime_step(data: bytes) -> Step:
    """Load a model into onnxruntime and return its step.

    Args:
        data: The serialised model.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    names = [each.name for each in session.get_outputs()]

    def step(observation: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, ...]:
        inputs = {"observation": observation, "state": memory}
        return tuple(map(np.asarray, session.run(names, inputs)))

    return step


def _track(
    graph: _Graph,
    bundle: Bundle,
    folded: dict[str, list[Layer]],
    shifted: str,
    latent: str,
    begun: str,
    seen: str,
) -> str:
    """Predict and combine with the measurement; at the start, recognise the state."""
    about = bundle.description
    size = about.latent_size
    inputs = graph.part("state", 1, about.memory_size)
    output = graph.network(folded["transition"], inputs)
    predicted = graph.part(output, 0, size)
    if about.residual:
        predicted = graph.node("Add", predicted, latent)
    own = _variance(graph, bundle, graph.part(output, size, 2 * size))
    output = graph.network(folded["measurement"], shifted)
    other = _variance(graph, bundle, graph.part(output, size, 2 * size))
    share = graph.node("Div", own, graph.node("Add", own, other))
    ahead = graph.node("Sub", graph.part(output, 0, size), predicted)
    fused = graph.node("Add", predicted, graph.node("Mul", share, ahead))
    measured = graph.node("And", seen, graph.all_finite(fused))
    tracked = graph.node("Where", measured, fused, predicted)
    first = shifted
    if about.num_initial > 1:
        first = graph.node("Concat", *[shifted] * about.num_initial, axis=0)
    first = graph.network(folded["start"], graph.network(folded["recognition"], first))
    return graph.node("Where", begun, tracked, first)


def _empowerment(
    graph: _Graph, bundle: Bundle, layers: list[Layer], state: str, known: str
) -> None:
    """Evaluate the bound at the nearest state in its region; NaN where the state is not known."""
    lowest, highest = map(graph.constant, bundle.region)
    value = graph.node("Min", graph.node("Max", state, lowest), highest)
    if not bundle.description.latent_size:
        shifted = graph.node("Sub", value, graph.constant(bundle.arrays["states.centre"]))
        value = _features(graph, bundle, state, shifted)
    value = graph.network(layers, value)
    graph.node("Where", known, value, graph.constant([np.nan]), output="empowerment")


def _choose(graph: _Graph, scores: str, choices: tuple[int, ...]) -> tuple[str, str]:
    """Return the index of the largest score of each column, and the one-hot encoding."""
    indices, encoded, begin = [], [], 0
    for count in choices:
        part = graph.part(scores, begin, begin + count)
        index = graph.node("ArgMax", part, axis=0, keepdims=1)  # The first on a tie.
        indices.append(graph.node("Cast", index, to=TensorProto.FLOAT))
        is_chosen = graph.node("Equal", index, graph.constant(np.arange(count), np.int64))
        encoded.append(graph.node("Cast", is_chosen, to=TensorProto.FLOAT))
        begin += count
    return graph.node("Concat", *indices, axis=0), graph.node("Concat", *encoded, axis=0)


def _variance(graph: _Graph, bundle: Bundle, raw: str) -> str:
    """Convert the raw output of a network to a squared scale."""
    least = bundle.description.least_scale
    if bundle.description.scales == "square":
        return graph.node("Add", graph.node("Mul", raw, raw), graph.constant([least**2]))
    scale = graph.node("Add", graph.node("Softplus", raw), graph.constant([least]))
    return graph.node("Mul", scale, scale)


def _features(graph: _Graph, bundle: Bundle, whole: str, shifted: str) -> str:
    """Compute the policy's input from the observation."""
    angles = bundle.description.angles
    if not angles:
        return shifted
    parts = []
    for axis in range(bundle.description.observation_size):
        if axis in angles:
            angle = graph.part(whole, axis, axis + 1)
            parts += [graph.node("Cos", angle), graph.node("Sin", angle)]
        else:
            parts.append(graph.part(shifted, axis, axis + 1))
    return graph.node("Concat", *parts, axis=0)


def _finished(graph: _Graph, bundle: Bundle) -> bytes:
    """Build and check the model."""
    about = bundle.description

    def vector(name: str, size: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])

    outputs = [vector("action", about.action_size), vector("next_state", about.memory_size)]
    if about.has_bound:
        outputs.append(vector("empowerment", 1))
    body = helper.make_graph(
        graph.nodes,
        "controller",
        [vector("observation", about.observation_size), vector("state", about.memory_size)],
        outputs,
        initializer=graph.constants,
    )
    model = helper.make_model(
        body,
        producer_name="empowerment",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
    )
    model.doc_string = (
        "A state of zeros restarts the controller; an observation that is not finite counts as "
        f"missing. Observation: {', '.join(about.observation_names)}. Action: "
        f"{', '.join(labels(about.action_names, about.choices))}."
    )
    if about.has_bound:
        model.doc_string += (
            " Empowerment is in nats, of the state that the action is for; NaN where that is not "
            "known."
        )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()
