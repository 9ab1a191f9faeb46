/* SPDX-License-Identifier: Apache-2.0 */
/* Red and black successive over-relaxation of a square grid. The size is read from standard input by
 * the first process; main() fills the boundary before it creates the others, from values that it
 * keeps in memory from malloc() and in global variables. Prints a checksum, and compares with the
 * same computation by one process. */
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#define MAX_P 64

struct GlobalMemory {
    LOCKDEC(id_lock)
    LOCKDEC(sum_lock)
    BARDEC(start)
    BARDEC(sweep)
    int id;
    double sum;
    double grid_of_all[1];
} *Global;

int P = 1;
int N;
int Sweeps = 10;
double *Edge;           /* malloc before CREATE, read by all */
char *Name;
static double *Grid;

void SlaveStart();
double Relax();

double Value(i)
int i;
{
    static int calls = 0;
    calls++;
    return sin((double) i) + 1.0;
}

double *Row(i)
int i;
{
    return Grid + i * (N + 2);
}

main(argc, argv)
int argc;
char **argv;
{
    int c, i;
    extern char *optarg;
    unsigned long start, finish;
    double serial;

    while ((c = getopt(argc, argv, "p:s:h")) != -1) {
        switch (c) {
        case 'p': P = atoi(optarg);
                  if (P < 1 || P > MAX_P) {
                      printf("P must be from 1 to %d\n", MAX_P);
                      exit(-1);
                  }
                  break;
        case 's': Sweeps = atoi(optarg); break;
        case 'h': printf("Usage: SOR -pP -sSWEEPS < N\n"); exit(0);
        }
    }
    Name = argv[0];
    MAIN_INITENV(,80000000)

    if (scanf("%d", &N) != 1) {
        fprintf(stderr, "no N\n");
        exit(3);
    }
    Edge = (double *) malloc((N + 2) * sizeof(double));
    for (i = 0; i < N + 2; i++) Edge[i] = Value(i);

    Global = (struct GlobalMemory *) G_MALLOC(sizeof(struct GlobalMemory) + (N + 2) * (N + 2) * sizeof(double))
    Grid = Global->grid_of_all;
    LOCKINIT(Global->id_lock)
    LOCKINIT(Global->sum_lock);
    BARINIT(Global->start, P)
    BARINIT(Global->sweep, P);
    Global->id = 0;

    CLOCK(start)
    for (i = 1; i < P; i++) {
        CREATE(SlaveStart)
    }
    SlaveStart();
    WAIT_FOR_END(P-1)
    CLOCK(finish);

    serial = Relax();
    printf("SOR of %d x %d with %d processes: sum %.6f\n", N, N, P, Global->sum);
    if (fabs(serial - Global->sum) > 1e-9 * fabs(serial)) {
        printf("wrong: one process computes %.6f\n", serial);
        exit(1);
    }
    if (finish < start) exit(1);
    printf("right\n");
    MAIN_END
}

void SlaveStart()
{
    int MyNum, i, j, first, last, s, colour;
    double mine = 0, big[20000];

    LOCK(Global->id_lock)
      MyNum = Global->id;
      Global->id++;
    UNLOCK(Global->id_lock)

    for (i = 0; i < 20000; i++) big[i] = i;     /* a large frame */
    if (strlen(Name) == 0) exit(4);
    BARRIER(Global->start, P)
    first = 1 + N * MyNum / P;
    last = N * (MyNum + 1) / P;
    for (i = MyNum; i < N + 2; i += P) {
        Row(i)[0] = Edge[i];
        Row(i)[N + 1] = Edge[i];
        Row(0)[i] = Edge[i];
        Row(N + 1)[i] = Edge[i];
    }
    BARRIER(Global->sweep, P);
    for (s = 0; s < Sweeps; s++)
        for (colour = 0; colour < 2; colour++) {
            for (i = first; i <= last; i++)
                for (j = 1 + (i + colour) % 2; j <= N; j += 2)
                    Row(i)[j] = (Row(i - 1)[j] + Row(i + 1)[j] + Row(i)[j - 1] + Row(i)[j + 1]) / 4;
            BARRIER(Global->sweep, P)
        }
    for (i = first; i <= last; i++)
        for (j = 1; j <= N; j++) mine += Row(i)[j];
    LOCK(Global->sum_lock)
    if (big[19999] == 19999) Global->sum += mine;
    UNLOCK(Global->sum_lock)
}

/* The same by one process. */
double Relax()
{
    double *a, sum = 0;
    int i, j, s, colour, w = N + 2;

    a = (double *) calloc((N + 2) * (N + 2), sizeof(double));
    for (i = 0; i < w; i++) a[i * w] = a[i * w + w - 1] = a[i] = a[(w - 1) * w + i] = Edge[i];
    for (s = 0; s < Sweeps; s++)
        for (colour = 0; colour < 2; colour++)
            for (i = 1; i <= N; i++)
                for (j = 1 + (i + colour) % 2; j <= N; j += 2)
                    a[i * w + j] = (a[(i - 1) * w + j] + a[(i + 1) * w + j] + a[i * w + j - 1] + a[i * w + j + 1]) / 4;
    for (i = 1; i <= N; i++)
        for (j = 1; j <= N; j++) sum += a[i * w + j];
    free(a);
    return sum;
}
