/* SPDX-License-Identifier: Apache-2.0 */
/* What must not be done: memory from malloc() is shared after CREATE. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

struct gm { BARDEC(bar) int *list; } *gm;

void worker()
{
    if (sojourn_process() == 0) {
        gm->list = (int *) malloc(100 * sizeof(int));   /* after CREATE: private */
        gm->list[0] = 7;
    }
    BARRIER(gm->bar, 2)
    if (sojourn_process() == 1) printf("%d\n", gm->list[0]);
}

int main()
{
    MAIN_INITENV()
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    CREATE(worker)
    worker();
    WAIT_FOR_END(1)
    MAIN_END
}
