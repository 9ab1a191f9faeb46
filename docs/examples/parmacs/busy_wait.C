/* SPDX-License-Identifier: Apache-2.0 */
/* What works with SOJOURN_SHARED=seq only: a loop that waits for a variable. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

volatile int *ready;

void worker()
{
    *ready = 1;
}

int main()
{
    MAIN_INITENV()
    ready = (volatile int *) G_MALLOC(sizeof(int));
    CREATE(worker)
    while (*ready == 0);
    printf("ready\n");
    WAIT_FOR_END(1)
    MAIN_END
}
