# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# What --stats tells of the places where a program forks: which marks their children have in the end,
# and what either kind costs.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
# Forks that look for idle ranks have marks in frames.
export SOJOURN_CHECKED=0 SOJOURN_STEAL=off

json=$work/stats.json
try run -n 2 --stats --stats-json "$json" "$program"
expect_status 0
expect_err '^fork at  *forks  *blocked  *marks  *cost of links  *cost of walks$'
# Sums of both ranks.
expect_err '`never_blocks` (fork_links.cpp:[0-9]*)  *4,000  *0  *tables  *160,000  *0$'
# Where all children block, where the first ones do, and where some do now and then.
expect_err '`fork_each` (fork_links.cpp:[0-9]*)  *4,200  *4,200  *links  *168,000  *[1-9]'
expect_err '`fork_each` (fork_links.cpp:[0-9]*)  *4,000  *20  *tables  *160,000  *[1-9]'
expect_err '`fork_each` (fork_links.cpp:[0-9]*)  *4,000  *572  *links  *160,000  *[1-9]'
tr -d ' \n' <"$json" >"$work/flat"
grep -q '"place":"`never_blocks`(fork_links.cpp:[0-9]*)","forks":4000,"blocked":0,"ranks":2,"linked_ranks":0,"cost_of_links":160000,"cost_of_walks":0}' \
  "$work/flat" || fail 'the forks are wrong in the JSON'

# Nobody asked: nothing is counted.
try run -n 2 --stats-json "$json" "$program"
expect_status 0
! grep -q '"forks": \[' "$json" || fail 'forks were counted though nobody asked'
