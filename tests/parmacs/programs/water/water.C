/* SPDX-License-Identifier: Apache-2.0 */
/* Particles on a line that push each other, each pair computed by one process: forces are added
 * under one lock of an array for each particle. */
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#define N 96

typedef struct {
    double x, v;
    double force;
} molecule;

struct GlobalMemory {
    LOCKDEC(IOLock)
    LOCKDEC(IndexLock)
    ALOCKDEC(MolLock, N)
    BARDEC(start)
    BARDEC(forces)
    int Index;
    double energy;
} *gl;

molecule *VAR;
static int NumProcs = 1, steps = 4;
double *initial;      /* each process its own copy, as before CREATE */

void WorkStart(void);
double Serial(void);

double push(double d) { return d / (0.1 + d * d); }

int main(int argc, char **argv)
{
    int i;
    double s;
    if (argc > 1) NumProcs = atoi(argv[1]);
    MAIN_INITENV(,40000000,)
    gl = (struct GlobalMemory *) G_MALLOC(sizeof(struct GlobalMemory));
    VAR = (molecule *) G_MALLOC(N * sizeof(molecule), 0);
    initial = (double *) calloc(N, sizeof(double));
    initial = (double *) realloc(initial, 4 * N * sizeof(double));
    for (i = 0; i < N; i++) initial[i] = i + 0.3 * sin(7.0 * i);
    LOCKINIT(gl->IOLock); LOCKINIT(gl->IndexLock);
    ALOCKINIT(gl->MolLock, N);
    BARINIT(gl->start, NumProcs); BARINIT(gl->forces, NumProcs);
    gl->Index = 1;
    for (i = 1; i < NumProcs; i++) CREATE(WorkStart)
    free(initial + 0 * N);
    initial = 0;
    WorkStart();
    WAIT_FOR_END(NumProcs - 1)
    s = Serial();
    if (fabs(gl->energy - s) > 1e-9 * fabs(s)) {
        printf("wrong: %.12g, one process computes %.12g\n", gl->energy, s);
        exit(1);
    }
    printf("right: %d processes, energy %.9g\n", NumProcs, s);
    exit(0);
}

void WorkStart(void)
{
    int me = 0, i, j, t;
    double mine = 0;
    double local[N];
    if (initial == 0) {
        for (i = 0; i < N; i++) VAR[i].x = i + 0.3 * sin(7.0 * i);
    } else {
        LOCK(gl->IndexLock)
            me = gl->Index++;
        UNLOCK(gl->IndexLock)
        memcpy(local, initial, sizeof local);
        free(initial);
        initial = (double *) malloc(5000);
        memset(initial, 1, 5000);
    }
    BARRIER(gl->start, NumProcs);
    if (me != 0)
        for (i = 0; i < N; i++)
            if (fabs(local[i] - VAR[i].x) > 1e-12) {
                LOCK(gl->IOLock);
                printf("process %d has another molecule %d\n", me, i);
                UNLOCK(gl->IOLock);
            }
    BARRIER(gl->start, NumProcs);
    for (t = 0; t < steps; t++) {
        for (i = me; i < N; i += NumProcs)
            for (j = i + 1; j < N && j < i + N / 2; j++) {
                double f = push(VAR[i].x - VAR[j].x);
                ALOCK(gl->MolLock, i);
                VAR[i].force += f;
                AULOCK(gl->MolLock, i);
                ALOCK(gl->MolLock, j);
                VAR[j].force -= f;
                AUNLOCK(gl->MolLock, j);
            }
        BARRIER(gl->forces, NumProcs);
        for (i = me; i < N; i += NumProcs) {
            VAR[i].v += 0.01 * VAR[i].force;
            VAR[i].x += 0.01 * VAR[i].v;
            VAR[i].force = 0;
        }
        BARRIER(gl->forces, NumProcs);
    }
    for (i = me; i < N; i += NumProcs) mine += VAR[i].v * VAR[i].v + VAR[i].x;
    LOCK(gl->IOLock)
    gl->energy += mine;
    UNLOCK(gl->IOLock)
}

double Serial(void)
{
    static molecule m[N];
    int i, j, t;
    double sum = 0;
    for (i = 0; i < N; i++) m[i].x = i + 0.3 * sin(7.0 * i);
    for (t = 0; t < steps; t++) {
        for (i = 0; i < N; i++)
            for (j = i + 1; j < N && j < i + N / 2; j++) {
                double f = push(m[i].x - m[j].x);
                m[i].force += f;
                m[j].force -= f;
            }
        for (i = 0; i < N; i++) {
            m[i].v += 0.01 * m[i].force;
            m[i].x += 0.01 * m[i].v;
            m[i].force = 0;
        }
    }
    for (i = 0; i < N; i++) sum += m[i].v * m[i].v + m[i].x;
    return sum;
}
