# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154
# A program that is started with closed streams prints into nothing, and not into its own memory.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2

for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- >&- 2>&-'; do
  context="$closed: "
  rm -f "$work/changed"
  eval "'$program' '$work/changed' >'$out' 2>'$err' $closed" || fail 'it failed'
  [ "$(cat "$work/changed")" = 0 ] || fail "words have changed: $(cat "$work/changed")"
done
