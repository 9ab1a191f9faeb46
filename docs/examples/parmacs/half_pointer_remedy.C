/* SPDX-License-Identifier: Apache-2.0 */
/* An address is rounded up in 64 bits. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

double *x;

int main()
{
    MAIN_INITENV()
    x = (double *) G_MALLOC(3 * 4096);
    x = (double *) ((unsigned long) x + 4096 - (unsigned long) x % 4096);
    x[0] = 7;
    printf("%g\n", x[0]);
    MAIN_END
}
