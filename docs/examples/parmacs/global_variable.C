/* SPDX-License-Identifier: Apache-2.0 */
/* What must not be done: a result in a global variable, which each process has for itself. */
#include <stdio.h>
#include <stdlib.h>

MAIN_ENV

int result = 0;

void worker()
{
    result = 7;         /* that of process 1 */
}

int main()
{
    MAIN_INITENV()
    CREATE(worker)
    WAIT_FOR_END(1)
    printf("%d\n", result);
    MAIN_END
}
