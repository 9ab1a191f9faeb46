/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

EXTERN_ENV

#include "lu.h"

Block *BlockAt(int i, int j) { return &Blocks[i * NB + j]; }

/* A process for each block, in a grid as square as can be. */
int Owner(int i, int j)
{
    static int across = 0;
    if (across == 0)
        for (across = 1; (across + 1) * (across + 1) <= P; across++)
            ;
    while (P % across != 0) across--;
    return (i % (P / across)) * across + j % across;
}

double Entry(int i, int j)
{
    return i == j ? 10.0 * NB * BLOCK : 1.0 / (1 + i + 2 * j);
}

void Fill(int MyNum)
{
    int i, j, k, l;
    for (i = 0; i < NB; i++)
        for (j = 0; j < NB; j++)
            if (Owner(i, j) == MyNum)
                for (k = 0; k < BLOCK; k++)
                    for (l = 0; l < BLOCK; l++)
                        BlockAt(i, j)->a[k][l] = Entry(i * BLOCK + k, j * BLOCK + l);
}

static void Diagonal(double a[BLOCK][BLOCK])
{
    int i, j, k;
    for (k = 0; k < BLOCK; k++)
        for (i = k + 1; i < BLOCK; i++) {
            a[i][k] /= a[k][k];
            for (j = k + 1; j < BLOCK; j++) a[i][j] -= a[i][k] * a[k][j];
        }
}

static void Right(double a[BLOCK][BLOCK], double d[BLOCK][BLOCK])
{
    int i, j, k;
    for (k = 0; k < BLOCK; k++)
        for (i = k + 1; i < BLOCK; i++)
            for (j = 0; j < BLOCK; j++) a[i][j] -= d[i][k] * a[k][j];
}

static void Below(double a[BLOCK][BLOCK], double d[BLOCK][BLOCK])
{
    int i, j, k;
    for (i = 0; i < BLOCK; i++)
        for (k = 0; k < BLOCK; k++) {
            a[i][k] /= d[k][k];
            for (j = k + 1; j < BLOCK; j++) a[i][j] -= a[i][k] * d[k][j];
        }
}

static void Inside(double a[BLOCK][BLOCK], double l[BLOCK][BLOCK], double u[BLOCK][BLOCK])
{
    int i, j, k;
    for (i = 0; i < BLOCK; i++)
        for (k = 0; k < BLOCK; k++)
            for (j = 0; j < BLOCK; j++) a[i][j] -= l[i][k] * u[k][j];
}

void Factor(int MyNum)
{
    int i, j, k;
    for (k = 0; k < NB; k++) {
        if (Owner(k, k) == MyNum) Diagonal(BlockAt(k, k)->a);
        BARRIER(Global->step, P);
        for (i = k + 1; i < NB; i++) {
            if (Owner(i, k) == MyNum) Below(BlockAt(i, k)->a, BlockAt(k, k)->a);
            if (Owner(k, i) == MyNum) Right(BlockAt(k, i)->a, BlockAt(k, k)->a);
        }
        BARRIER(Global->step, P);
        for (i = k + 1; i < NB; i++)
            for (j = k + 1; j < NB; j++)
                if (Owner(i, j) == MyNum)
                    Inside(BlockAt(i, j)->a, BlockAt(i, k)->a, BlockAt(k, j)->a);
    }
}
