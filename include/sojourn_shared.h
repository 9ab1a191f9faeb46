/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory over processes, for C: processes, memory that they share, and what orders accesses
 * to it. The macros of ANL and PARMACS (`sojourn cc`, docs/parmacs.md) stand on this interface, and
 * a C program can use it directly.
 *
 * Locks, barriers, flags and the like are known by their addresses, which must mean the same in all
 * processes: they lie in shared memory or are global variables. All zero bytes are a valid one. All
 * functions may suspend; those that end a program's part in a wait are an acquire, and those that
 * let others go on are a release. Errors that no program can expect (a lock is unlocked that is not
 * held, a rank has ended) end the job with a sentence.
 *
 * This header includes nothing but <stddef.h>, so that it may stand before everything else. */
#ifndef SOJOURN_SHARED_H
#define SOJOURN_SHARED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Processes. Two ways: sojourn_shared_main runs the same function on every rank, as in MPI. A
 * program that `sojourn cc` has linked needs no such call: its main() runs as process 0, on rank 0
 * alone, and creates the others. */

/* Joins the job, runs body(argc, argv) on every rank, leaves the job. Returns what main returns. */
int sojourn_shared_main(int argc, char** argv, int (*body)(int argc, char** argv));

/* The rank that runs this, and how many there are. */
int sojourn_rank(void);
int sojourn_ranks(void);

/* Starts a process that calls function(argument), and ends when it returns or calls exit(0). It
 * gets a rank for itself as long as there are some; then ranks get several, which share the rank's
 * global variables. In a program of `sojourn cc` it sees global variables, memory from malloc(),
 * and the stack of its creator as they are now, and from then on has them for itself, as after
 * fork(). A pointer to other memory as the argument means nothing there. */
void sojourn_create(void (*function)(void*), void* argument);
/* Creates `processes` - 1 of them, calls function(NULL) in this one, too, and returns when that
 * does. */
void sojourn_create_team(void (*function)(void*), long processes);
/* Waits until `count` processes that nobody has waited for have ended, or all if there are fewer or
 * `count` is 0. What they stored to shared memory can be loaded then. */
void sojourn_wait_for_end(long count);
/* The number of this process: 0 runs main(), others are counted in the order of their creation.
 * Outside of a program of `sojourn cc`: the rank. */
int sojourn_process(void);
/* Ends this process. A status other than 0 ends the job with that status. */
void sojourn_exit(int status)
#if defined(__GNUC__)
    __attribute__((noreturn))
#endif
    ;
/* Lets other processes of the rank run. */
void sojourn_yield(void);

/* --- Shared memory */

/* Zeroed shared memory, at an address that is valid in all processes. NULL, after a sentence on
 * standard error, when there is none left. Blocks of 4 KiB and more have their pages to themselves.
 */
void* sojourn_shared_alloc(size_t bytes);
/* Gives it back, in whatever process. NULL is allowed. */
void sojourn_shared_free(void* memory);
/* 1 when an address lies where shared memory can be. */
int sojourn_is_shared(const void* address);
/* Calls the block by this name in reports (`sojourn run --shared-report`). */
void sojourn_shared_name(const void* memory, const char* name);

/* --- Locks. They hold nothing; taking one again where it was held last sends no message. */
typedef struct {
  unsigned place;
} sojourn_lock_t;
void sojourn_lock_init(sojourn_lock_t* lock);
void sojourn_lock(sojourn_lock_t* lock);
/* 1: it is locked now. 0: it is held, or was held last on another rank. */
int sojourn_try_lock(sojourn_lock_t* lock);
void sojourn_unlock(sojourn_lock_t* lock);

/* --- Barriers of `count` processes: returns when that many have arrived. With a count of 0 it is
 * what sojourn_barrier_init has said; every process that arrives must give the same count. */
typedef struct {
  long count;
  long place;
} sojourn_barrier_t;
void sojourn_barrier_init(sojourn_barrier_t* barrier, long count);
void sojourn_barrier_wait(sojourn_barrier_t* barrier, long count);
/* The barrier of all ranks, in programs that call sojourn_shared_main. */
void sojourn_barrier_all(void);

/* --- Flags: wait returns when the flag is set. Whoever waits when it is set goes on, even if it is
 * cleared at once. */
typedef struct {
  long place;
} sojourn_flag_t;
void sojourn_flag_init(sojourn_flag_t* flag);
void sojourn_flag_set(sojourn_flag_t* flag);
void sojourn_flag_clear(sojourn_flag_t* flag);
void sojourn_flag_wait(sojourn_flag_t* flag);

/* --- Condition variables, with a lock that the caller holds. Waiting unlocks it, and locks it
 * again. */
typedef struct {
  long place;
} sojourn_condition_t;
void sojourn_condition_init(sojourn_condition_t* condition);
void sojourn_condition_wait(sojourn_condition_t* condition, sojourn_lock_t* lock);
void sojourn_condition_signal(sojourn_condition_t* condition);
void sojourn_condition_broadcast(sojourn_condition_t* condition);

/* --- Counting semaphores */
typedef struct {
  long place[3];
} sojourn_semaphore_t;
void sojourn_semaphore_init(sojourn_semaphore_t* semaphore, long count);
void sojourn_semaphore_wait(sojourn_semaphore_t* semaphore);
void sojourn_semaphore_post(sojourn_semaphore_t* semaphore);

/* --- Counters that all processes see at once. Each operation is one step, and returns the value
 * before it. */
typedef struct {
  long place[2];
} sojourn_counter_t;
void sojourn_counter_set(sojourn_counter_t* counter, long value);
long sojourn_counter_get(sojourn_counter_t* counter);
long sojourn_counter_add(sojourn_counter_t* counter, long value);
/* Stores `desired` if the value was `expected`. */
long sojourn_counter_compare_exchange(sojourn_counter_t* counter, long expected, long desired);
/* The next subscript of a loop that processes share: 0, 1, … up to `last`. Then -1; with a number
 * of processes, when all of these have asked in vain, and the loop can begin again. */
long sojourn_subscript(sojourn_counter_t* counter, long last, long processes);

/* Microseconds since 1970. */
unsigned long sojourn_clock_us(void);

#ifdef __cplusplus
}
#endif

#endif
