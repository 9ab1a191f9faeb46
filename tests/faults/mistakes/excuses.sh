# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2016
# What is excused, in the source or by SOJOURN_ALLOW, is not said; what is not excused, is; and an
# excuse without a reason is none. Usage: excuses.sh SOJOURN PROGRAM
. "$(dirname "$0")/../../launcher/lib.sh"
program=$2
ulimit -c 0
unset SOJOURN_SCAN SOJOURN_ALLOW SOJOURN_VIA
SOJOURN_CHECKED=1
export SOJOURN_CHECKED

expect_mistake() {
  expect_status 134
  expect_err '`tree::walk` migrates to rank 1 with .* a pointer into this rank.s private heap'
}
expect_silence() {
  expect_status 0
  expect_no_err
  expect_out '^42$'
}

for share in on off; do
  try run -n 2 --share $share "$program"
  expect_mistake
  try run -n 2 --share $share "$program" excused
  expect_silence
  for names in 'tree::walk:read on rank 0 only' 'walk:read on rank 0 only' \
    'some::other:why;tree::walk:read on rank 0 only'; do
    SOJOURN_ALLOW=$names try run -n 2 --share $share "$program"
    expect_silence
  done
  for names in 'some::other:why' 'alk:not a whole name' 'tree:not a function'; do
    SOJOURN_ALLOW=$names try run -n 2 --share $share "$program"
    expect_mistake
  done
done

for names in 'tree::walk' 'tree::walk:' ':why' ';'; do
  SOJOURN_ALLOW=$names try run -n 1 "$program"
  [ "$status" -ne 0 ] || fail "SOJOURN_ALLOW='$names' was taken"
  expect_err 'SOJOURN_ALLOW: `.*` is not function:reason'
done
