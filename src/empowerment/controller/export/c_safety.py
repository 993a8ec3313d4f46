"""The safety functions of the controller in C; words between @ are placeholders."""

import numpy as np

from empowerment.controller.bundle import Bundle
from empowerment.controller.safety import Safety, largest_change, safe_action

FAULTS = ("none", "missing", "late", "late_share", "unfamiliar")
"""Kinds of faults, by their number in C."""

_LARGEST = (1 << 31) - 1


def safety_arrays(bundle: Bundle, safety: Safety) -> dict[str, np.ndarray]:
    """Return the safe action, and the largest change if there is one."""
    arrays = {"safe": safe_action(safety, bundle)}
    change = largest_change(safety, bundle)
    return arrays if change is None else arrays | {"change": change}


def safety_words(safety: Safety) -> dict[str, object]:
    """Return what the templates say of the limits."""
    for name in ("max_missing", "max_late", "window"):
        if getattr(safety, name) > _LARGEST:
            raise ValueError(
                f"Expected {name} to be at most {_LARGEST} in C; got {getattr(safety, name)}."
            )
    interval = 0 if safety.interval is None else max(round(safety.interval * 1e9), 1)
    return {
        "MAX_MISSING": safety.max_missing,
        "INTERVAL": interval,
        "MAX_LATE": safety.max_late,
        "WINDOW": safety.window,
        "MOST_LATE": int(safety.late_share * safety.window),
        "LIMIT": "" if safety.max_change is None else LIMIT,
    }


CONSTANTS = """\
#define @UPPER@_MAX_MISSING @MAX_MISSING@u /* consecutive missing observations that are a fault */
#define @UPPER@_INTERVAL @INTERVAL@u /* nanoseconds between steps; 0: late steps are no fault */
#define @UPPER@_MAX_LATE @MAX_LATE@u /* consecutive missed cycles that are a fault */
#define @UPPER@_WINDOW @WINDOW@u /* cycles in the window */
#define @UPPER@_MOST_LATE @MOST_LATE@u /* more missed cycles in the window are a fault */
@MONITOR_LIMITS@
enum {
  @UPPER@_NO_FAULT = 0,
  @UPPER@_FAULT_MISSING = 1,
  @UPPER@_FAULT_LATE = 2,
  @UPPER@_FAULT_LATE_SHARE = 3,
  @UPPER@_FAULT_UNFAMILIAR = 4
};

typedef struct {
  float state[@UPPER@_STATE_SIZE];
  float done[@UPPER@_ACTION_SIZE]; /* the action before, as it was applied */
  uint64_t num_steps, num_missing, num_late, num_faults;
  uint64_t last, late_running; /* time of the last step, and missed cycles running */
  uint32_t missing, place, late_count;
  int fault; /* 0, or the kind of the fault since the last reset */
  int has_last;
@MONITOR_STATE@  uint8_t late[@UPPER@_WINDOW];
} @NAME@_controller;
"""

SAFETY = """\
/* Clear the state and any fault; counters are kept. */
static inline void @NAME@_reset(@NAME@_controller *it) {
@MONITOR_INDEX@  memset(it->state, 0, sizeof it->state);
  memcpy(it->done, @NAME@_safe, sizeof it->done);
  memset(it->late, 0, sizeof it->late);
  it->late_running = 0;
  it->missing = it->place = it->late_count = 0;
  it->fault = @UPPER@_NO_FAULT;
  it->has_last = 0;
@MONITOR_RESET@}

/* Begin: clear everything, counters too. */
static inline void @NAME@_init(@NAME@_controller *it) {
  memset(it, 0, sizeof *it);
  @NAME@_reset(it);
}

static inline void @NAME@_push_late(@NAME@_controller *it, uint8_t flag) {
  it->late_count += flag;
  it->late_count -= it->late[it->place];
  it->late[it->place] = flag;
  it->place = it->place + 1u < @UPPER@_WINDOW ? it->place + 1u : 0u;
}

/* Count the cycles that were missed since the last step; return the kind of the fault, if any. */
static inline int @NAME@_tick(@NAME@_controller *it, uint64_t now) {
#if @UPPER@_INTERVAL == 0
  (void)it;
  (void)now;
  return @UPPER@_NO_FAULT;
#else
  const uint64_t interval = @UPPER@_INTERVAL;
  const uint64_t gap = now > it->last ? now - it->last : 0;
  const int has_last = it->has_last;
  uint64_t missed, i;
  it->last = now;
  it->has_last = 1;
  if (!has_last) return @UPPER@_NO_FAULT;
  missed = gap / interval + (gap % interval >= interval - interval / 2 ? 1u : 0u);
  if (missed <= 1) {
    it->late_running = 0;
    @NAME@_push_late(it, 0);
    return @UPPER@_NO_FAULT;
  }
  missed -= 1;
  it->num_late += missed;
  it->late_running += missed;
  for (i = 0; i < missed && i < @UPPER@_WINDOW; i++) @NAME@_push_late(it, 1);
  @NAME@_push_late(it, 0);
  if (it->late_running >= @UPPER@_MAX_LATE) return @UPPER@_FAULT_LATE;
  return it->late_count > @UPPER@_MOST_LATE ? @UPPER@_FAULT_LATE_SHARE : @UPPER@_NO_FAULT;
#endif
}

/* Latch the safe action. */
static inline int @NAME@_stop(@NAME@_controller *it, int fault, float *action) {
  if (it->fault == @UPPER@_NO_FAULT) {
    it->fault = fault;
    it->num_faults++;
  }
  memcpy(action, @NAME@_safe, sizeof @NAME@_safe);
  return it->fault;
}

@MONITOR@/* Control one cycle: an observation, or NULL if none has arrived, and the time of a
   monotonic clock in nanoseconds. Returns the kind of the fault; after one the action is the safe
   one until @NAME@_reset. The action is always finite and within its limits. */
static inline int @NAME@_control(@NAME@_controller *it, const float *observation, uint64_t now,
                                 float *action) {
@MONITOR_INPUT@  int i, fault, used = 0;
  it->num_steps++;
  if (it->fault == @UPPER@_NO_FAULT) {
    fault = @NAME@_tick(it, now);
    if (fault != @UPPER@_NO_FAULT) return @NAME@_stop(it, fault, action);
  } else {
    return @NAME@_stop(it, it->fault, action);
  }
  if (observation != NULL) {
    used = @NAME@_step@PREDICTING@(observation, it->state, action, it->state@PREDICTED@);
  } else {
    float nothing[@UPPER@_OBSERVATION_SIZE];
    for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++) nothing[i] = NAN;
    (void)@NAME@_step@PREDICTING@(nothing, it->state, action, it->state@PREDICTED@);
  }
  if (used) {
    it->missing = 0;
@MONITOR_JUDGE@  } else {
@MONITOR_MISS@    it->num_missing++;
    it->missing++;
    if (it->missing >= @UPPER@_MAX_MISSING)
      return @NAME@_stop(it, @UPPER@_FAULT_MISSING, action);
  }
  if (!(it->state[0] > 0.5f)) memcpy(action, @NAME@_safe, sizeof @NAME@_safe);
@LIMIT@  memcpy(it->done, action, sizeof it->done);
  return @UPPER@_NO_FAULT;
}
"""

LIMIT = """\
  for (i = 0; i < @UPPER@_ACTION_SIZE; i++) {
    const float least = it->done[i] - @NAME@_change[i], most = it->done[i] + @NAME@_change[i];
    float a = action[i] < least ? least : action[i] > most ? most : action[i];
    a = a < @NAME@_low[i] ? @NAME@_low[i] : a > @NAME@_high[i] ? @NAME@_high[i] : a;
    action[i] = a;
    it->state[1 + @UPPER@_LATENT_SIZE + i] = a - @NAME@_middle[i]; /* The filter is told. */
  }
"""

HARNESS = """\
static @NAME@_controller it;

void control_init(void);
void control_reset(void);
int control(const float *observation, int is_seen, uint64_t now, float *action);
void control_load(const float *state);
void control_counts(uint64_t *counts);

void control_init(void) { @NAME@_init(&it); }

void control_reset(void) { @NAME@_reset(&it); }

int control(const float *observation, int is_seen, uint64_t now, float *action) {
  return @NAME@_control(&it, is_seen ? observation : NULL, now, action);
}

void control_load(const float *state) { memcpy(it.state, state, sizeof it.state); }

void control_counts(uint64_t *counts) {
  counts[0] = it.num_steps;
  counts[1] = it.num_missing;
  counts[2] = it.num_late;
  counts[3] = it.num_faults;
}
"""
"""Functions of a shared library around one controller, for validation."""
