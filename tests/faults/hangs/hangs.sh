#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2086,SC2154,SC2317
# What is said of programs that hang, word for word; and that nothing is said of those that do not.
# Usage: hangs.sh SOJOURN HANGS RANKS SANITIZED SHARE CLAIMS
# CLAIMS is one of the functions below that have claims; SHARE is on or off.
# What runs is interrupted and walked too slowly under the address sanitizer for the claims on ranks that
# compute and hold something: SANITIZED is 1 there.
set -u
. "$(dirname "$0")/../../launcher/lib.sh"
hangs=$2
ranks=$3
sanitized=$4
share=$5
claims=$6

# A claim that fails in the middle leaves no job behind.
trap 'jobs -p >"$work/jobs"; kill $(cat "$work/jobs") 2>/dev/null; rm -rf "$work"' EXIT

# job OPTIONS... HOW
job() { try run -n "$ranks" --share "$share" "$@"; }

# Lines of source are named where the compiler left them, and a busy host makes hangs old.
unlined() { sed -E 's/ \([a-z_.]*\.[ch]pp:[0-9]+\)//g; s/^(  .*), for [0-9.]+ s/\1/' "$err"; }

expect_line() { unlined | grep -qxF -e "$1" || fail "no line is: $1"; }
expect_begin() { unlined | grep -q -e "^$1" || fail "no line begins: $1"; }
expect_deadlock() {
  expect_status 1
  expect_line "sojourn run: no fiber of any rank can go on, and no message is on its way"
  expect_line "sojourn run: deadlock: $1"
  expect_line "sojourn run: the job was ended; its exit status is 1"
}
said() { grep -q -e "$1" "$err"; }

# The processes of a launcher's ranks, in their order; its guard is no rank.
rank_pids() {
  tr ' ' '\n' <"/proc/$1/task/$1/children" | while read -r child; do
    [ "$(cat "/proc/$child/comm")" = sojourn-guard ] || echo "$child"
  done
}

# wait_until_begun: until the last rank of a job, started in the background with HANGS_BEGUN=$begun, is
# in its work.
begun=$work/begun
wait_until_begun() {
  until_true 20000 test -e "$begun" || fail 'the job did not begin'
  sleep 0.1
}

# report_of PATTERN OPTIONS… HOW: starts a job that does not end, until a line that matches is said;
# it goes on, and says no more.
report_of() {
  pattern=$1
  shift
  : >"$err"
  "$sojourn" run -n "$ranks" --share "$share" "$@" >"$out" 2>"$err" </dev/null &
  launcher=$!
  if ! until_true 20000 said "$pattern"; then
    kill $launcher
    fail "nothing said is like: $pattern"
  fi
  length=$(wc -c <"$err")
  sleep 1
  kill -0 $launcher || fail 'the job ended'
  [ "$(wc -c <"$err")" -eq "$length" ] || fail 'more was said'
  kill $launcher
  wait $launcher 2>/dev/null
  status=none
}

# Makes a control group that can be frozen, `group`; fails where the test may not.
make_group() {
  for folder in /sys/fs/cgroup/freezer /sys/fs/cgroup/unified /sys/fs/cgroup; do
    group=$(mktemp -d "$folder/sojourn.XXXXXX" 2>/dev/null) || continue
    [ ! -e "$group/freezer.state" ] && [ ! -e "$group/cgroup.freeze" ] || return 0
    rmdir "$group"
  done
  return 1
}
freeze() {
  if [ -e "$group/cgroup.freeze" ]; then echo 1 >"$group/cgroup.freeze"; else echo FROZEN >"$group/freezer.state"; fi
}
thaw() {
  if [ -e "$group/cgroup.freeze" ]; then echo 0 >"$group/cgroup.freeze"; else echo THAWED >"$group/freezer.state"; fi
}

last=$((ranks - 1))

nothing_can_happen() {
  # At once: without a watchdog, too.
  began=$(date +%s)
  job --watchdog 0 "$hangs" circle
  case $ranks in
    1) chain='' ;;
    2) chain='rank 1 `passes_on`, which waits for ' ;;
    4) chain='rank 1 `passes_on`, which waits for rank 2 `passes_on`, which waits for rank 3 `passes_on`, which waits for ' ;;
  esac
  [ "$ranks" -gt 1 ] || chain='rank 0 `passes_on`, which waits for '
  expect_deadlock "rank 0 \`waits_for_the_first\` waits for ${chain}rank 0 \`waits_for_the_first\` again"
  [ $(($(date +%s) - began)) -le 3 ] || fail 'a proven deadlock took seconds to be seen'

  # Ranks that ask each other for threads do so once, and are found to hang all the same.
  for policy in steal diffuse; do
    job --watchdog 0 --balance $policy "$hangs" circle
    expect_deadlock "rank 0 \`waits_for_the_first\` waits for ${chain}rank 0 \`waits_for_the_first\` again"
  done

  # The fiber that holds a mutex is what the one that waits for it waits for.
  job --watchdog 0 "$hangs" mutexes
  expect_deadlock "rank $last \`waits_for_both\` waits for rank $last \`locks_left_then_right\`, which waits for a sojourn::mutex held by rank $last \`locks_right_then_left\`, which waits for a sojourn::mutex held by rank $last \`locks_left_then_right\` again"
  expect_begin "  \`locks_right_then_left\` waits for a sojourn::mutex that \`locks_left_then_right\` holds"
  for how in 'condition waits_for_a_change` waits in a sojourn::condition_variable' \
    'semaphore waits_for_a_place` waits for a sojourn::semaphore' \
    'latch waits_until_opened` waits for a sojourn::latch' \
    'dist_object waits_to_be_made` waits for a sojourn::dist_object' \
    "first waits_for_either\` waits for the first of 2 results, one of them from rank $last"; do
    job --watchdog 0 "$hangs" "${how%% *}"
    expect_deadlock "rank $last \`${how#* }"
  done

}

shared_objects_are_told() {
  # By their address and the rank that keeps them.
  for how in 'shared_flag waits_for_a_sign` waits for a sojourn::shared::flag' \
    'shared_condition_variable waits_for_a_notification` waits in a sojourn::shared::condition_variable' \
    'shared_counted_barrier waits_for_company` waits at a sojourn::shared::counted_barrier'; do
    meet=
    [ "${how%% *}" != shared_counted_barrier ] || meet=' of 2 fibers, where 1 waits'
    job --watchdog 0 "$hangs" "${how%% *}"
    expect_status 1
    unlined | grep -q -e "deadlock: rank $last .${how#* } (0x[0-9a-f]*, which rank [0-9]* keeps)$meet\$" ||
      fail "the deadlock is not told: ${how#* }"
  done

}

# expect_shared SENTENCE: as expect_deadlock, with the address of the mutex left out.
unaddressed() { unlined | sed -E 's/ \(0x[0-9a-f]+\)//g'; }
expect_shared() {
  expect_status 1
  unaddressed | grep -qxF -e "sojourn run: deadlock: $1" || fail "no line is: $1"
}
expect_of_fiber() { unaddressed | grep -q -e "^  $1" || fail "no line begins: $1"; }

holders_of_shared_mutexes_are_told() {
  job --watchdog 0 "$hangs" shared_mutex
  expect_shared "rank $last \`waits_for_its_own_mutex\` waits for a sojourn::shared::mutex held by rank $last \`waits_for_its_own_mutex\` again"
  [ "$ranks" -gt 1 ] || return 0
  job --watchdog 0 --report "$work/report" "$hangs" shared_circle
  expect_shared "rank 0 \`locks_the_other\` waits for a sojourn::shared::mutex held by rank $last \`locks_the_other\`, which waits for a sojourn::shared::mutex held by rank 0 \`locks_the_other\` again"
  expect_of_fiber "\`locks_the_other\` waits for a sojourn::shared::mutex that rank $last \`locks_the_other\` holds, locked in \`locks_one_and\`"
  [ "$(grep -c '"kind": "shared_mutex", "object": "0x[0-9a-f]*", "holder": {"rank": [0-9]*, "id": [0-9]*, "ended": false, "locked_at": \[{"function": "locks_one_and"' "$work/report")" -eq 2 ] ||
    fail 'the report lacks the holders'

  # Whatever else runs. Other fibers of the rank may unlock it, so the job goes on.
  report_of '^sojourn run: deadlock: rank [0-9]* `locks_the_other` .*, which waits for .* again$' \
    --watchdog 0.3 "$hangs" shared_circle_and_beats

  job --watchdog 0 "$hangs" shared_kept
  expect_status 1
  expect_of_fiber "\`wants_what_is_kept\` waits for a sojourn::shared::mutex that rank 0 \`waits_for_all_threads\` holds, locked in \`keeps\`"
  [ "$ranks" -gt 2 ] ||
    expect_shared "rank 0 \`waits_for_all_threads\` waits in sojourn::shared::barrier() for rank 1 \`wants_what_is_kept\`, which waits for a sojourn::shared::mutex held by rank 0 \`waits_for_all_threads\` again"

  job --watchdog 0 --report "$work/report" "$hangs" shared_kept_by_ended
  expect_status 1
  expect_of_fiber "\`locks_the_other\` waits for a sojourn::shared::mutex that a fiber of rank 0 locked in \`locks_and_ends\`, which has ended without unlocking it"
  grep -q '"ended": true, "locked_at": \[{"function": "locks_and_ends"' "$work/report" || fail 'the report lacks where it was locked'

  [ "$sanitized" -eq 0 ] || return 0
  report_of "^sojourn run: everything waits for rank 0, which computes in \`computes_for_ever\`" \
    --watchdog 0.3 "$hangs" shared_kept_and_computes
  expect_of_fiber "\`wants_what_is_kept\` waits for a sojourn::shared::mutex that rank 0 \`computes_for_ever\` holds, locked in \`keeps\`"
}

who_misses_a_shared_barrier_is_told() {
  [ "$ranks" -gt 1 ] || return 0
  job --watchdog 0 --report "$work/report" "$hangs" shared_barrier
  expect_status 1
  expect_of_fiber "\`waits_for_all_threads\` waits in sojourn::shared::barrier() for rank $last; called by \`main\`"
  grep -q '"kind": "shared_barrier", "missing": \[{"rank": '"$last"', "fibers": 1}\]' "$work/report" ||
    fail 'the report lacks who is missing'
  said "^sojourn run: deadlock: .* waits in sojourn::shared::barrier() for rank $last " || fail 'the missing rank is not named'

  job --watchdog 0 "$hangs" shared_barriers_differ
  expect_deadlock "rank 0 \`waits_for_all_threads\` waits in sojourn::shared::barrier() for rank $last \`joins_the_barrier\`, which waits in barrier() for rank 0 \`waits_for_all_threads\` again"

  job --watchdog 0 "$hangs" shared_threads
  expect_status 1
  [ "$(grep -c " waits in sojourn::shared::barrier() for 1 of the 2 threads of rank $last" "$err")" -eq $((2 * ranks - 1)) ] ||
    fail 'the missing thread is not counted'
  said 'called by `a lambda in last_thread_stays_away`' || fail 'what the thread runs is not named'
  said "deadlock: .* waits in sojourn::shared::barrier() for rank $last \`waits_until_opened\`" || fail 'the missing thread is not named'
}

threads_are_told_by_name() {
  # Whatever characters that has.
  job --watchdog 0 --report "$work/report" "$hangs" named
  expect_deadlock "rank $last \`starts_a_sleeper\` waits for rank $last thread \`sleeper\`: \`waits_until_opened\`, which waits for a sojourn::latch"
  expect_begin '  thread `sleeper`: `waits_until_opened` waits for a sojourn::latch'
  [ "$(grep -c '"thread": "sleeper"' "$work/report")" -eq 1 ] || fail 'the report lacks the name'
  job --watchdog 0 --report "$work/report" "$hangs" named_oddly
  expect_begin '  thread `an "odd"?? one of 23 ch`: `waits_until_opened` waits for a sojourn::latch'
  grep -qF '"thread": "an \"odd\"?? one of 23 ch"' "$work/report" || fail 'the report lacks the odd name'
  if [ "$ranks" -gt 1 ] && [ "$sanitized" -eq 0 ]; then
    report_of "^sojourn run: .*rank $last.* computes in thread \`runner\`: \`computes_for_ever\`" \
      --watchdog 0.3 --report "$work/report" "$hangs" named_and_computes
    expect_begin "rank $last (pid [0-9]*) has been computing for [0-9.]* s in thread \`runner\`: \`computes_for_ever\`"
    grep -q '"thread": "runner",$' "$work/report" || fail 'the report lacks the name of what runs'
  fi

}

sleepers_wake() {
  # A job with sleepers is no deadlock, and no hang however long they sleep, until they have woken.
  job --watchdog 0.5 "$hangs" sleepers
  expect_status 0
  expect_no_err
  job --watchdog 0 "$hangs" sleep_then_circle
  expect_status 1
  expect_begin "sojourn run: deadlock: rank 0 \`waits_for_the_first\` waits for "

  # Asked, it says how long they will.
  HANGS_BEGUN=$begun "$sojourn" run -n "$ranks" --share "$share" "$hangs" sleeps_long >"$out" 2>"$err" </dev/null &
  launcher=$!
  wait_until_begun
  kill -USR1 $launcher
  until_true 20000 said '^sojourn run: rank' || fail 'no report of a job that sleeps'
  expect_begin '  `sleeps_for` sleeps for another [56][0-9][0-9] s; called by'
  kill $launcher
  wait $launcher 2>/dev/null
  status=0
}

circles_beside_others() {
  # Fibers that wait for each other are a deadlock whatever else runs: a thread that always wakes
  # again keeps the job alive no longer than the watchdog's period.
  job --watchdog 0.3 "$hangs" circle_and_beats
  expect_status 1
  expect_line "sojourn run: fibers wait for each other in a circle, whatever else runs"
  expect_line "sojourn run: the job was ended; its exit status is 1"
  # A circle begins anywhere.
  expect_begin 'sojourn run: deadlock: rank [0-9] `\(passes_on\|waits_for_the_first\)` waits for rank [0-9] `.*again$'
  # One that other work does not wait for is told once, and that goes on.
  report_of "^sojourn run: deadlock: rank $last \`locks_.*, which waits for a sojourn::mutex held by rank $last \`locks_.* again" \
    --watchdog 0.3 "$hangs" mutexes_and_beats

}

all_wait_outside() {
  # Where the watchdog finds them, or they ask again and again.
  where='in a system call'
  [ "$ranks" -eq 1 ] && report_of "^sojourn run: rank 0 is $where in \`reads_what_nobody_writes\`" \
    --watchdog 0.3 "$hangs" reads
  [ "$ranks" -eq 1 ] || report_of "^sojourn run: rank 0 is $where in \`reads_what_nobody_writes\`.*, rank 1 is $where" \
    --watchdog 0.3 "$hangs" reads
  expect_line "sojourn run: no rank has sent a message or run a fiber for $(sed -n 's/.* a fiber for //p' "$err")"
  said ' a fiber for \(0\.[3-9]\|[1-9]\)' || fail 'for how long?'
  # Between two turns of its fiber a rank does not compute.
  report_of '^sojourn run: .*rank 0 \(computes in \)\?`polls`' --watchdog 0.3 "$hangs" polls
}

one_computes() {
  if [ "$ranks" -gt 1 ] && [ "$sanitized" -eq 0 ]; then
    report_of "^sojourn run: rank 0 computes in \`polls\`.*, rank 1 computes in" \
      --watchdog 0.3 "$hangs" polls_for_one
    report_of "^sojourn run: everything waits for rank $last, which computes in \`computes_for_ever\`" \
      --watchdog 0.3 "$hangs" calls_a_lambda
    said 'called by `a lambda in main`' || fail 'the lambda is not named as one'
    report_of "^sojourn run: everything waits for rank $last, which computes in" \
      --watchdog 0.3 "$hangs" mutex_and_computes
    expect_line ' and has 1 other fiber:'
    expect_begin "  \`locks_left\` waits for a sojourn::mutex that \`computes_for_ever\` holds"
  fi
}

a_lock_is_held() {
  if [ "$sanitized" -eq 0 ]; then
    # One of its fibers holds the lock that it waits for; checked mode would not let it wait.
    export SOJOURN_CHECKED=0
    report_of "^sojourn run: .*which is in a system call in \`holds_the_lock\`" --watchdog 0.3 "$hangs" locks
    unset SOJOURN_CHECKED
    expect_line ' and has 2 other fibers, the newest first:'
    expect_begin "  \`holds_the_lock\` waits for the answer of rank $((1 % ranks))"
    expect_begin "  \`locks_twice\` waits for the answer of rank [0-9]"
  fi
}

long_circles_and_one_rank() {
  job "$hangs" many
  said ', which waits for up to 9[0-9][0-9] more$' || fail 'the circle is longer'

  if [ "$ranks" -eq 1 ]; then
    # Without the launcher, the rank says so itself.
    status=0
    SOJOURN_SHARE=$share timeout 30 "$hangs" circle >"$out" 2>"$err" </dev/null || status=$?
    expect_status 1
    expect_line 'sojourn: deadlock: rank 0 `waits_for_the_first` waits for rank 0 `passes_on`, which waits for rank 0 `waits_for_the_first` again'

    HANGS_BEGUN=$begun SOJOURN_SHARE=$share "$hangs" computes >"$out" 2>"$err" </dev/null &
    program=$!
    wait_until_begun
    kill -USR1 $program
    until_true 20000 said '^sojourn: rank 0 computes in `computes_for_ever`' || fail 'SIGUSR1 without launcher'
    kill $program
    wait $program 2>/dev/null
    status=0
    job --watchdog 0.3 "$hangs" all_compute
    expect_status 0
    expect_no_err
  fi
}

one_polls_or_computes() {
  [ "$ranks" -gt 1 ] || return 0
  # A rank that reads a flag again and again does nothing.
  if [ "$sanitized" -eq 0 ]; then
    report_of "^sojourn run: everything waits for rank $last, which computes in \`polls_a_flag\`" \
      --watchdog 0.5 "$hangs" polls_a_flag
    # One that never comes to its scheduler is told of though others go on.
    report_of "^sojourn run: rank [0-9]* \`main\`.* waits in barrier() for rank $last, which computes in \`computes_for_ever\`" \
      --watchdog 0.2 "$hangs" computes_and_beats
    expect_begin "sojourn run: rank $last has not returned to its scheduler for [0-9]* s, and others wait"
  fi

}

one_is_stopped() {
  [ "$ranks" -gt 1 ] || return 0
  # It is told of as such, though others go on.
  : >"$err"
  "$sojourn" run -n "$ranks" --share "$share" --watchdog 0.3 "$hangs" beats >"$out" 2>"$err" </dev/null &
  launcher=$!
  until_true 20000 grep -q '^beats$' "$out" || fail 'the ranks do not join'
  rank_pid=$(rank_pids "$launcher" | tail -n 1)
  kill -STOP "$rank_pid"
  until_true 9000 said "^rank $last (pid $rank_pid) is stopped: by a signal" || fail 'the stopped rank is not named'
  expect_line "sojourn run: rank $last is stopped"
  kill -CONT "$rank_pid"
  kill $launcher
  wait $launcher
  status=none

}

one_is_frozen() {
  [ "$ranks" -gt 1 ] || return 0
  # It is told of as such, where the test may freeze it.
  if make_group; then
    : >"$err"
    "$sojourn" run -n "$ranks" --share "$share" --watchdog 0.3 "$hangs" beats >"$out" 2>"$err" </dev/null &
    launcher=$!
    until_true 20000 grep -q '^beats$' "$out" || fail 'the ranks do not join'
    rank_pid=$(rank_pids "$launcher" | tail -n 1)
    echo "$rank_pid" >"$group/cgroup.procs"
    freeze
    told=0
    until_true 20000 said "^rank $last (pid $rank_pid) is frozen, with its control group" || told=1
    thaw
    kill $launcher
    wait $launcher
    until_true 5000 rmdir "$group" 2>/dev/null
    status=none
    [ $told -eq 0 ] || fail 'the frozen rank is not named'
    expect_line "sojourn run: rank $last is frozen"
  fi

}

one_has_not_joined() {
  [ "$ranks" -gt 1 ] || return 0
  # It is what all others wait for.
  report_of '^sojourn run: everything waits for rank 1, which has not joined the job$' \
    --watchdog 0.3 sh -c '[ "$SOJOURN_RANK" = 1 ] && sleep 30; exec "$1" beats' sh "$hangs"
}

ranks_wait_for_ranks() {
  [ "$ranks" -gt 1 ] || return 0
  job "$hangs" barrier_in_handler
  expect_deadlock 'rank 0 `asks_who_waits` waits for rank 1 `joins_the_barrier`, which waits in barrier() for rank 0 `asks_who_waits` again'
  expect_line '  `joins_the_barrier` waits in barrier() for rank 0; its caller is rank 0'
  expect_line '  `asks_who_waits` waits for the answer of rank 1, `joins_the_barrier`; called by `main`'

  job "$hangs" under_way
  expect_deadlock 'rank 0 `asks_for_the_sum` waits for rank 1 `joins_the_sum`, which waits in reduce() for rank 0 `asks_for_the_sum` again'
  expect_line '  `joins_the_sum` waits in reduce() for rank 0; its caller is rank 0'

  job "$hangs" finish
  expect_deadlock 'rank 0 `waits_for_all` waits in finish() for rank 0 `joins_the_barrier`, which waits in barrier() for rank 1 `main`, which has returned and waits for rank 1 `never_ends`, which waits for rank 0 `joins_the_barrier` again'

  # An activation that has moved is named where it is.
  job "$hangs" visit
  expect_deadlock "rank 0 \`main\` waits for rank $last \`visit\`, which waits in barrier() for rank 0 \`main\` again"

  # A barrier that one rank does not join because its program has ended.
  job "$hangs" end
  expect_status 134
  # Whoever hears of the other first. The address sanitizer takes the signal, and the rank says so itself.
  expect_begin '\(  \|sojourn: rank [0-9]*: \)ranks disagree about a collective operation: \(rank 0 is in barrier() and rank '"$last"' is at the end of its program\|rank '"$last"' is at the end of its program and rank [0-9]* is in barrier()\);'

}

reports_are_asked_for() {
  [ "$ranks" -gt 1 ] || return 0
  # A rank that computes is none that hangs: it is named, and the job goes on.
  # A shell has SIGQUIT ignored in what it starts in the background.
  env --default-signal=QUIT "$sojourn" run -n "$ranks" --share "$share" --watchdog 1 \
    --report "$work/report" "$hangs" computes >"$out" 2>"$err" </dev/null &
  launcher=$!
  until_true 20000 said '^sojourn run: everything' || fail 'the watchdog said nothing'
  expect_begin 'sojourn run: no rank has sent a message or run a fiber for [1-9] s$'
  expect_line "sojourn run: everything waits for rank $last, which computes in \`computes_for_ever\`"
  expect_begin "rank $last (pid [0-9]*) has been computing for [0-9.]* s in \`computes_for_ever\`; called by \`main\`"
  grep -q '"sentence": "everything waits for rank '"$last" "$work/report" || fail 'the report lacks the sentence'
  sleep 1.5
  [ "$(grep -c '^sojourn run: everything' "$err")" -eq 1 ] || fail 'it was said again'
  # Asked by a signal to the launcher, to a rank, and by Ctrl-\, of which a second one ends the job.
  for target in launcher rank quit; do
    : >"$err"
    rank_pid=$(sed -n 's/.*"rank": 0, "pid": \([0-9]*\),.*/\1/p' "$work/report")
    case $target in
      launcher) kill -USR1 $launcher ;;
      rank) kill -USR1 "$rank_pid" ;;
      quit) kill -QUIT $launcher "$rank_pid" ;;
    esac
    until_true 20000 said '^sojourn run: everything waits' || fail "no report for $target"
    expect_begin 'sojourn run: a report was asked for'
    kill -0 $launcher || fail "the job ended with $target"
  done
  # Where cores are busy that report took longer than a second one may.
  kill -QUIT $launcher
  sleep 0.5
  kill -QUIT $launcher 2>/dev/null
  status=0
  wait $launcher || status=$?
  expect_status 131

}

the_report_is_json() {
  [ "$ranks" -gt 1 ] || return 0
  job --watchdog 0.5 --report "$work/report" "$hangs" circle
  expect_status 1
  if command -v python3 >/dev/null; then
    python3 - "$work/report" "$ranks" <<'PYTHON' || fail 'the report is not as it should be'
import json, sys
report = json.load(open(sys.argv[1]))
ranks = int(sys.argv[2])
assert report["deadlock"] is True, "deadlock"
assert report["sentence"].startswith("deadlock: rank 0 `waits_for_the_first`"), report["sentence"]
assert [r["rank"] for r in report["ranks"]] == list(range(ranks)), "ranks"
fibers = {f["id"]: (r["rank"], f) for r in report["ranks"] for f in r["fibers"]}
first = [i for i, (_, f) in fibers.items() 
         if f["stack"] and f["stack"][0]["function"] == "waits_for_the_first"]
assert len(first) == 1, first
assert fibers[first[0]][1]["waits_for"]["kind"] == "call"
edges = {e["from"]: e["to"] for e in report["edges"] if "to" in e}
steps = 0
at = first[0]
while steps == 0 or at != first[0]:
    at = edges[at]
    steps += 1
assert steps == ranks, steps
PYTHON
  fi

}

asked_while_answers_come() {
  [ "$ranks" -gt 1 ] || return 0
  # Who asks while the watchdog still collects answers, here from a stopped rank, is not forgotten:
  # then also a system call is interrupted that does not go on by itself.
  : >"$err"
  HANGS_BEGUN=$begun "$sojourn" run -n "$ranks" --share "$share" --watchdog 1 "$hangs" sleeps \
    >"$out" 2>"$err" </dev/null &
  launcher=$!
  wait_until_begun
  rank_pid=$(rank_pids "$launcher" | head -n 1)
  kill -STOP "$rank_pid"
  sleep 2
  kill -USR1 $launcher
  until_true 20000 said '^sojourn run: rank' || fail 'nothing was said of a stopped rank'
  expect_begin "rank $last (pid [0-9]*) has been in a system call for [0-9.]* s in \`sleeps\`"
  kill -CONT "$rank_pid"
  kill $launcher
  wait $launcher
  status=none
}

# Healthy jobs, however slow, are left alone.
healthy_calls() {
  [ "$ranks" -gt 1 ] || return 0
  job --watchdog 1 "$hangs" calls
  expect_status 0
  expect_no_err
}
healthy_bursts() {
  [ "$ranks" -gt 1 ] || return 0
  job --watchdog 1 "$hangs" bursts
  expect_status 0
  expect_no_err
}
healthy_late_answers() {
  [ "$ranks" -gt 1 ] || return 0
  # So are those whose ranks answer late, while all wait for long.
  job --watchdog 0.5 "$hangs" answers_late
  expect_status 0
  expect_no_err
}

context="$ranks ranks, --share $share, $claims: "
command -v "$claims" >/dev/null || fail 'there are no such claims'
$claims
exit 0
