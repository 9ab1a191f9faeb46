/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

MAIN_ENV

struct GlobalMemory {
    LOCKDEC(lock)
    BARDEC(start)
    int next;
    double sum;
    double value[1000];
} *gm;

int P = 4;

void worker()
{
    int me, i;
    double mine = 0;

    LOCK(gm->lock)
        me = gm->next++;
    UNLOCK(gm->lock)
    for (i = me; i < 1000; i += P) gm->value[i] = i;
    BARRIER(gm->start, P)
    for (i = 1000 * me / P; i < 1000 * (me + 1) / P; i++) mine += gm->value[i];
    LOCK(gm->lock)
        gm->sum += mine;
    UNLOCK(gm->lock)
}

int main()
{
    int i;

    MAIN_INITENV(,80000000)
    gm = (struct GlobalMemory *) G_MALLOC(sizeof(struct GlobalMemory));
    LOCKINIT(gm->lock)
    BARINIT(gm->start, P)
    for (i = 1; i < P; i++) CREATE(worker)
    worker();
    WAIT_FOR_END(P - 1)
    printf("the sum is %g\n", gm->sum);
    MAIN_END
}
