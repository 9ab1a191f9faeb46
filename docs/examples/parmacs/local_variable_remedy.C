/* SPDX-License-Identifier: Apache-2.0 */
/* The remedy for local_variable.C. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

struct gm { BARDEC(bar) int value; } *gm;

void worker()
{
    if (sojourn_process() == 1) gm->value = 7;
    BARRIER(gm->bar, 2)
    if (sojourn_process() == 0) printf("%d\n", gm->value);
    BARRIER(gm->bar, 2)
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
