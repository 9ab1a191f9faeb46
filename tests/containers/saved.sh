# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# What a job has saved is loaded by jobs of more ranks, and of fewer.
# Usage: saved.sh SOJOURN PROGRAM
. "$(dirname "$0")/../launcher/lib.sh"
program=$2

try run -n 3 "$program" save "$work/state"
expect_status 0
for ranks in 1 2 3 5; do
  try run -n $ranks "$program" load "$work/state"
  expect_status 0
done
rm "$work"/state.list.*.part2
try run -n 2 "$program" load "$work/state"
expect_status 134
expect_err 'cannot read .*state.list.*part2: No such file or directory'
