/* SPDX-License-Identifier: Apache-2.0 */
/* A process has a child by fork(), which ends as it asks and leaves the job alone. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

MAIN_ENV

struct gm { BARDEC(bar) int status[2]; } *gm;
const char *how;

void worker()
{
    int status = 0, me = sojourn_process();
    pid_t child;

    BARRIER(gm->bar, 2)
    printf("process %d", me);           /* in the buffer, which the child has a copy of */
    child = fork();
    if (child == 0) {
        if (strcmp(how, "exit") == 0) exit(3);
        if (strcmp(how, "_Exit") == 0) _Exit(3);
        _exit(3);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) exit(1);
    printf(" goes on\n");
    gm->status[me] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    BARRIER(gm->bar, 2)
}

int main(int argc, char **argv)
{
    how = argv[1];
    MAIN_INITENV
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    CREATE(worker)
    worker();
    WAIT_FOR_END(1)
    printf(gm->status[0] == 3 && gm->status[1] == 3 ? "right\n" : "wrong\n");
    MAIN_END
}
