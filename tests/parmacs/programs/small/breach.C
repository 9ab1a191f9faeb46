/* SPDX-License-Identifier: Apache-2.0 */
/* What programs must not do, and ways in which processes end; the first word says which. */
#include <stdio.h>
#include <string.h>

MAIN_ENV

struct gm {
    LOCKDEC(lock)
    BARDEC(bar)
    int *pointer;
} *gm;

int P = 2;
int is_child = 0;
char *kind;

int is(const char *what) { return strcmp(kind, what) == 0; }

int deep(int n)
{
    volatile char large[10000];
    large[n] = 1;
    return n == 0 ? 0 : deep(n - 1) + large[n];
}

void slave()
{
    int local[4];
    int me = is_child || sojourn_process() != 0;

    local[0] = 42;
    if (is("private") && me == 0) gm->pointer = (int *) malloc(400);
    if (is("stack") && me == 1) gm->pointer = local;
    BARRIER(gm->bar, P)
    if (is("private") && me == 1) printf("read %d\n", *gm->pointer);
    if (is("stack") && me == 0) printf("read %d\n", *gm->pointer);
    if (is("old") && me == 1) printf("read %d\n", *gm->pointer);
    if (me == 1) {
        if (is("exit7")) exit(7);
        if (is("exit0")) exit(0);
        if (is("_exit")) _exit(9);
        if (is("abort")) abort();
        if (is("twice")) {
            char *volatile p = (char *) malloc(5);
            free(p);
            free(p);
        }
        if (is("half")) {
            unsigned low = (unsigned) (unsigned long) gm + 0x3000;
            *(volatile int *) (unsigned long) low = 1;
        }
        if (is("literal")) *(volatile char *) strchr("a string", 's') = 'S';
        if (is("unlock")) UNLOCK(gm->lock)
        if (is("hang")) BARRIER(gm->bar, P)
        if (is("count")) BARRIER(gm->bar)
        if (is("deep")) deep(1000);
    }
}

int main(int argc, char **argv)
{
    int here[4];
    kind = argv[1];
    MAIN_INITENV()
    if (is("early")) exit(4);
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    here[0] = 99;
    gm->pointer = here;             /* before CREATE: the new process has a copy */
    if (is("big")) {
        if (G_MALLOC_F((size_t) 1 << 60) == NULL) printf("no memory\n");
        if (malloc((size_t) 1 << 60) == NULL) printf("none here\n");
        exit(0);
    }
    is_child = 1;
    CREATE(slave)
    is_child = 0;
    if (is("nowait")) return 0;
    slave();
    if (is("main5")) exit(5);
    WAIT_FOR_END(P - 1)
    printf("the end\n");
    MAIN_END
}
