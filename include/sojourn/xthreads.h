/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that migrate, for C: the interface of the paper, over sojourn::thread. Source: Sang and
 * Rego, Efficient Implementation of Thread Migration on Distributed-Memory Multiprocessors (1993),
 * section 3 and figures 3 to 9.
 *
 * A place is a process `pid` of a node `nid`. A node is a host, whose processes are counted from 0;
 * SOJOURN_RANKS_PER_NODE=k divides the ranks of one host into nodes of k, for programs that ask for
 * several. */
#ifndef SOJOURN_XTHREADS_H
#define SOJOURN_XTHREADS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return: XT_OK, or why not. */
typedef int XTCALL;
enum {
  XT_OK = 0,
  XT_UNKNOWN = -1,     /* no such thread: joined, ended after detach, or never existed */
  XT_FINISHED = -2,    /* the thread has ended */
  XT_PINNED = -3,      /* it stays on its rank */
  XT_OTHER_IMAGE = -4, /* the process runs another program */
  XT_LOCKED = -5,      /* it holds a lock */
  XT_EXCEPTION = -6,   /* it handles a C++ exception */
  XT_BUSY = -7,        /* it must stay on its rank, or waits for something only its rank has */
  XT_NO_PLACE = -8,    /* no such node or process */
  XT_TOO_LONG = -9,    /* the argument is longer than XT_ARGUMENT_MAX */
  XT_FAILED = -10,     /* an exception left the thread, or it joins itself */
  XT_NO_FUNCTION = -11 /* the function is NULL, or lies in a shared library */
};
enum { XT_ARGUMENT_MAX = 256 };

/* A thread's name, valid on every rank; a value, which must not be dereferenced. */
typedef struct xthread* xthread_t;

/* Joins the job, runs body(argc, argv) on every rank, leaves the job. Returns what main returns. */
int xthread_main(int argc, char** argv, int (*body)(int argc, char** argv));

/* Starts function(argument) as a thread of this process, or of process `pid` of node `nid`, on a
 * copy of the `bytes` bytes at `argument`, which may be 0. Pointers in them mean nothing after a
 * move. */
XTCALL xthread_create(xthread_t* xptr, void (*function)(void* argument), const void* argument,
                      size_t bytes);
XTCALL xthread_create_at(xthread_t* xptr, int nid, int pid, void (*function)(void* argument),
                         const void* argument, size_t bytes);

/* The thread that runs; NULL in the body of xthread_main. */
xthread_t xthread_self(void);

/* Moves a thread, the caller or another, wherever it is. It goes on with its next statement. */
XTCALL xthread_migrate(xthread_t xptr, int nid, int pid);

/* xthread_join waits until a thread has ended; it is called once for each thread. A thread that was
 * detached is forgotten when it ends: nobody joins it. */
XTCALL xthread_join(xthread_t xptr);
XTCALL xthread_detach(xthread_t xptr);
/* Lets other threads run. */
void xthread_yield(void);

/* The caller's node and process, the number of nodes of the job, and the number of processes of a
 * node (0: no such node). */
int xthread_nid(void);
int xthread_pid(void);
int xthread_nodes(void);
int xthread_processes(int nid);

/* A sentence for what a call returned. */
const char* xthread_strerror(XTCALL result);

#ifdef __cplusplus
}
#endif

#endif
