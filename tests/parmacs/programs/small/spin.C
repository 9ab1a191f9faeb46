/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a variable in a loop: a data race, which only SOJOURN_SHARED=seq allows. */
#include <stdio.h>

MAIN_ENV

volatile int *shared;

void slave()
{
    int i;
    for (i = 0; i < 20; i++) {
        while (shared[0] != 2 * i + 1);
        shared[0] = 2 * i + 2;
    }
}

int main()
{
    int i;
    MAIN_INITENV
    shared = (volatile int *) G_MALLOC(sizeof(int));
    CREATE(slave)
    for (i = 0; i < 20; i++) {
        shared[0] = 2 * i + 1;
        while (shared[0] != 2 * i + 2);
    }
    WAIT_FOR_END(1)
    printf("right\n");
    MAIN_END
}
