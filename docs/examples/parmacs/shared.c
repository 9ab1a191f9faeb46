/* SPDX-License-Identifier: Apache-2.0 */
#include <sojourn_shared.h>
#include <stdio.h>

static sojourn_barrier_t barrier; /* known by its address: a global variable will do */

static void work(void *argument)
{
    long *next = argument; /* shared memory, so it means the same here */
    static sojourn_lock_t lock;

    sojourn_lock(&lock);
    ++*next;
    sojourn_unlock(&lock);
    sojourn_barrier_wait(&barrier, sojourn_ranks());
}

int main(void)
{
    long *next = sojourn_shared_alloc(sizeof *next);

    for (int k = 1; k < sojourn_ranks(); ++k) sojourn_create(work, next);
    work(next);
    sojourn_wait_for_end(0);
    printf("%ld of %d\n", *next, sojourn_ranks());
    return 0;
}
