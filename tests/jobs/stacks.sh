# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154,SC3045
# Stacks of other sizes than usual: what they hold, what is said when they are full, and which sizes
# are refused.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
sanitized=$3
unset SOJOURN_REGION_GIB SOJOURN_STACK_KIB SOJOURN_MAIN_STACK_KIB

ends_well() {
  try run "$@"
  expect_status 0
  expect_no_err
}

for share in on off; do
  ends_well -n 2 --share $share --stack-main 256M "$program" main
  ends_well -n 2 --share $share --stack-fiber 256M "$program" fiber
  ends_well -n 2 --share $share --stack-fiber 32M "$program" thread
done
SOJOURN_READ_MEMORY=off ends_well -n 2 --share off --stack-fiber 32M "$program" thread
# The most there is, together; and a main's that is no whole number of fibers' stacks.
ends_well -n 2 --stack-main 1G --stack-fiber 1G "$program" fiber
ends_well -n 1 --stack-main 300M --stack-fiber 128M "$program" main
ends_well -n 1 --stack-main 8M --stack-fiber 64K "$program" nothing
ends_well -n 1 --stack-main 64K --stack-fiber 1M "$program" nothing
SOJOURN_MAIN_STACK_KIB=262144 SOJOURN_STACK_KIB=262144 ends_well -n 2 "$program" main
SOJOURN_MAIN_STACK_KIB=64 ends_well -n 1 --stack-main 256M "$program" main
SOJOURN_CHECKED=1 ends_well -n 2 --stack-fiber 512M "$program" fiber
SOJOURN_CHECKED=1 ends_well -n 2 --stack-fiber 512M "$program" thread
# Without the launcher.
SOJOURN_MAIN_STACK_KIB=262144 "$program" main >"$out" 2>"$err" || fail 'a program by itself'
expect_no_err
# What the shell allows is for the thread that only waits for the rank's end.
(ulimit -s 1024 && "$sojourn" run -n 2 --stack-main 256M "$program" main) >"$out" 2>"$err" ||
  fail 'main needs the stack that the shell allows'
# A rank that has fewer stacks than fibers makes images of the others.
SOJOURN_REGION_GIB=64 ends_well -n 2 --stack-fiber 256M "$program" many

if [ "$sanitized" = 0 ]; then
  try run -n 2 --stack-main 100M "$program" main
  expect_status 139
  expect_err 'stack overflow: the stack of a main fiber, 102400 KiB, is full; .* run with a larger one: --stack-main SIZE (SOJOURN_MAIN_STACK_KIB)$'
  SOJOURN_CMAKE_ARGS=-O SOJOURN_RANKS=3 try run -n 2 --stack-fiber 128M "$program" fiber
  expect_status 139
  expect_err 'stack overflow: the stack of a fiber, 131072 KiB, is full; .* run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)$'
  expect_err 'to run it again: .*SOJOURN_STACK_KIB=131072 .*sojourn run -n 2'
  # Only what a run reads is repeated, whatever else is set.
  ! grep -q -e SOJOURN_CMAKE_ARGS -e SOJOURN_RANKS "$err" || fail 'what no run reads is repeated'
fi

# refused SENTENCE ARGUMENTS...
refused() {
  sentence=$1
  shift
  try run "$@" "$program" main
  expect_status 2
  expect_one_sentence
  expect_err "$sentence"
}
for size in 0 0K 1K 1024 K 63K 1025M 2G 99999999999999999999G -1M 1.5G 1GB 64k many; do
  refused "^sojourn run: --stack-main takes a size from 64K to 1G, such as 256M, that is a multiple of 64K, not '$size'$" \
    --stack-main="$size"
  refused "^sojourn run: --stack-fiber takes a size from 64K to 1G, such as 256M, that is a power of two, not '$size'$" \
    --stack-fiber="$size"
done
refused "a multiple of 64K, not '100K'" --stack-main 100K
refused "a power of two, not '192K'" --stack-fiber 192K
for kib in 0 63 1048577 big -64; do
  SOJOURN_MAIN_STACK_KIB=$kib refused "SOJOURN_MAIN_STACK_KIB=$kib is not a whole number from 64 to 1048576$" -n 2
  SOJOURN_STACK_KIB=$kib refused "SOJOURN_STACK_KIB=$kib is not a whole number from 64 to 1048576$" -n 2
done
SOJOURN_MAIN_STACK_KIB=100 refused 'SOJOURN_MAIN_STACK_KIB=100 is not a multiple of 64$' -n 2
small='^sojourn run: a region of 8192 MiB is too small for 2 ranks with stacks of'
SOJOURN_REGION_GIB=8 refused "$small 1048576 KiB (main: 8192 KiB) and eight fibers each: set SOJOURN_REGION_GIB to 256 or more, or use fewer ranks, or smaller stacks (--stack-fiber, --stack-main)$" \
  -n 2 --stack-fiber 1G
SOJOURN_REGION_GIB=8 refused "$small 256 KiB (main: 1048576 KiB) and eight fibers each: set SOJOURN_REGION_GIB to 32 or more" \
  -n 2 --stack-main 1G
