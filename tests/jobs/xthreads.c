/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's interface, from C: a thread that travels back and forth between all processes, and one
 * that moves others. */
#include <sojourn/xthreads.h>
#include <stdio.h>
#include <string.h>

static int failures; /* of this rank */

#define CLAIM(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      ++failures;                                                                     \
      fprintf(stderr, "xthreads.c:%d: node %d, process %d: %s\n", __LINE__, xthread_nid(), \
              xthread_pid(), #condition);                                             \
    }                                                                                 \
  } while (0)

struct trip {
  int rounds;
  double weight;
};

static void travels(void* argument) {
  struct trip mine;
  char name[32] = "a traveller of 1993";
  double carried[100];
  int round, nid, pid, i;
  memcpy(&mine, argument, sizeof mine);
  for (i = 0; i < 100; ++i) carried[i] = i * mine.weight;
  for (round = 0; round < mine.rounds; ++round) {
    for (nid = 0; nid < xthread_nodes(); ++nid) {
      for (pid = 0; pid < xthread_processes(nid); ++pid) {
        CLAIM(xthread_migrate(xthread_self(), nid, pid) == XT_OK);
        CLAIM(xthread_nid() == nid && xthread_pid() == pid);
      }
    }
  }
  CLAIM(strcmp(name, "a traveller of 1993") == 0);
  for (i = 0; i < 100; ++i) CLAIM(carried[i] == i * mine.weight);
}

static void waits(void* argument) {
  int last_nid = xthread_nodes() - 1;
  int last_pid = xthread_processes(last_nid) - 1;
  CLAIM(argument == NULL);
  /* Until somebody moves it to the last place. */
  while (xthread_nid() != last_nid || xthread_pid() != last_pid) xthread_yield();
}

static int body(int argc, char** argv) {
  struct trip trip = {20, 0.5};
  char too_long[XT_ARGUMENT_MAX + 1] = {0};
  int last_nid = xthread_nodes() - 1;
  int last_pid = xthread_processes(last_nid) - 1;
  xthread_t one;
  xthread_t other;
  XTCALL result;
  (void)argc;
  (void)argv;
  CLAIM(xthread_self() == NULL);
  CLAIM(xthread_create(&one, travels, &trip, sizeof trip) == XT_OK);
  CLAIM(xthread_create_at(&other, 0, 0, waits, NULL, 0) == XT_OK);
  result = xthread_migrate(other, last_nid, last_pid);
  CLAIM(result == XT_OK || (result == XT_FINISHED && last_nid + last_pid == 0));
  CLAIM(xthread_join(one) == XT_OK);
  CLAIM(xthread_join(other) == XT_OK);
  CLAIM(xthread_join(other) == XT_UNKNOWN);
  CLAIM(xthread_migrate(other, 0, 0) == XT_UNKNOWN);
  CLAIM(xthread_migrate(one, xthread_nodes(), 0) == XT_NO_PLACE);
  CLAIM(xthread_migrate(one, 0, -1) == XT_NO_PLACE);
  CLAIM(xthread_create(&one, travels, too_long, sizeof too_long) == XT_TOO_LONG);
  CLAIM(xthread_create(&one, NULL, NULL, 0) == XT_NO_FUNCTION);
  CLAIM(xthread_migrate(NULL, 0, 0) == XT_UNKNOWN);
  CLAIM(strlen(xthread_strerror(XT_PINNED)) > 10);
  return failures != 0;
}

int main(int argc, char** argv) { return xthread_main(argc, argv, body); }
