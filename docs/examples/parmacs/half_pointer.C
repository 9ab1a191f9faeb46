/* SPDX-License-Identifier: Apache-2.0 */
/* What must not be done: a pointer goes through 32 bits. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

double *x;

int main()
{
    MAIN_INITENV()
    x = (double *) G_MALLOC(3 * 4096);
    x = (double *) ((unsigned) x + 4096 - (unsigned) x % 4096);
    x[0] = 7;
    printf("%g\n", x[0]);
    MAIN_END
}
