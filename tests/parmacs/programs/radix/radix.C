/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts integers by their digits. Counts of keys go from process to process along flags. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <unistd.h>

#define RADIX 64
#define MAX_PROCESSORS 64
#define PAGE_MASK (~(4096 - 1))

MAIN_ENV

struct prefix_node {
    int densities[RADIX];
    PAUSEDEC(done)
    char pad[4096];
};

struct global_memory {
    int Index;
    LOCKDEC(lock_Index)
    BARDEC(barrier_rank)
    BARDEC(barrier_key)
    int final;
    struct prefix_node prefix[MAX_PROCESSORS];
} *global;

int number_of_processors = 1;
int num_keys = 20000;
int *key[2];
int max_key = RADIX * RADIX * RADIX;

void slave_sort();
void printout();

int next_random(seed)
unsigned long *seed;
{
    *seed = *seed * 6364136223846793005ul + 1442695040888963407ul;
    return (int) (*seed >> 33) % max_key;
}

int main(argc, argv)
int argc;
char *argv[];
{
    int i, c, sum;
    unsigned long seed = 5;
    long check = 0, after = 0;

    while ((c = getopt(argc, argv, "p:n:")) != -1) {
        switch (c) {
        case 'p': number_of_processors = atoi(optarg); break;
        case 'n': num_keys = atoi(optarg); break;
        }
    }
    MAIN_INITENV(,80000000)
    key[0] = (int *) G_MALLOC(num_keys * sizeof(int));
    key[1] = (int *) G_MALLOC(num_keys * sizeof(int));
    global = (struct global_memory *) G_MALLOC(sizeof(struct global_memory))
    if (global == NULL || key[0] == NULL) {
        fprintf(stderr, "ERROR: Cannot malloc enough memory for global\n");
        exit(-1);
    }
    BARINIT(global->barrier_rank, number_of_processors)
    BARINIT(global->barrier_key, number_of_processors)
    LOCKINIT(global->lock_Index)
    for (i = 0; i < number_of_processors; i++) PAUSEINIT(global->prefix[i].done)
    global->Index = 0;
    for (i = 0; i < num_keys; i++) {
        key[0][i] = next_random(&seed);
        check += key[0][i] ^ i / num_keys;
    }
    for (i = 1; i < number_of_processors; i++) {
        CREATE(slave_sort)
    }
    slave_sort();
    WAIT_FOR_END(number_of_processors - 1)

    sum = 0;
    for (i = 0; i < num_keys; i++) {
        after += key[global->final][i];
        if (i > 0 && key[global->final][i] < key[global->final][i - 1]) sum++;
    }
    printf("%d keys, %d processes: %d out of order\n", num_keys, number_of_processors, sum);
    if (sum != 0 || after != check) exit(1);
    printf("right\n");
    MAIN_END
}

void slave_sort()
{
    int MyNum, digit, from, i, first, last;
    int count[RADIX], start[RADIX];

    LOCK(global->lock_Index)
        MyNum = global->Index;
        global->Index++;
    UNLOCK(global->lock_Index)

    first = (long) num_keys * MyNum / number_of_processors;
    last = (long) num_keys * (MyNum + 1) / number_of_processors;
    from = 0;
    for (digit = 0; digit < 3; digit++) {
        for (i = 0; i < RADIX; i++) count[i] = 0;
        for (i = first; i < last; i++) count[(key[from][i] >> (6 * digit)) % RADIX]++;
        /* The counts of all processes up to this one come from the one before. */
        if (MyNum != 0) {
            WAITPAUSE(global->prefix[MyNum - 1].done)
            CLEARPAUSE(global->prefix[MyNum - 1].done);
        }
        for (i = 0; i < RADIX; i++) {
            start[i] = MyNum == 0 ? 0 : global->prefix[MyNum - 1].densities[i];
            global->prefix[MyNum].densities[i] = start[i] + count[i];
        }
        if (MyNum != number_of_processors - 1) SETPAUSE(global->prefix[MyNum].done);
        BARRIER(global->barrier_rank, number_of_processors)
        for (i = 1; i < RADIX; i++) {
            int before = 0, d;
            for (d = 0; d < i; d++)
                before += global->prefix[number_of_processors - 1].densities[d];
            start[i] += before;
        }
        for (i = first; i < last; i++)
            key[!from][start[(key[from][i] >> (6 * digit)) % RADIX]++] = key[from][i];
        from = !from;
        BARRIER(global->barrier_key, number_of_processors)
    }
    if (MyNum == 0) global->final = from;
}
