/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked LU factorisation without pivots of a dense matrix, whose blocks are dealt out to the
 * processes; then L and U are multiplied and compared with the matrix. Two source files and a
 * header, all of which m4 expands; the processes are created with CREATE(function, P), in which the
 * caller takes part. */
#include <stdio.h>
#include <math.h>

MAIN_ENV

#include "lu.h"

GlobalMemory *Global;
Block *Blocks;
int P = 1, NB = 8;
static int DoTest = 0;
static char *Title = "LU";

void SlaveStart(void);
static void PrintTimes(void);

int main(int argc, char *argv[])
{
    int ch, i;
    unsigned long start, initdone;

    CLOCK(start)
    while ((ch = getopt(argc, argv, "n:p:th")) != -1) {
        switch (ch) {
        case 'n': NB = (atoi(optarg) + BLOCK - 1) / BLOCK; break;
        case 'p': P = atoi(optarg); break;
        case 't': DoTest = !DoTest; break;
        default: printf("Usage: LU -nN -pP -t\n"); exit(0);
        }
    }
    if (P < 1 || P > MAX_P) {
        printf("P must be at most %d\n", MAX_P);
        exit(-1);
    }

    MAIN_INITENV(,150000000)

    Global = (GlobalMemory *) G_MALLOC(sizeof(GlobalMemory));
    if ((Blocks = (Block *) G_MALLOC_F(NB * NB * sizeof(Block))) == NULL) {
        printf("Could not malloc memory for the blocks\n");
        exit(-1);
    }
    Global->id = 0;
    Global->wrong = 0;
    LOCKINIT(Global->idlock)
    BARINIT(Global->start, P)
    BARINIT(Global->step, P)
    ALOCKINIT(Global->rows, 16)
    for (i = 0; i < NB * NB; i++)
        LOCKINIT(Blocks[i].lock)

    CLOCK(initdone)
    CREATE(SlaveStart, P)
    WAIT_FOR_END(P)

    if (initdone < start) {
        printf("the clock went back\n");
        exit(1);
    }
    PrintTimes();
    if (Global->wrong != 0) {
        printf("%d entries are wrong\n", Global->wrong);
        exit(1);
    }
    printf("%s: right\n", Title);
    MAIN_END;
}

static int mine_only = 0;      /* each process has its own, after CREATE */

void SlaveStart(void)
{
    unsigned int MyNum;
    int i, j, k, b, c;

    LOCK(Global->idlock)
        MyNum = Global->id;
        Global->id++;
    UNLOCK(Global->idlock)

    BARINCLUDE(Global->start);
    mine_only++;
    Fill(MyNum);
    BARRIER(Global->start, P)
    Factor(MyNum);
    BARRIER(Global->start, P)

    /* Each process checks rows of the product. */
    for (i = MyNum; i < NB * BLOCK; i += P) {
        for (j = 0; j < NB * BLOCK; j++) {
            double sum = 0;
            int last = i < j ? i : j;
            for (k = 0; k <= last; k++) {
                double l = k == i ? 1.0 : BlockAt(i / BLOCK, k / BLOCK)->a[i % BLOCK][k % BLOCK];
                sum += l * BlockAt(k / BLOCK, j / BLOCK)->a[k % BLOCK][j % BLOCK];
            }
            if (fabs(sum - Entry(i, j)) > 1e-8 * fabs(Entry(i, j)) + 1e-8) {
                ALOCK(Global->rows, 3)
                Global->wrong++;
                AULOCK(Global->rows, 3)
            }
        }
    }
    CLOCK(Global->time[MyNum])
    b = 0; c = 0;
    if (b != c) printf("(LOCK is no macro here, nor is BARRIER)\n");
}

static void PrintTimes(void)
{
    int i;
    for (i = 0; i < P; i++)
        if (Global->time[i] == 0) {
            printf("process %d has not run\n", i);
            exit(1);
        }
}
