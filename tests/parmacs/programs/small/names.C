/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and variables with names of the C library's, which the runtime uses, too. */
#include <stdio.h>

MAIN_ENV

struct gm { BARDEC(bar) int sum; LOCKDEC(lock) } *gm;
int poll, signal, step, wait[10], clock, environ_of, memory, job, counts;
double time;

int send(a, b) int a, b; { return a + b; }
int munmap() { return 4; }
int mprotect(a) int a; { return a; }
void error(text) char *text; { printf("%s\n", text); exit(1); }
int epoll_wait(n) int n; { return n; }
int sigaction(n) int n; { return n; }

void worker()
{
    poll = send(1, 2);
    LOCK(gm->lock)
    gm->sum += poll + munmap() + mprotect(1) + epoll_wait(0) + sigaction(0);
    UNLOCK(gm->lock)
    BARRIER(gm->bar, 2)
}

int main()
{
    MAIN_INITENV
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    time = 1.0; wait[3] = 1; clock = 1; signal = 1;
    CREATE(worker)
    worker();
    WAIT_FOR_END(1)
    if (gm->sum != 16) error("wrong");
    printf("right\n");
    MAIN_END
}
