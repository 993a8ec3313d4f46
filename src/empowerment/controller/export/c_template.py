"""Templates of the C code; words between @ are placeholders."""

WEIGHTS = """\
/* Weights of @NAME@.h. Generated; do not edit. */
#ifndef @UPPER@_WEIGHTS_H
#define @UPPER@_WEIGHTS_H

@ARRAYS@

#endif
"""

HEADER = """\
/*
 * Controller in C99 without allocation or global state. Generated; do not edit.
 *
 *   @NAME@_controller it;
 *   float action[@UPPER@_ACTION_SIZE];
 *   @NAME@_init(&it);
 *   fault = @NAME@_control(&it, observation, now, action);   once per cycle
 *
 * The observation is NULL if none has arrived; one that is not finite counts as missing. The time
 * is that of a monotonic clock in nanoseconds. A fault latches the safe action until a call of
 * @NAME@_reset(&it); fault is its kind, or 0. The action is always finite and within its limits.
 * Do not compile with -ffast-math, which assumes finite numbers; -O3 -march=native makes it several
 * times faster.
 *
 * The step alone, without what watches over it, zeros restart it:
 *
 *   float state[@UPPER@_STATE_SIZE] = {0};
 *   @NAME@_step(observation, state, action, state);
 *
 * A step makes @PRODUCTS@ multiplications by weights at most, and calls
 * expf and log1pf @SOFTPLUSES@ times each at most. Constants take @BYTES@ bytes.
 *
 * Observation: @OBSERVATION_NAMES@
 * Action: @ACTION_NAMES@
 */
#ifndef @UPPER@_H
#define @UPPER@_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "@NAME@_weights.h"

#ifdef __cplusplus
#define @UPPER@_RESTRICT __restrict
#else
#define @UPPER@_RESTRICT restrict
#endif

#define @UPPER@_OBSERVATION_SIZE @SEEN@
#define @UPPER@_ACTION_SIZE @DONE@
#define @UPPER@_STATE_SIZE @MEMORY@
#define @UPPER@_LATENT_SIZE @LATENT@
#define @UPPER@_NUM_INITIAL @INITIAL@
#define @UPPER@_WIDEST @WIDEST@
@CONSTANTS@
static inline void @NAME@_dense(const float *@UPPER@_RESTRICT weight,
                                const float *@UPPER@_RESTRICT bias, int in_size, int out_size,
                                const float *@UPPER@_RESTRICT input,
                                float *@UPPER@_RESTRICT output) {
  int i, j;
  for (j = 0; j < out_size; j++) output[j] = bias[j];
  for (i = 0; i + 8 <= in_size; i += 8) {
    const float *@UPPER@_RESTRICT w = weight + (long)i * out_size;
    const float a = input[i], b = input[i + 1], c = input[i + 2], d = input[i + 3];
    const float e = input[i + 4], f = input[i + 5], g = input[i + 6], h = input[i + 7];
    for (j = 0; j < out_size; j++)
      output[j] += ((a * w[j] + b * w[j + out_size]) + (c * w[j + 2 * out_size] +
                   d * w[j + 3 * out_size])) + ((e * w[j + 4 * out_size] +
                   f * w[j + 5 * out_size]) + (g * w[j + 6 * out_size] + h * w[j + 7 * out_size]));
  }
  for (; i < in_size; i++)
    for (j = 0; j < out_size; j++) output[j] += input[i] * weight[(long)i * out_size + j];
}

/* Continued fraction at an eighth, doubled three times: no calls, so that it is vectorised. */
static inline float @NAME@_tanh_of(float x) {
  const float y = 0.125f * (x < -9.0f ? -9.0f : x > 9.0f ? 9.0f : x);
  const float z = y * y;
  float t = y * (10395.0f + z * (1260.0f + z * 21.0f)) /
            (10395.0f + z * (4725.0f + z * (210.0f + z)));
  t = 2.0f * t / (1.0f + t * t);
  t = 2.0f * t / (1.0f + t * t);
  return 2.0f * t / (1.0f + t * t);
}

static inline void @NAME@_tanh(int size, float *@UPPER@_RESTRICT values) {
  int i;
  for (i = 0; i < size; i++) values[i] = @NAME@_tanh_of(values[i]);
}

static inline void @NAME@_relu(int size, float *@UPPER@_RESTRICT values) {
  int i;
  for (i = 0; i < size; i++) values[i] = values[i] > 0.0f ? values[i] : 0.0f;
}

@NETWORKS@
@BODY@
/* Compute the action and the next state; next_state may be the same array as state.
   Returns whether the observation was used. */
static inline int @NAME@_step@PREDICTING@(const float *observation, const float *state,
                                          float *action,
                                          float *next_state@PREDICTED_PARAMETER@) {
  float memory[@UPPER@_STATE_SIZE];
  const int started = state[0] > 0.5f, keeps_track = @UPPER@_LATENT_SIZE > 0;
  int i, seen = 1, used = 0;
  for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++)
    if (!isfinite(observation[i])) seen = 0;
  memcpy(memory, state, sizeof memory);
  if (seen) {
    used = @NAME@_attempt(observation, 1, memory@PREDICTED@);
    if (!used) memcpy(memory, state, sizeof memory);
  }
  if (!used && started && keeps_track && !@NAME@_attempt(observation, 0, memory@PREDICTED@))
    memcpy(memory, state, sizeof memory);
@ACT@
  memcpy(next_state, memory, sizeof memory);
  return used;
}

@STEP_ALONE@@BOUND@
@SAFETY@
#endif
"""

BOUND = """
/* Empowerment, in nats, of the state that a step acted in: after it, from its observation and its
   next state. NAN where that state is not known: before the first observation and, in controllers
   without a filter, where the observation is missing. */
static inline float @NAME@_empowerment(const float *observation, const float *state) {
  float input[@UPPER@_WIDEST], value;
  int i;
  if (!(state[0] > 0.5f)) return NAN;
@NEAREST@
  @NAME@_bound(input, &value);
  return value;
}
"""
"""The bound at the nearest state in the region of its fit."""

NEAREST_LATENT = """\
  (void)observation;
  for (i = 0; i < @UPPER@_LATENT_SIZE; i++)
    input[i] = @NAME@_within(state[1 + i], @NAME@_lowest[i], @NAME@_highest[i]);"""

NEAREST_OBSERVED = """\
  for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++)
    if (!isfinite(observation[i])) return NAN;
@NEAREST_FEATURES@"""

WITHIN = """
static inline float @NAME@_within(float value, float low, float high) {
  return value < low ? low : value > high ? high : value;
}
"""

HARNESS = """\
#define _POSIX_C_SOURCE 199309L
#include <time.h>
#include "@NAME@.h"

int run(const float *observation, const float *state, float *action, float *next_state);
void time_steps(const float *observation, float *state, int count, double *times);

int run(const float *observation, const float *state, float *action, float *next_state) {
  return @NAME@_step(observation, state, action, next_state);
}

void time_steps(const float *observation, float *state, int count, double *times) {
  float action[@UPPER@_ACTION_SIZE];
  struct timespec begun, done;
  int i;
  for (i = 0; i < count; i++) {
    clock_gettime(CLOCK_MONOTONIC, &begun);
    run(observation, state, action, state);
    clock_gettime(CLOCK_MONOTONIC, &done);
    times[i] = (double)(done.tv_sec - begun.tv_sec) + 1e-9 * (double)(done.tv_nsec - begun.tv_nsec);
  }
}
"""
"""Shared library that calls the code, for validation."""

BOUND_HARNESS = """
float value(const float *observation, const float *state);

float value(const float *observation, const float *state) {
  return @NAME@_empowerment(observation, state);
}
"""

FINISH = """\
  float relative[@UPPER@_ACTION_SIZE];
  @NAME@_policy(input, relative);
  for (i = 0; i < @UPPER@_ACTION_SIZE; i++) {
    memory[1 + @UPPER@_LATENT_SIZE + i] = @NAME@_half[i] * @NAME@_tanh_of(relative[i]);
    if (!isfinite(memory[1 + @UPPER@_LATENT_SIZE + i])) return 0;
  }"""
"""Policy with continuous actions, which the memory holds relative to their middle."""

ACT = """\
  for (i = 0; i < @UPPER@_ACTION_SIZE; i++) {
    float a = memory[1 + @UPPER@_LATENT_SIZE + i] + @NAME@_middle[i];
    if (!(memory[0] > 0.5f) || !isfinite(a)) a = @NAME@_idle[i];
    action[i] = a < @NAME@_low[i] ? @NAME@_low[i] : a > @NAME@_high[i] ? @NAME@_high[i] : a;
  }"""

FINISH_DISCRETE = """\
  @NAME@_policy(input, memory + 1 + @UPPER@_LATENT_SIZE);
  for (i = 1 + @UPPER@_LATENT_SIZE; i < @UPPER@_STATE_SIZE; i++)
    if (!isfinite(memory[i])) return 0;"""
"""Policy with discrete actions: the memory holds logits until one is chosen."""

ACT_DISCRETE = """\
  if (memory[0] > 0.5f)
    @NAME@_choose(memory + 1 + @UPPER@_LATENT_SIZE, action);
  else
    memset(action, 0, @UPPER@_ACTION_SIZE * sizeof *action);"""

CHOOSE = """\
static const int @NAME@_choices[@DONE@] = {@CHOICES@};

/* Set each column of an action to the index of its largest score, the first on a tie; the one-hot
   encoding of the action replaces the scores. */
static inline void @NAME@_choose(float *scores, float *action) {
  int i, j;
  for (i = 0; i < @UPPER@_ACTION_SIZE; i++) {
    int best = 0;
    for (j = 1; j < @NAME@_choices[i]; j++)
      if (scores[j] > scores[best]) best = j;
    for (j = 0; j < @NAME@_choices[i]; j++) scores[j] = j == best ? 1.0f : 0.0f;
    action[i] = (float)best;
    scores += @NAME@_choices[i];
  }
}
"""

_END = """\
@FINISH@
  memory[0] = 1.0f;
  return 1;
}
"""

NO_FILTER = (
    """\
static inline int @NAME@_attempt(const float *observation, int seen, float *memory) {
  float input[@UPPER@_WIDEST];
  int i;
  (void)seen;
@FEATURES@
"""
    + _END
)

FILTER = (
    """\
static inline float @NAME@_softplus(float raw) {
  const float scale = (raw > 0.0f ? raw : 0.0f) + log1pf(expf(-fabsf(raw))) + @LEAST@;
  return scale * scale;
}

static inline float @NAME@_square(float raw) { return raw * raw + @LEAST@ * @LEAST@; }

static inline void @NAME@_recognise(const float *observation, float *memory) {
  float first[@UPPER@_NUM_INITIAL * @UPPER@_OBSERVATION_SIZE], noise[@UPPER@_LATENT_SIZE];
  int i, j;
  for (j = 0; j < @UPPER@_NUM_INITIAL; j++)
    for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++)
      first[j * @UPPER@_OBSERVATION_SIZE + i] = observation[i] - @NAME@_offset[i];
  @NAME@_recognition(first, noise);
  @NAME@_start(noise, memory + 1);
}

static inline void @NAME@_advance(const float *observation, int seen,
                                  float *memory@PREDICTED_PARAMETER@) {
  float expected[2 * @UPPER@_LATENT_SIZE], measured[2 * @UPPER@_LATENT_SIZE];
  float shifted[@UPPER@_OBSERVATION_SIZE];
  int i;
  @NAME@_transition(memory + 1, expected);
  for (i = 0; i < @UPPER@_LATENT_SIZE; i++) {
    memory[1 + i] = @RESIDUAL@expected[i];
@MONITOR_PREDICTION@  }
  if (!seen) return;
  for (i = 0; i < @UPPER@_OBSERVATION_SIZE; i++) shifted[i] = observation[i] - @NAME@_offset[i];
  @NAME@_measurement(shifted, measured);
  for (i = 0; i < @UPPER@_LATENT_SIZE; i++) {
    float raw = expected[@UPPER@_LATENT_SIZE + i], own, other;
    own = @VARIANCE@;
    raw = measured[@UPPER@_LATENT_SIZE + i];
    other = @VARIANCE@;
    memory[1 + i] += own / (own + other) * (measured[i] - memory[1 + i]);
  }
}

static inline int @NAME@_attempt(const float *observation, int seen,
                                 float *memory@PREDICTED_PARAMETER@) {
  const float *input = memory + 1;
  int i;
  if (memory[0] > 0.5f)
    @NAME@_advance(observation, seen, memory@PREDICTED@);
  else
    @NAME@_recognise(observation, memory);
  for (i = 0; i < @UPPER@_LATENT_SIZE; i++)
    if (!isfinite(memory[1 + i])) return 0;
"""
    + _END
)
