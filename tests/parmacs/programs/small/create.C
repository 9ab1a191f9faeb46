/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs whose processes create others, meet at barriers, all of them or some, and end, in
 * whatever order: create FIRST COUNT [EVENTS] runs those with the numbers from FIRST. Each is a list
 * of events in an order that all processes can keep, so it cannot hang. Where each process has a rank
 * to itself, they also look at what they have inherited from malloc(). */
#include <stdio.h>
#include <string.h>

MAIN_ENV

#define EVENTS 200
#define PROCESSES 12

enum kind { meeting, creation, ending, rest };

struct event {
    enum kind kind;
    unsigned who;               /* bits of processes */
    int child, barrier, ended;
};

struct plan {
    struct event event[EVENTS];
    int events, is_own;
    long stamp[PROCESSES][EVENTS];
    BARDEC(bar[EVENTS])
} *plan;

/* What a process has before it creates another is there in both. */
struct node {
    struct node *next;
    int event, changed, bytes;
    unsigned char fill[1];
} *list;
int inherited = 0;
int once_full[5000] = {1, 2, 3};
unsigned long state;

int any(int below)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (int) ((state >> 33) % (unsigned long) below);
}

int count_of(unsigned who) { return __builtin_popcount(who); }

void wrong(const char *what, int me, int e)
{
    printf("wrong: process %d, event %d: %s\n", me, e, what);
    fflush(stdout);
    exit(1);
}

/* --- The plan */

typedef struct { unsigned char of[EVENTS]; } known;

void make_plan(int number, int events)
{
    static known knows[PROCESSES];      /* which events are over */
    static int last_use[EVENTS];
    unsigned alive = 1;
    int e, p, b, used = 1, occupied = 1, ranks = sojourn_ranks(), most, barriers = 3, ended = 0;

    state = (unsigned long) number * 7919 + 12345;
    any(2);
    memset(plan, 0, sizeof *plan);
    memset(knows, 0, sizeof knows);
    for (b = 0; b < EVENTS; b++) last_use[b] = -1;
    plan->is_own = ranks > 1 && any(2);
    most = plan->is_own ? ranks : 2 + any(PROCESSES - 2);
    plan->events = events;
    for (e = 0; e < events; e++) {
        struct event *now = &plan->event[e];
        int what = any(100);
        unsigned who = alive;

        if (what < 25 && (occupied >= most || used >= PROCESSES)) what = ended != 0 ? 99 : 60;
        if (what >= 25 && what < 35 && count_of(alive) == 1) what = 60;
        if (what < 35) {
            do p = any(PROCESSES); while (!(alive & 1u << p) || (what >= 25 && p == 0));
            now->kind = what < 25 ? creation : ending;
            now->who = 1u << p;
            if (what < 25) {
                now->child = used;
                knows[used] = knows[p];
                alive |= 1u << used++;
                ++occupied;
            } else {
                alive &= ~(1u << p);
                ++ended;
            }
            continue;
        }
        now->kind = what >= 97 && ended != 0 ? rest : meeting;
        if (now->kind == rest) {
            /* All meet, main() waits for those that have ended, all meet again. */
            now->ended = ended;
            occupied -= ended;
            ended = 0;
        } else if (what < 65) {
            who = (unsigned) any(1 << PROCESSES) & alive;
            if (who == 0) who = alive;
        }
        /* A barrier whose last use is over for all who come. */
        for (b = any(barriers); ; b = b + 1) {
            int is_free = 1;
            for (p = 0; p < PROCESSES; p++)
                if ((who & 1u << p) && last_use[b] >= 0 && !knows[p].of[last_use[b]]) is_free = 0;
            if (is_free) break;
        }
        last_use[b] = e;
        now->barrier = b;
        now->who = who;
        for (p = 0; p < PROCESSES; p++) {
            int q, k;
            if (!(who & 1u << p)) continue;
            for (q = 0; q < PROCESSES; q++)
                if (who & 1u << q)
                    for (k = 0; k < e; k++) knows[p].of[k] |= knows[q].of[k];
            knows[p].of[e] = 1;
        }
    }
}

/* --- What a process does */

void check_list(int me, int e)
{
    struct node *n;
    int i, count = 0;
    for (n = list; n != NULL; n = n->next, count++)
        for (i = 0; i < n->bytes; i++)
            if (n->fill[i] != (unsigned char) (n->event + n->changed)) wrong("memory has changed", me, e);
    if (count != inherited) wrong("the list is not as long as it was", me, e);
    for (i = 0; i < 5000; i++)
        if (once_full[i] != 0) wrong("a variable has its value from the beginning", me, e);
}

void add_node(int e)
{
    int bytes = any(10) == 0 ? 30000 : 10 + any(500);
    struct node *n = (struct node *) malloc(sizeof(struct node) + bytes);
    n->event = e;
    n->changed = 0;
    n->bytes = bytes;
    memset(n->fill, e, bytes);
    n->next = list;
    list = n;
    inherited++;
}

void change_list(int me)
{
    struct node **n;
    for (n = &list; *n != NULL;) {
        struct node *gone = *n;
        if (any(4) == 0) {
            (*n)->changed += me + 1;
            memset((*n)->fill, (*n)->event + (*n)->changed, (*n)->bytes);
        }
        if (any(8) == 0) {
            *n = gone->next;
            inherited--;
            free(gone);
        } else {
            n = &(*n)->next;
        }
    }
}

void meet(int me, int e)
{
    const struct event *now = &plan->event[e];
    int p;
    plan->stamp[me][e] = e + 1;
    BARRIER(plan->bar[now->barrier], count_of(now->who))
    for (p = 0; p < PROCESSES; p++)
        if ((now->who & 1u << p) && plan->stamp[p][e] != e + 1) wrong("somebody has not arrived", me, e);
}

void process(void *from)
{
    int e, began = (int) ((long) from & 0xffff), me = (int) ((long) from >> 16);

    if (plan->is_own) {
        check_list(me, began);
        state += (unsigned long) me * 1000003;
    }
    for (e = began; e < plan->events; e++) {
        const struct event *now = &plan->event[e];
        if (!(now->who & 1u << me)) continue;
        switch (now->kind) {
        case creation:
            if (plan->is_own) add_node(e);
            sojourn_create(process, (void *) ((long) now->child << 16 | (e + 1)));
            if (plan->is_own) {
                check_list(me, e);
                change_list(me);
            }
            break;
        case ending:
            return;
        case rest:
            meet(me, e);
            if (me == 0) WAIT_FOR_END(now->ended)
            BARRIER(plan->bar[now->barrier], count_of(now->who))
            break;
        case meeting:
            meet(me, e);
            break;
        }
        if (plan->is_own) {
            check_list(me, e);
            if (any(3) == 0) change_list(me);
            if (any(2) == 0) add_node(e);
        }
    }
}

int main(int argc, char **argv)
{
    int number, first = argc > 1 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 1;
    int events = argc > 3 ? atoi(argv[3]) : 60;

    MAIN_INITENV
    memset(once_full, 0, sizeof once_full);
    for (number = first; number < first + count; number++) {
        plan = (struct plan *) G_MALLOC(sizeof(struct plan));
        make_plan(number, events);
        while (list != NULL) {
            struct node *next = list->next;
            free(list);
            list = next;
        }
        inherited = 0;
        process((void *) 0l);
        WAIT_FOR_END
        G_FREE(plan)
    }
    printf("right\n");
    MAIN_END
}
