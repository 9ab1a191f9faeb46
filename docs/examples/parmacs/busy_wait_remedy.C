/* SPDX-License-Identifier: Apache-2.0 */
/* The remedy for busy_wait.C. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

struct gm { PAUSEDEC(ready) } *gm;

void worker()
{
    SETPAUSE(gm->ready)
}

int main()
{
    MAIN_INITENV()
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    CREATE(worker)
    WAITPAUSE(gm->ready)
    printf("ready\n");
    WAIT_FOR_END(1)
    MAIN_END
}
