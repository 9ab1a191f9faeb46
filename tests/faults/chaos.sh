# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154
# chaos.sh SOJOURN BTREE [ROUNDS [SEED]]: kills a random rank of the B-tree job at a random moment,
# and in every fifth round the launcher. The job must always end, name who died, and leave no process
# and nothing in /dev/shm; how long the slowest took is printed. SOJOURN_CHAOS_ROUNDS and
# SOJOURN_CHAOS_SEED win over the arguments' defaults.
. "$(dirname "$0")/../launcher/lib.sh"
ulimit -c 0
btree=$2
rounds=${3:-${SOJOURN_CHAOS_ROUNDS:-20}}
seed=${4:-${SOJOURN_CHAOS_SEED:-${SOJOURN_TEST_SEED:-$(date +%s)}}}
limit_ms=10000  # it takes some 50; a busy machine takes what it takes
again="sh tests/faults/chaos.sh $sojourn $btree $rounds $seed"
echo "chaos: $rounds rounds, seed $seed; again: $again"

# All draws at once, of one seed: how many ranks, how the heap is reached, whom, by what, and when.
awk -v seed="$seed" -v rounds="$rounds" 'BEGIN {
  srand(seed)
  split("9 9 9 11 6 7 4 15", signals)
  for (i = 1; i <= rounds; ++i) {
    ranks = int(rand() * 4) + 1
    print ranks, rand() < 0.5 ? "on" : "off", i % 5 == 0 ? "launcher" : int(rand() * ranks),
      signals[int(rand() * 8) + 1], int(rand() * 700)
  }
}' >"$work/draws"

# ranks_of PID: the processes of a job, by the rank in their environment as they were started.
pid_of_rank() {
  for process in /proc/[0-9]*; do
    [ "$(sed -n 's/^PPid:[[:space:]]*//p' "$process/status" 2>/dev/null)" = "$1" ] || continue
    tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -q "^SOJOURN_RANK=$2\$" || continue
    echo "${process#/proc/}"
    return 0
  done 2>/dev/null
  return 1
}
gone() { ! kill -0 "$1" 2>/dev/null; }

# A file of its own, so that this job's processes are known by their command line.
ln -s "$(cd "$(dirname "$btree")" && pwd)/${btree##*/}" "$work/btree"
round=0
named=0
slowest=0
while read -r ranks share victim signal delay_ms <&3; do
  round=$((round + 1))
  what="round $round of seed $seed: $ranks ranks, share $share, signal $signal to $victim after $delay_ms ms"
  before=$(shared_names)
  # More operations than can be done meanwhile.
  "$sojourn" run -n "$ranks" --share "$share" "$work/btree" --ops 268435456 >"$out" 2>"$err" </dev/null &
  launcher=$!
  sleep "$(printf '%d.%03d' $((delay_ms / 1000)) $((delay_ms % 1000)))"
  if [ "$victim" = launcher ]; then
    target=$launcher
    signal=9
  else
    target=''
    until_true 2000 pid_of_rank $launcher "$victim" >"$work/pid" || fail "$what: there is no such rank"
    target=$(tail -n 1 "$work/pid")
  fi
  started=$(now_ms)
  kill -"$signal" "$target" 2>/dev/null || fail "$what: it had ended before"
  status=0
  if [ "$victim" = launcher ]; then
    wait $launcher 2>/dev/null || status=$?
    until_true $limit_ms not alive "$work/btree" || fail "$what: ranks outlive their launcher"
    elapsed_ms=$(($(now_ms) - started))
  else
    wait $launcher || status=$?
    elapsed_ms=$(($(now_ms) - started))
    [ "$status" -eq $((128 + signal)) ] || fail "$what: the status is $status"
    grep -q "^sojourn run: rank $victim (pid $target, .*) was killed by SIG" "$err" ||
      fail "$what: the rank is not named"
    grep -q "to run it again: .*sojourn run -n $ranks " "$err" || fail "$what: no way to run it again"
    named=$((named + 1))
  fi
  [ "$elapsed_ms" -lt $limit_ms ] || fail "$what: it took $elapsed_ms ms to end"
  [ "$elapsed_ms" -le $slowest ] || slowest=$elapsed_ms
  ! alive "$work/btree" || fail "$what: a process is left"
  expect_no_names_but "$before" "$what: "
done 3<"$work/draws"
echo "chaos: $round rounds, $named deaths of ranks named, the slowest end took $slowest ms"
