/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of programs may look like: macros with and without semicolons, over several lines,
 * in macros of the preprocessor, in strings and comments; functions with the names of m4's own;
 * don't mind quotes. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

/* MAIN_ENV is next */
MAIN_ENV

#define BOTH(l) \
    do { \
        LOCK(l) \
        UNLOCK(l) \
    } while (0)

struct gm {
    LOCKDEC(one)
    LOCKDEC(two);
    ALOCKDEC(many, 4)
    LOCKDEC(table[3])
    BARDEC(bar);
    PAUSEDEC(flag)
    PAUSEDEC(flags, 3)
    long count;
} *gm;
EXTERN_ENV;

static LOCKDEC(own)
extern BARDEC(elsewhere)
BARDEC(elsewhere)

/* Functions with names of m4's. */
static int len(const char *s) { return (int) strlen(s); }
static const char *format(const char *s) { return s; }
static int eval(int a, int b) { return a + b; }
static int shift(int a) { return a << 1; }
static char *index_of(char *s, int c) { return index(s, c); }

struct node { struct node *next; };

static struct node *make()
{
    struct node *p;
    if ((p = (struct node *) G_MALLOC(sizeof(struct node))) == NULL) exit(1);
    if (p == NULL) p = G_MALLOC(1); else p->next = (struct node *) G_MALLOC(sizeof(struct node),
                                                                          eval(0, 0))
    return p->next == NULL ? NULL : p;
}

static long calls;
void locked(void)
{
    if (gm->count == 0)
        LOCK(gm->two)
    gm->count++;
    BOTH(gm->one);
    if (gm->count != 0) {
        UNLOCK(gm->two)
    }
    ALOCK(gm->many, eval(1,
                         2))
    AULOCK(gm->many, 3);
    ALOCK(gm->table, 2) AUNLOCK(gm->table, 2)
    LOCK(own) calls++; UNLOCK(own)
}

void child(void)
{
    WAITPAUSE(gm->flags[2]);
    locked();
    SETPAUSE(gm->flag)
}

int main(int argc, char **argv)
{
    unsigned int before, after;
    char text[] = "LOCK and BARRIER, CREATE too; PAUSE";

    MAIN_INITENV(,80000)
    AUG_ON
    CLOCK(before);
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    LOCKINIT(gm->one) LOCKINIT(gm->two); ALOCKINIT(gm->many, 4); BARINIT(gm->bar, 2);
    PAUSEINIT(gm->flag) PAUSEINIT(gm->flags[2]);
    CREATE(child)
    SETPAUSE(gm->flags[2])
    WAITPAUSE(gm->flag)
    WAIT_FOR_END(1);
    if (gm->count != 1) { printf("wrong count\n"); exit(1); }
    if (strcmp(text, "LOCK" " and BARRIER, " "CREATE too; PAUSE") != 0 || len(text) != 35) exit(1);
    if (shift(eval(1, 2)) != 6 || strcmp(format("don't"), "don't") || index_of(text, ' ') != text + 4) exit(1);
    if (make() == NULL) exit(1);
    CLOCK(after)
    AUG_OFF
    printf("right, line %d of %s\n", __LINE__, __FILE__);
    WAIT_FOR_END
    MAIN_END
}
