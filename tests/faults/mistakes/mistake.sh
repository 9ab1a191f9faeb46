# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# One mistake of docs/pitfalls.md. Usage: mistake.sh SOJOURN PROGRAM EXPECTATION
. "$(dirname "$0")/../../launcher/lib.sh"
program=$2
expectation=$3
ulimit -c 0
unset SOJOURN_SCAN SOJOURN_ALLOW SOJOURN_VIA
SOJOURN_CHECKED=1
export SOJOURN_CHECKED
seen=0

while read -r ranks expected sentence; do
  case $ranks in '#'* | '') continue ;; esac
  for n in $(echo "$ranks" | tr , ' '); do
    text=$(printf '%s\n' "$sentence" | sed "s/LAST/$((n - 1))/g")
    for share in on off; do
      try run -n "$n" --share $share "$program" bad
      expect_status "$expected"
      if [ -n "$text" ]; then
        expect_err "$text"
        [ "$(grep -c -e "$text" "$err")" -eq 1 ] || fail "it is said more than once: $text"
      else
        expect_no_err
      fi
      try run -n "$n" --share $share "$program" good
      expect_status 0
      expect_no_err
      seen=$((seen + 1))
    done
  done
done <"$expectation"
[ "$seen" -ge 6 ] || fail "$expectation asks for $seen runs, not for 1, 2 and 4 ranks"
expect_gone "$program"
