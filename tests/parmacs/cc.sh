# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# `sojourn cc`: as makefiles use it, with m4 called by hand, and what it says of mistakes.
# Usage: cc.sh SOJOURN PROGRAMS HERE
. "$3/../launcher/lib.sh"
sources=$3/programs
mkdir "$work/here" "$work/tmp" || exit 1
cd "$work/here" || exit 1
TMPDIR=$work/tmp
export TMPDIR

nothing_left() { [ -z "$(ls "$TMPDIR")" ] || fail "something is left in TMPDIR: $(ls "$TMPDIR")"; }
runs() {
  try run -n 2 "$@"
  expect_status 0
  expect_out 'right'
}

context='help: '
try cc --help
expect_status 0
expect_out 'sojourn cc -O2 .*-o lu'
try cc --macros
expect_status 0
macros=$(cat "$out")
[ -r "$macros" ] || fail "there is no $macros"

context='one command: '
try cc -O2 -Wall "$sources/radix/radix.C" -o radix
expect_status 0
expect_no_err
nothing_left
[ "$(ls)" = radix ] || fail 'more was written than the program'
runs ./radix -p2

context='objects, then the program: '
for file in lu factor; do
  try cc -c -O2 "$sources/lu/$file.C"
  expect_status 0
done
[ -e lu.o ] && [ -e factor.o ] || fail 'there are no objects'
ar rc liblu.a factor.o
try cc lu.o -L. -llu -lm -o lu
expect_status 0
runs ./lu -p2

context='a makefile that calls m4: '
cp "$sources"/lu/*.[CH] .
cat >Makefile <<'END'
CC := gcc
CFLAGS := -O1
M4 := m4 -s -Ulen -Uindex
OBJS = lu.o factor.o
lu_made: $(OBJS)
	$(CC) $(OBJS) $(CFLAGS) -o lu_made -lm
lu.o factor.o: lu.h
%.o: %.C
.SUFFIXES:
.SUFFIXES: .o .c .C .h .H
.H.h:
	$(M4) $(MACROS) $*.H > $*.h
.C.c:
	$(M4) $(MACROS) $*.C > $*.c
.c.o:
	$(CC) -c $(CFLAGS) $*.c
END
rm -f lu.o factor.o
if command -v make >/dev/null 2>&1; then
  make CC="$sojourn cc" MACROS="$macros" >"$out" 2>"$err" || fail 'make failed'
  runs ./lu_made -p2
fi
# The same text with m4's option -P.
m4 -P -s "$macros" "$sources/radix/radix.C" >r.c || fail 'm4 -P failed'
try cc -O2 r.c -o r
expect_status 0
runs ./r -p2
rm -f ./*

context='folders: '
mkdir -p inc/sub src
cat >inc/sub/types.H <<'END'
struct shared { LOCKDEC(lock) int count; };
END
cat >inc/plain.h <<'END'
#include "sub/types.h"
extern struct shared *all;
END
cat >src/main.C <<'END'
#include <stdio.h>
#include "../inc/plain.h"
MAIN_ENV
#include <config.h>
struct shared *all;
int main() {
  MAIN_INITENV
  all = G_MALLOC(sizeof *all);
  LOCK(all->lock) all->count = VALUE; UNLOCK(all->lock)
  printf(all->count == 5 ? "right\n" : "wrong\n");
  MAIN_END
}
END
mkdir conf
echo '#define VALUE FIVE' >conf/config.h
try cc src/main.C -Iconf -DFIVE=5 -o main
expect_status 0
expect_no_err
runs ./main
nothing_left

context='K&R, and variables that several files define: '
cat >a.C <<'END'
MAIN_ENV
int both; double table[100];
worker() { table[3] = both; if (table[3] != 4) exit(1); return 0; }
main(argc, argv) char **argv; { both = 4; CREATE(worker) other(); WAIT_FOR_END(1) printf("right\n"); MAIN_END }
END
cat >b.c <<'END'
int both; double table[100];
other() { table[3] = both; return both; }
END
try cc a.C b.c -o ab
expect_status 0
runs ./ab

context='names of the C library, and what old programs have from it: '
cat >names.C <<'END'
#include <stdio.h>
typedef int bool;
MAIN_ENV;
struct shared { LOCKDEC(lock) BARDEC(bar) long count; char pad[PAGE_SIZE]; } *all;
char *optarg, *line;
int optind;
send(k) { all->count += k; }
pthread_create() { return 12; }
clock_gettime() { return 77; }
poll() { return 5; }
w() { LOCK(all->lock) send(1); UNLOCK(all->lock) BARRIER(all->bar, 2) }
main(argc, argv) char **argv;
{
  int c, sum = 0;
  while ((c = getopt(argc, argv, "p:")) != -1) sum += atoi(optarg);
  line = malloc(100);
  sum += atoi(gets(line));
  MAIN_INITENV(,80000,)
  all = (struct shared *) G_MALLOC(sizeof(struct shared), 0)
  SPLASH3_ROI_BEGIN();
  CREATE(w, 2);
  WAIT_FOR_END(2);
  SPLASH3_ROI_END();
  printf(sum == 42 && optind == 3 && all->count == 2 && poll() == 5 ? "right\n" : "wrong\n");
  MAIN_END;
}
END
try cc -O2 names.C -o names
expect_status 0
echo 2 >line
status=0
"$sojourn" run -n 2 ./names -p 40 <line >"$out" 2>"$err" || status=$?
expect_status 0
expect_out '^right$'

# Functions that check sizes have other names, by which most would not be replaced; those that allocate
# are, in an object that others have compiled. Objects and libraries are told apart by how their names end.
context='checks of sizes: '
cat >fortified.C <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
MAIN_ENV
struct shared { BARDEC(bar) char text[100001]; char pad[8192]; char copy[100001]; } *all;
char *made;
extern char *by_others;
extern void others_make(const char *format, int n);
void w()
{
  if (strcmp(made, "2 made") != 0 || strcmp(by_others, "3 others") != 0) exit(1);
  free(made);
  free(by_others);
  memset(all->text, 'a', 100000);
  memset(all->copy, 'b', 100000);
  BARRIER(all->bar, 2)
}
int main()
{
  FILE *file = tmpfile();
  MAIN_INITENV
  all = G_MALLOC(sizeof *all);
  if (asprintf(&made, "%d made", 2) < 0) exit(1);
  others_make("%d others", 3);
  CREATE(w)
  BARRIER(all->bar, 2)
  if (fprintf(file, "%d %s", 7, all->text) != 100002) exit(1);
  rewind(file);
  if (fscanf(file, "7 %s", all->copy) != 1 || strcmp(all->text, all->copy) != 0) exit(1);
  WAIT_FOR_END(1)
  printf("right\n");
  MAIN_END
}
END
cat >others.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
char *by_others;
void others_make(const char *format, int n) { if (asprintf(&by_others, format, n) < 0) by_others = 0; }
END
try cc -c -O2 -D_FORTIFY_SOURCE=2 fortified.C
expect_status 0
expect_no_err
if nm -u fortified.o | grep -q '_chk$'; then
  fail 'it calls functions that are not replaced'
fi
gcc -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -c others.c -o my.sources.o || fail 'gcc failed'
mkdir -p of.so
cp my.sources.o of.so/others.so_old.o
for object in my.sources.o of.so/others.so_old.o; do
  try cc -O2 -D_FORTIFY_SOURCE=2 fortified.C $object -o fortified
  expect_status 0
  expect_no_err
  runs ./fortified
done
printf 'int of_library(void) { return 5; }\n' >library.c
gcc -shared -fPIC library.c -o libmine.so.1.2 || fail 'gcc failed'
cat >uses.C <<'END'
#include <stdio.h>
MAIN_ENV
extern int of_library();
int main() { MAIN_INITENV if (of_library() == 5) printf("right\n"); MAIN_END }
END
try cc --dynamic uses.C ./libmine.so.1.2 -o uses
expect_status 0
expect_no_err
runs ./uses

# What waits is called as the source calls it: no C function is a type of C++.
context='short names: '
cat >short.C <<'END'
MAIN_ENV
struct shared { BARDEC(bar) } *all;
void w() { BARRIER(all->bar, 3) }
int main() { MAIN_INITENV all = G_MALLOC(sizeof *all); CREATE(w, 2); MAIN_END }
END
try cc short.C -o short
expect_status 0
try run -n 2 ./short
expect_status 1
expect_err 'deadlock: rank 0 `w` waits at'

context='another compiler: '
if command -v clang-19 >/dev/null 2>&1 && command -v clang++-19 >/dev/null 2>&1; then
  SOJOURN_CC=clang-19 SOJOURN_CXX=clang++-19 try cc -O2 "$sources/radix/radix.C" -o radix_clang
  expect_status 0
  expect_no_err
  runs ./radix_clang -p2
fi

# --- Mistakes

refused() {
  pattern=$1
  shift
  context="cc $*: "
  try cc "$@"
  [ "$status" -ne 0 ] || fail 'it was expected to fail'
  expect_err "$pattern"
  nothing_left
}
cat >wrong.C <<'END'
MAIN_ENV
int main() {
  int i
  LOCK(x)
}
END
refused 'wrong.C:4:' wrong.C -o wrong
[ ! -e wrong ] || fail 'there is a program'
printf 'MAIN_ENV\nint main() {\n  ASKFOR(a, b, c)\n}\n' >ask.C
refused 'ask.C:3: ASKFOR is not among the macros' ask.C
printf 'MAIN_ENV\nint main() {\n  CREATE(a, b, c)\n}\n' >create.C
refused 'create.C:3: CREATE of 3 arguments is not' create.C
printf '/* `open */\nMAIN_ENV\nint main() { }\n' >quote.C
refused 'quote.C:' quote.C
printf 'int f() { return 1; }\n' >no_main.c
refused 'none of these files has a main()' no_main.c
refused "cannot read 'absent.C'" absent.C -o x
refused 'no file was given'
expect_one_sentence
refused 'needs a word after it' -o
expect_one_sentence
refused 'takes one source file' -c a.C wrong.C -o x
expect_one_sentence
refused 'no source file was given' -c
context='a compiler that is not there: '
SOJOURN_CC=absent-cc try cc a.C b.c
expect_status 2
expect_err "there is no 'absent-cc' here"
context='without m4: '
mkdir bin
for tool in gcc g++ as ld nm objcopy date grep tail; do
  where=$(command -v $tool) && ln -s "$where" bin/$tool
done
PATH=$work/here/bin try cc a.C
expect_status 2
expect_err 'm4 is not here, and files like .a.C. need it: install the package m4'

nothing_there() { [ -z "$(ls "$TMPDIR")" ]; }
# A signal leaves nothing behind.
context='interrupted: '
mkdir slow
printf '#!/bin/sh\nsleep 1\nexit 1\n' >slow/m4
chmod +x slow/m4
PATH=$work/here/slow:$PATH "$sojourn" cc a.C >"$out" 2>"$err" &
compiling=$!
until_true 5000 not nothing_there || fail "it did not begin"
kill -TERM $compiling
wait $compiling 2>/dev/null && fail 'it went on'
nothing_left
