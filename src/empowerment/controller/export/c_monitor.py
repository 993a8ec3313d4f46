"""The monitor of the model in C; words between @ are placeholders."""

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.monitor import AFTER_MISSING, per_spread


def monitor_arrays(bundle: Bundle) -> dict[str, np.ndarray]:
    """Return the arrays of the monitor, if there is one, beside its decoder."""
    if bundle.description.monitor is None:
        return {}
    with np.errstate(over="ignore"):
        factor = per_spread(bundle).astype(np.float32)
    if not np.isfinite(factor).all():
        raise ValueError(
            "Expected the scales of observations and innovations to be finite in single precision "
            "when inverted; they overflow."
        )
    return {"per_spread": factor}


def monitor_words(bundle: Bundle) -> dict[str, str]:
    """Return what the templates say of the monitor: nothing without one."""
    limits = bundle.description.monitor
    if limits is None:
        return dict.fromkeys((*_PARTS, "PREDICTING", "PREDICTED", "PREDICTED_PARAMETER"), "")
    numbers = {
        "THRESHOLD": limits.threshold,
        "MOST": limits.most,
        "WEIGHT": limits.weight,
        "RUNNING": limits.running,
        "SETTLING": limits.settling,
        "AFTER_MISSING": AFTER_MISSING,
    }
    parts = dict(_PARTS)
    for word, value in numbers.items():
        text = f"{np.float32(value):.9g}" if isinstance(value, float) else str(value)
        text = text if isinstance(value, int) or {".", "e"} & set(text) else f"{text}.0"
        parts = {
            part: code.replace(f"@{word}@", text + ("u" if isinstance(value, int) else "f"))
            for part, code in parts.items()
        }
    return parts | {
        "PREDICTING": "_predicting",
        "PREDICTED": ", predicted",
        "PREDICTED_PARAMETER": ", float *predicted",
    }


_PARTS = {
    "MONITOR_STATE": """\
  float levels[@UPPER@_OBSERVATION_SIZE]; /* the smoothed squared innovations of each axis */
  uint64_t settling, unfamiliar; /* observations not to judge yet; unfamiliar ones running */
  int unfamiliar_axis; /* the axis with the largest level */
""",
    "MONITOR_INDEX": "  int i;\n",
    "MONITOR_RESET": """\
  for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++) it->levels[i] = 0.0f;
  it->settling = @UPPER@_SETTLING;
  it->unfamiliar = 0;
  it->unfamiliar_axis = 0;
""",
    "MONITOR_LIMITS": """\
#define @UPPER@_THRESHOLD @THRESHOLD@ /* levels above are unfamiliar */
#define @UPPER@_LARGEST_SQUARE @MOST@ /* of an innovation in units of its spread */
#define @UPPER@_LEVEL_WEIGHT @WEIGHT@ /* of the latest square in a level */
#define @UPPER@_RUNNING @RUNNING@ /* consecutive unfamiliar observations that are a fault */
#define @UPPER@_SETTLING @SETTLING@ /* observations after the start that are not judged */
#define @UPPER@_AFTER_MISSING @AFTER_MISSING@ /* and after each that was missing */
""",
    "MONITOR": """\
/* Judge an observation that the filter has just taken: is it far from what the model expects of
   the state that was predicted? Returns whether that is a fault. */
static inline int @NAME@_is_unfamiliar(@NAME@_controller *it, const float *observation,
                                       const float *predicted) {
  float expected[@UPPER@_OBSERVATION_SIZE];
  int i, worst = 0;
  if (it->settling > 0) {
    it->settling--;
    return 0;
  }
  @NAME@_decoder(predicted, expected);
  for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++) {
    const float shifted = observation[i] - @NAME@_offset[i];
    const float innovation = shifted * @NAME@_per_spread[i] - expected[i];
    float square = innovation * innovation;
    /* What is not a number is as large as can be. */
    if (!(square < @UPPER@_LARGEST_SQUARE)) square = @UPPER@_LARGEST_SQUARE;
    it->levels[i] += @UPPER@_LEVEL_WEIGHT * (square - it->levels[i]);
    if (it->levels[i] > it->levels[worst]) worst = i;
  }
  it->unfamiliar_axis = worst;
  if (!(it->levels[worst] > @UPPER@_THRESHOLD)) {
    it->unfamiliar = 0;
    return 0;
  }
  it->unfamiliar++;
  return it->unfamiliar >= @UPPER@_RUNNING;
}

""",
    "MONITOR_INPUT": "  float predicted[@UPPER@_LATENT_SIZE] = {0.0f};\n",
    "MONITOR_JUDGE": """\
    if (@NAME@_is_unfamiliar(it, observation, predicted))
      return @NAME@_stop(it, @UPPER@_FAULT_UNFAMILIAR, action);
""",
    "MONITOR_MISS": """\
    it->settling += @UPPER@_AFTER_MISSING;
    if (it->settling > @UPPER@_SETTLING) it->settling = @UPPER@_SETTLING;
""",
    "MONITOR_PREDICTION": "    predicted[i] = memory[1 + i];\n",
    "STEP_ALONE": """\
/* Compute the action and the next state; next_state may be the same array as state.
   Returns whether the observation was used. */
static inline int @NAME@_step(const float *observation, const float *state, float *action,
                              float *next_state) {
  float predicted[@UPPER@_LATENT_SIZE];
  return @NAME@_step_predicting(observation, state, action, next_state, predicted);
}
""",
}
"""Parts of the code that are there with a monitor only, by placeholder."""

HARNESS = """
void control_levels(float *levels);

void control_levels(float *levels) { memcpy(levels, it.levels, sizeof it.levels); }
"""
"""Function of the shared library for validation, with a monitor only."""
