# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2016,SC2154
# Without debug information on variables a word may as well be dead: it is warned of, once a
# function, unless that is excused, and the job goes on. Usage: bare.sh SOJOURN PROGRAM
. "$(dirname "$0")/../../launcher/lib.sh"
program=$2
ulimit -c 0
unset SOJOURN_SCAN SOJOURN_ALLOW SOJOURN_VIA
SOJOURN_CHECKED=1
export SOJOURN_CHECKED
warning='warning: `tree::walk` migrates to rank 1 with a word (0x[0-9a-f]*, .*) that looks like a pointer into this rank.s private heap, to an allocation of 24 bytes: pass the data by value'

for share in on off; do
  try run -n 2 --share $share "$program"
  expect_status 0
  expect_out '^42$'
  expect_err "$warning"
  [ "$(grep -c -e "$warning" "$err")" -eq 1 ] || fail "it is said more than once: $warning"
  try run -n 2 --share $share "$program" excused
  expect_status 0
  expect_no_err
  SOJOURN_ALLOW='tree::walk:read on rank 0 only' try run -n 2 --share $share "$program"
  expect_status 0
  expect_no_err
done
