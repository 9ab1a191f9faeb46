/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that create others, two at once, or while others wait at a barrier; the first word says
 * which. */
#include <stdio.h>
#include <string.h>

MAIN_ENV

#define LENGTH 5000

struct gm {
    LOCKDEC(lock)
    BARDEC(bar)
    PAUSEDEC(arrives[4])
    PAUSEDEC(begin)
    PAUSEDEC(has_creator)
    PAUSEDEC(over)
    int rounds[8], count;
} *gm;

char *from[4];          /* by process: what it has from malloc(), with its number on it */
int ready = 0;
int full[3000] = {1, 2, 3};

void check(int is_right, const char *what)
{
    if (is_right) return;
    printf("wrong: process %d: %s\n", sojourn_process(), what);
    fflush(stdout);
    exit(1);
}

void allocate(int me)
{
    from[me] = (char *) malloc(LENGTH);
    memset(from[me], 'a' + me, LENGTH);
}

void check_inherited(int below)
{
    int i, k;
    for (k = 0; k < below; k++)
        for (i = 0; i < LENGTH; i++) check(from[k][i] == 'a' + k, "it has not inherited that");
}

/* --- A chain: each one has what all before it have had. */
void link_of_chain()
{
    int me = sojourn_process();
    check_inherited(me);
    check(full[0] == 0 && full[1] == 0 && full[2] == 0, "a variable has its first value");
    if (me == 3) return;
    allocate(me);
    CREATE(link_of_chain)
}

/* --- A new process in the place of one whose memory it has inherited. */
void in_its_place()
{
    char *mine[200];
    int i;
    check_inherited(3);
    for (i = 0; i < 200; i++) {
        mine[i] = (char *) malloc(LENGTH);
        memset(mine[i], 'x', LENGTH);
    }
    check_inherited(3);
    free(from[1]);
    for (i = 0; i < 200; i++) free(mine[i]);
    mine[0] = (char *) malloc(LENGTH);
    check(mine[0] != from[1], "what the creator has is dealt out");
    gm->count++;
}
void third()
{
    check_inherited(2);
    allocate(2);
    WAITPAUSE(gm->begin)
    CREATE(in_its_place)
}
void second()
{
    check_inherited(1);
    allocate(1);
    CREATE(third)
}

/* --- Two creators of two processes that come to one rank */
void created()
{
    check(ready == 42, "it has begun before it had its creator's variables");
    LOCK(gm->lock) gm->count++; UNLOCK(gm->lock)
}
void keeps_its_rank() { WAITPAUSE(gm->has_creator) }
void creator()      /* beside main(), whose variables it shares */
{
    WAITPAUSE(gm->begin)
    CREATE(created)
    WAITPAUSE(gm->over)
}

/* --- Three wait at a barrier of four when another one is created. */
void meet(int place, int round)
{
    int i, count = 0;
    gm->rounds[place] = round;
    BARRIER(gm->bar, 4)
    for (i = 0; i < 8; i++) count += gm->rounds[i] == round;
    check(count == 4, "four have not met");
    BARRIER(gm->bar, 4)
}
void comes_instead()
{
    meet(4, 4);
    meet(4, 6);
}
void comes_later() { meet(5, 6); }
void one_of_four()
{
    int i, me = sojourn_process();
    for (i = 1; i <= 3; i++) meet(me, i);
    SETPAUSE(gm->arrives[me])
    meet(me, 4);
    if (me == 3) {
        SETPAUSE(gm->arrives[0])
        return;
    }
    if (me == 2) return;
    meet(me, 6);
}

int main(int argc, char **argv)
{
    int i;
    const char *kind = argv[1];

    MAIN_INITENV
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    memset(full, 0, sizeof full);
    allocate(0);
    if (strcmp(kind, "chain") == 0) {
        CREATE(link_of_chain)
        WAIT_FOR_END(3)
    } else if (strcmp(kind, "place") == 0) {
        CREATE(second)
        WAIT_FOR_END(1)
        SETPAUSE(gm->begin)
        WAIT_FOR_END(2)
        check(gm->count == 1, "there were not four");
    } else if (strcmp(kind, "two") == 0) {      /* on two ranks */
        char *large = (char *) malloc(20000000);
        memset(large, 1, 20000000);
        CREATE(keeps_its_rank)
        CREATE(creator)
        SETPAUSE(gm->has_creator)
        WAIT_FOR_END(1)
        ready = 42;
        SETPAUSE(gm->begin)
        CREATE(created)
        WAIT_FOR_END(2)
        SETPAUSE(gm->over)
        WAIT_FOR_END
        check(gm->count == 2, "there were not two");
    } else if (strcmp(kind, "barrier") == 0) {
        for (i = 1; i <= 3; i++) CREATE(one_of_four)
        for (i = 1; i <= 3; i++) meet(0, i);
        for (i = 1; i <= 3; i++) WAITPAUSE(gm->arrives[i])
        for (i = 0; i < 100; i++) sojourn_yield();
        CREATE(comes_instead)           /* of main() */
        WAITPAUSE(gm->arrives[0])       /* they have met */
        WAIT_FOR_END(2)                 /* two are gone, and others wait for three */
        CREATE(comes_later)
        meet(0, 6);
        WAIT_FOR_END
    }
    printf("right\n");
    MAIN_END
}
