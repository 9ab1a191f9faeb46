# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# How programs of several processes end, and what is said of what they must not do.
# Usage: ends.sh SOJOURN PROGRAMS HERE
. "$3/../launcher/lib.sh"
ulimit -c 0
program=$2/parmacs_breach

# ended KIND STATUS [SENTENCE on standard error]
ended() {
  context="$1: "
  try run -n 2 "$program" "$1"
  expect_status "$2"
  [ -z "${3-}" ] || expect_err "$3"
}

ended old 0
expect_out '^the end$'
expect_out '^read 99$' # main's stack, as it was at CREATE
expect_no_err
ended exit0 0
expect_out '^the end$'
expect_no_err
ended exit7 7 'rank 1 .* exited with status 7'
ended _exit 9 'rank 1 .* exited with status 9'
ended main5 5 'rank 0 .* exited with status 5'
ended early 4 'rank 0 .* exited with status 4'
ended abort 134 'rank 1 .* was killed by SIGABRT'
expect_err 'slave.* at .*breach.C:[0-9]'

# Memory of another process.
ended private 139 'a process on rank 1 followed a pointer to memory that one on rank 0 has from malloc()'
expect_err 'must come from G_MALLOC'
expect_err 'slave.* at .*breach.C:[0-9]'
ended stack 139 'a process on rank 0 followed a pointer into the stack of one on rank 1'
ended half 139 'kept in an int or unsigned and has lost its upper half: pointers have 64 bits'
ended literal 139 "a store to 0x[0-9a-f]*, which is the program's code or its constants: a string in quotes cannot be changed"
ended twice 134 'free() or realloc() of 0x[0-9a-f]*, where no block from malloc() begins, or one that was freed before'
ended unlock 134 'is unlocked on rank 1, where no fiber holds it'
ended count 134 '0 processes are to meet: say how many'
ended deep 139 'stack overflow: the stack of a fiber, 8192 KiB, is full'
ended hang 1 'no fiber of any rank can go on'
ended nowait 1 'no fiber of any rank can go on'
ended big 0 'bytes of shared memory are asked for on rank 0'
expect_err 'malloc() of .* bytes on rank 0: the addresses .* are used up'
expect_out '^no memory$'
expect_out '^none here$'

# More processes than ranks: told once, and the stack of those beside is 8 MiB unless one is asked for.
context='shared globals: '
try run -n 1 "$2/parmacs_lu" -p4
expect_status 0
[ "$(grep -c 'shares the global variables' "$err")" -eq 1 ] || fail 'not told once'
context='stack of a process: '
status=0
try run -n 1 --stack-fiber 256K "$program" deep
expect_status 139
expect_err 'stack overflow: the stack of a fiber, 256 KiB'

# A child of fork() ends alone, as it asks, and what it has a copy of is written once.
for how in _exit _Exit; do
  context="fork and $how: "
  try run -n 2 "$2/parmacs_forks" $how
  expect_status 0
  expect_out '^right$'
  expect_no_err
  [ "$(grep -c 'process [01] goes on' "$out")" -eq 2 ] || fail 'not both have gone on'
  [ "$(grep -o 'process' "$out" | wc -l)" -eq 2 ] || fail 'the output has something twice'
done
context='fork and exit: '
try run -n 2 "$2/parmacs_forks" exit # which writes what is buffered, as in any program
expect_status 0
expect_out 'right$'
expect_no_err

# Input is read by the first process alone; without the launcher all run in one.
context='input: '
for ranks in 1 2 4 8; do
  status=0
  echo 60 | "$sojourn" run -n $ranks "$2/parmacs_sor" -p4 -s5 >"$out" 2>"$err" || status=$?
  expect_status 0
  expect_out '^SOR of 60 x 60 with 4 processes: sum'
  [ "$(grep -c '^right$' "$out")" -eq 1 ] || fail 'it is right, once'
done
status=0
echo 60 >"$work/input"
"$2/parmacs_sor" -p4 <"$work/input" >"$out" 2>"$err" || status=$?
expect_status 0
expect_out '^right$'
status=0
"$2/parmacs_sor" -p4 </dev/null >"$out" 2>"$err" || status=$?
expect_status 3
status=0
"$2/parmacs_sor" -p100 </dev/null >"$out" 2>"$err" || status=$?
expect_status 255
