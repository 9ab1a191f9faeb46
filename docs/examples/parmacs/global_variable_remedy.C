/* SPDX-License-Identifier: Apache-2.0 */
/* The remedy for global_variable.C. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

int *result;

void worker()
{
    *result = 7;
}

int main()
{
    MAIN_INITENV()
    result = (int *) G_MALLOC(sizeof(int));
    CREATE(worker)
    WAIT_FOR_END(1)
    printf("%d\n", *result);
    MAIN_END
}
