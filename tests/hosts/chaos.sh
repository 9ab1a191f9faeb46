#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# Jobs on two hosts of which something is killed, cut off, pulled or stopped at a random moment, the start
# included: each job ends soon, says why, and leaves nothing on any host.
# Usage: chaos.sh SOJOURN PROGRAM-THAT-WAITS ROUNDS [SEED]
. "$(dirname "$0")/lib.sh"
waits=$2
ours=$waits
rounds=$3
seed=${4:-${SOJOURN_TEST_SEED:-$(date +%s)}}
state=$seed
echo "chaos: the seed is $seed"

# random N: leaves a number below N in `drawn`.
random() {
  state=$(((state * 1103515245 + 12345) % 2147483648))
  drawn=$((state / 65536 % $1))
}
has_ended() { ! kill -0 "$head" 2>/dev/null; }
# The number there of a process of the job on a host, of which one is drawn: a rank or an agent, not the agent's
# guard, which the job can do without.
one_of() {
  random 4
  one_of=$(of_job "$1" | grep -a -v '^[0-9]* sojourn-guard' | awk -v n=$((drawn + 1)) '{ all[NR] = $1 } END { if (NR > 0) print all[(n - 1) % NR + 1] }')
}
worst=$work/worst
: >"$worst"

round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  random 7
  case $drawn in
    0) event=kill1 ;;
    1) event=kill2 ;;
    2) event='cut' ;;
    3) event=pull ;;
    4) event=stop ;;
    5) event=term ;;
    6) event=kill_head ;;
  esac
  random 60
  moment=$((drawn * 20))
  context="seed $seed, round $round, $event after $moment ms: "
  : >"$out"
  "$sojourn" run --hosts host1:2,host2:2 --agent "$tests/ssh_to_host" "$waits" >"$out" 2>"$err" </dev/null &
  head=$!
  sleep "$(awk -v ms=$moment 'BEGIN { printf "%.3f", ms / 1000 }')"
  began=$(now_ms)
  case $event in
    kill?)
      one_of "${event#kill}"
      if [ -n "$one_of" ]; then
        "$hosts" exec "${event#kill}" kill -9 "$one_of" 2>/dev/null || true
      else
        event=term
        kill -TERM $head
      fi
      ;;
    cut | pull) "$hosts" $event 2 ;;
    stop)
      "$hosts" stop 2
      sleep 1
      "$hosts" cont 2
      kill -INT $head
      ;;
    term) kill -TERM $head ;;
    kill_head) kill -9 $head ;;
  esac
  until_true 40000 has_ended || fail 'the job does not end'
  echo "$event $(($(now_ms) - began))" >>"$worst"
  await_end $head
  [ "$status" -ne 0 ] || fail 'it says that all went well'
  case $event in
    kill_head | term | stop) ;;
    *) [ -s "$err" ] || fail 'it says nothing' ;;
  esac
  "$hosts" heal 2
  "$hosts" plug 2
  expect_nothing_left
done
echo "chaos: $rounds jobs ended as they should; milliseconds from the event to the end of \`sojourn run\`:"
sort "$worst" | awk '{ n[$1]++; if ($2 > most[$1]) most[$1] = $2; sum[$1] += $2 }
  END { for (e in n) printf "  %-10s %5d times, mean %6d, most %6d\n", e, n[e], sum[e] / n[e], most[e] }' | sort
