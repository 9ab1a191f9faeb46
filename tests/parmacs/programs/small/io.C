/* SPDX-License-Identifier: Apache-2.0 */
/* Input and output straight into and from shared memory, in pages that another process had last. */
#include <stdio.h>
#include <string.h>

MAIN_ENV

#define BYTES 200000

struct gm {
    BARDEC(bar)
    double number[3];
    char word[100];
    char pad[4096];
    char text[BYTES];
    char back[BYTES];
} *gm;
FILE *out;

void other()
{
    int i;
    for (i = 0; i < BYTES; i++) gm->text[i] = 'a' + i % 26;
    memset(gm->back, 1, BYTES);
    strcpy(gm->word, "stored elsewhere");
    gm->number[1] = 2;
    BARRIER(gm->bar, 2)
    BARRIER(gm->bar, 2)
    printf("%s, %.1f\n", gm->word, gm->number[0]);     /* from the first process */
}

int main()
{
    char line[100] = "1.5 word";
    FILE *file;

    MAIN_INITENV
    gm = (struct gm *) G_MALLOC(sizeof(struct gm));
    BARINIT(gm->bar, 2)
    CREATE(other)
    BARRIER(gm->bar, 2)
    if ((file = tmpfile()) == NULL) return 1;
    if (fwrite(gm->text, 1, BYTES, file) != BYTES) { printf("fwrite\n"); exit(1); }
    rewind(file);
    if (fread(gm->back, 1, BYTES, file) != BYTES || memcmp(gm->text, gm->back, BYTES) != 0) {
        printf("fread\n");
        exit(1);
    }
    rewind(file);
    fprintf(file, "%s\n%s\n", gm->word, line);
    rewind(file);
    if (fgets(gm->text, BYTES, file) == NULL || strcmp(gm->text, "stored elsewhere\n")) exit(1);
    if (fscanf(file, "%lf %s", &gm->number[0], gm->word) != 2) { printf("fscanf\n"); exit(1); }
    if (strcmp(gm->word, "word") != 0 || gm->number[0] != 1.5) exit(1);
    fclose(file);
    BARRIER(gm->bar, 2)
    WAIT_FOR_END(1)
    printf("right\n");
    MAIN_END
}
