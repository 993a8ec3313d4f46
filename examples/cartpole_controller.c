/* The exported controller of the cart-pole, at the socket of its device: all that a robot needs.

     empower export runs/cartpole --format c --out cartpole.h
     cc -O2 -I. -o cartpole examples/cartpole_controller.c -lm
     ./cartpole 5005 60                   # port, and the seconds after which it stops

   By the clock it takes the newest observation once per period; in lock-step it answers each
   message. Where the device is gone the safe action is what is left, and it stops with status 1. */
#define _POSIX_C_SOURCE 200809L
#include "cartpole.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BEGIN = 1, LAST = 2 | 4, LOCKSTEP = 128, MOST = 64, HEADER = 16 };

/* On a little-endian machine these are the bytes of a message. */
typedef struct {
  char magic[4];
  uint8_t kind, flags;
  uint16_t count;
  uint64_t time;
  float numbers[MOST];
} message;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000u * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

/* Receive a whole message; 0 if the peer is gone, silent, or sends anything else. */
static int receive(int fd, message *m) {
  size_t rest;
  if (recv(fd, m, HEADER, MSG_WAITALL) != HEADER || memcmp(m->magic, "EMP1", 4)) return 0;
  rest = m->count * sizeof *m->numbers;
  return m->count <= MOST && (!rest || recv(fd, m->numbers, rest, MSG_WAITALL) == (ssize_t)rest);
}

static int answer(int fd, const float *action) {
  message m = {{'E', 'M', 'P', '1'}, 'A', 0, CARTPOLE_ACTION_SIZE, now(), {0}};
  size_t size = HEADER + sizeof(float) * CARTPOLE_ACTION_SIZE;
  memcpy(m.numbers, action, sizeof(float) * CARTPOLE_ACTION_SIZE);
  return send(fd, &m, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Wait until a time for the next message; 1 if there is one, 0 if not, -1 if the peer is gone. */
static int next(int fd, message *m, uint64_t due) {
  struct pollfd one = {fd, POLLIN, 0};
  for (;;) {
    uint64_t t = now(), left = due > t ? due - t : 0;
    struct timespec rest = {0, (long)(left % 1000000u)};
    if (poll(&one, 1, (int)(left / 1000000u)) > 0) return receive(fd, m) ? 1 : -1;
    if (left < 1000000u) {
      nanosleep(&rest, NULL);
      return 0;
    }
  }
}

int main(int argc, char **argv) {
  static cartpole_controller it;
  const int port = argc > 1 ? atoi(argv[1]) : 5005;
  const double seconds = argc > 2 ? atof(argv[2]) : 60.0;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const struct timeval silence = {1, 0};
  const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  float action[CARTPOLE_ACTION_SIZE], observation[CARTPOLE_OBSERVATION_SIZE];
  uint64_t period, due, cycle = 0;
  int is_lockstep, is_idle = 1, alive = 1;
  message m;

  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) || !receive(fd, &m) ||
      m.kind != 'H' || m.count != 3 + 2 * CARTPOLE_ACTION_SIZE ||
      (int)m.numbers[0] != CARTPOLE_OBSERVATION_SIZE ||
      (int)m.numbers[1] != CARTPOLE_ACTION_SIZE || !(m.numbers[2] > 1e-4f)) {
    fprintf(stderr, "Expected a device of this controller at port %d; got none.\n", port);
    return 2;
  }
  is_lockstep = m.flags & LOCKSTEP;
  period = (uint64_t)(1e9 * (double)m.numbers[2] + 0.5);
  cartpole_init(&it);
  due = now() + period;
  memcpy(action, cartpole_safe, sizeof action);
  while (alive && (double)(cycle * period) < 1e9 * seconds) {
    int seen = 0, got;
    do { /* In lock-step one message, else all until it is time: the newest counts. */
      got = is_lockstep ? (receive(fd, &m) ? 1 : -1) : next(fd, &m, due);
      if (got < 0) alive = 0;
      if (got <= 0 || m.kind != 'O' || m.count != CARTPOLE_OBSERVATION_SIZE) continue;
      if (m.flags & BEGIN) {
        cartpole_reset(&it);
        is_idle = 0;
        due = now() + period / 8; /* In phase with the device, a little after it. */
      }
      if (m.flags & LAST) is_idle = 1;
      memcpy(observation, m.numbers, sizeof observation);
      seen = 1;
    } while (got > 0 && !is_lockstep);
    cycle++;
    if (!alive || is_idle) memcpy(action, cartpole_safe, sizeof action);
    else
      cartpole_control(&it, seen ? observation : NULL, is_lockstep ? cycle * period : now(), action);
    alive = answer(fd, action) && alive;
    do due += period;
    while (due <= now()); /* Late cycles are skipped, and the phase is kept. */
  }
  memcpy(action, cartpole_safe, sizeof action);
  answer(fd, action);
  close(fd);
  printf("%llu cycles, %llu missing, %llu late, fault %d%s\n", (unsigned long long)cycle,
         (unsigned long long)it.num_missing, (unsigned long long)it.num_late, it.fault,
         alive ? "" : "; the device is gone, the safe action is held");
  return alive ? 0 : 1;
}
