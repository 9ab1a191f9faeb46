# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2016,SC2034,SC2154,SC2217
# What `sojourn run` promises of a job on several hosts: output, input, exit status, deaths, signals, and
# that nothing is left, whatever ends it. The hosts are all this machine (two_hosts).
# Usage: supervision.sh SOJOURN FAKE_RANK REAL_RANK PROGRAM-THAT-WAITS [slow]
. "$(dirname "$0")/../launcher/lib.sh"
real=$3
waits=$4
here="sh -c 'exec \"\$@\"'"

# on_hosts HOSTS ARGS...
on_hosts() {
  hosts=$1
  shift
  try run --hosts "$hosts" --agent "$here" "$@"
}
# start HOSTS ARGS...: in the background; leaves $head.
start() {
  hosts=$1
  shift
  : >"$out"
  "$sojourn" run --hosts "$hosts" --agent "$here" "$@" >"$out" 2>"$err" &
  head=$!
}
# The process of a rank that prints its number and then sleeps.
pid_of() { sed -n "s/^rank $1 is //p" "$out"; }
agents() { tr ' ' '\n' <"/proc/$head/task/$head/children"; }
# The ports at which a process listens, each once.
port_of() {
  ports_of=$(for socket in "/proc/$1/fd"/*; do
    inode=$(readlink "$socket" | sed -n 's/^socket:\[\(.*\)\]$/\1/p')
    [ -z "$inode" ] || awk -v i="$inode" '$10 == i && $4 == "0A" { n = split($2, a, ":"); print a[n] }' \
      /proc/net/tcp /proc/net/tcp6
  done | sort -u)
  [ -n "$ports_of" ] || return 1
  for port_of in $ports_of; do echo $((0x$port_of)); done
}
says='echo rank $SOJOURN_RANK is $$; exec sleep 77.25'
expect_nothing_left() {
  expect_gone 'sleep 77.25'
  expect_gone "$sojourn agent"
}

if [ "${5-}" = slow ]; then
  context='output that is read late: '
  {
    "$sojourn" run --hosts a,b --agent "$here" sh -c 'seq 1 200000' 2>"$err"
    echo $? >"$work/status"
  } | { sleep 3; cat; } >"$out"
  [ "$(cat "$work/status")" -eq 0 ] || fail 'it failed'
  [ "$(wc -l <"$out")" -eq 400000 ] || fail 'lines are missing'

  context='output that is not read: '
  mkfifo "$work/fifo"
  sleep 60 <"$work/fifo" &
  reader=$!
  "$sojourn" run --hosts a,b --agent "$here" yes >"$work/fifo" 2>"$err" &
  head=$!
  sleep 1
  kill -TERM $head
  sleep 0.3
  kill -TERM $head
  await_end $head
  kill $reader
  expect_status 143
  expect_faster_than_ms 4000

  context='a rank goes on for long when all has been said: '
  on_hosts a:2,b:2 "$waits" late
  expect_status 0
  expect_no_err

  context='many callers who say nothing: '
  "$sojourn" run --hosts a,b --agent "sh -c 'sleep 1.5; exec \"\$@\"'" true >"$out" 2>"$err" &
  head=$!
  listens() { port_of $head >/dev/null; }
  until_true 5000 listens || fail 'the head does not listen'
  port=$(port_of $head)
  bash -c 'for i in $(seq 300); do exec {fd}<>"/dev/tcp/127.0.0.1/$1" || exit 1; done; sleep 4' bash "$port" &
  callers=$!
  await_end $head
  kill $callers 2>/dev/null
  expect_status 0
  exit 0
fi

context='ranks are numbered through the hosts: '
on_hosts a:1,b:2,c:1 --label sh -c 'echo $SOJOURN_RANK'
expect_status 0
expect_no_err
[ "$(sort "$out" | tr '\n' ' ')" = '[0] 0 [1] 1 [2] 2 [3] 3 ' ] || fail 'the ranks are others'
on_hosts a,b -n 3 sh -c 'echo $SOJOURN_RANK'
expect_status 0
[ "$(sort "$out" | tr '\n' ' ')" = '0 1 2 ' ] || fail 'the ranks are others'

context='rank 0 reads the input, all of it: '
seq 100000 >"$work/numbers"
"$sojourn" run --hosts a,b:2 --agent "$here" sh -c 'cat' <"$work/numbers" >"$out" 2>"$err" || fail 'it failed'
cmp -s "$work/numbers" "$out" || fail 'it is not what was written'

context='settings, the folder and the path are those of the head: '
on_hosts a,b sh -c 'echo "$SOJOURN_STACK_KIB $PWD $PATH"'
wanted="${SOJOURN_STACK_KIB-} $PWD $PATH"
[ "$(sort -u "$out")" = "$wanted" ] || fail "it is not $wanted"

context='a program that is not there: '
on_hosts a,b ./absent
expect_status 2
expect_err "^sojourn run: host [ab]: cannot start './absent': No such file or directory$"
[ "$(wc -l <"$err")" -eq 1 ] || fail 'it is said more than once'

context='an agent that cannot be started: '
for starter in false 'exit 3;' /absent; do
  try run --hosts a,b --agent "$starter" true
  expect_status 2
  expect_err 'host [ab] cannot be reached, or has no Sojourn: the command that was to start its agent ended with'
  expect_faster_than_ms 5000
done

context='what is no agent: '
try run --hosts a,b --agent 'sh -c "cat >/dev/null"' true
expect_status 2
expect_err 'host [ab] cannot be reached'
"$sojourn" agent </dev/null >"$out" 2>"$err" && fail 'it went on without a head'
expect_err 'an agent is started by `sojourn run --hosts`'

context='numbers that contradict each other: '
try run --hosts a:2,b:2 -n 3 true
expect_status 2
expect_err '^sojourn run: -n 3 asks for 3 ranks, and --hosts a:2,b:2 names 4: leave one of the two out$'

context='an exit status: '
on_hosts a,b,c sh -c 'if [ $SOJOURN_RANK = 1 ]; then exit 7; else exec sleep 77.25; fi'
expect_status 7
expect_err '^sojourn run: rank 1 (pid [0-9]*, sh) exited with status 7$'
expect_err '^sojourn run: the job was ended; its exit status is 7$'
expect_nothing_left

context='all fail: '
# Not before all have begun, and with time to end by themselves.
mkdir "$work/begun"
on_hosts a:2,b:2 --grace 10 sh -c 'touch "$1/$SOJOURN_RANK"
  while [ "$(ls "$1" | wc -l)" -lt 4 ]; do sleep 0.02; done
  exit 5' sh "$work/begun"
expect_status 5
[ "$(grep -c 'the job was ended' "$err")" -eq 1 ] || fail 'more than one host tells how the job has ended'
[ "$(grep -c 'exited with status 5' "$err")" -eq 4 ] || fail 'a rank is not told of'

context='a rank that is killed: '
start a:2,b:2 sh -c "$says"
until_true 10000 lines_in "$out" 4 || fail 'the ranks did not start'
kill -9 "$(pid_of 3)"
await_end $head
expect_status 137
expect_err '^sojourn run: rank 3 (pid [0-9]*, sh) was killed by SIGKILL'
expect_err 'to run it again: .*sojourn run -n 4 --hosts a:2,b:2 --agent .* sh '
expect_nothing_left

context='an agent that is killed: '
start a:2,b:2 sh -c "$says"
until_true 10000 lines_in "$out" 4 || fail 'the ranks did not start'
kill -9 "$(agents | tail -n 1)"
await_end $head
expect_status 1
expect_err '^sojourn run: host b is lost, and with it ranks 2 to 3: the connection to its agent has ended'
expect_nothing_left

context='the head is killed: '
start a:2,b:2 sh -c "$says"
until_true 10000 lines_in "$out" 4 || fail 'the ranks did not start'
kill -9 $head
await_end $head
expect_nothing_left

for signal in INT:130 TERM:143; do
  context="SIG${signal%:*}: "
  start a:2,b:2 sh -c "$says"
  until_true 10000 lines_in "$out" 4 || fail 'the ranks did not start'
  kill -"${signal%:*}" $head
  await_end $head
  expect_status "${signal#*:}"
  expect_nothing_left
done

context='some join the job, and some do not: '
on_hosts a,b sh -c 'if [ $SOJOURN_RANK = 0 ]; then exec "$1"; fi' sh "$real"
expect_status 1
expect_err '^sojourn run: rank 1 on host b ended without joining the job, and rank 0 on host a joined it'
expect_faster_than_ms 10000

context='a report is asked for early: '
for after in 0 0.02 0.04 0.08 0.16; do
  start a:2,b:2 sh -c "sleep 0.2"
  sleep $after
  # Before that the signal ends the head, as it ends any program.
  if grep -q '^SigBlk:.*[2367abef]..$' "/proc/$head/status"; then
    kill -USR1 $head
    await_end $head
    expect_status 0
  else
    await_end $head
  fi
done

context='a second loss: '
on_hosts a:2,b:2 --grace 2.5 "$waits" second
expect_status 139
expect_out '^rank 1 has lost rank 3$'

context='a rank is asked for a report: '
start a:2,b:2 "$waits"
until_true 10000 lines_in "$out" 4 || fail 'the ranks did not start'
for agent in $(agents); do
  for child in $(cat "/proc/$agent/task/$agent/children"); do
    [ "$(cat "/proc/$child/comm")" = sojourn-guard ] || rank=$child
  done
done
kill -USR1 "$rank"
told() { grep -q '^rank 0 (pid' "$err" && grep -q '^rank 3 (pid' "$err"; }
until_true 15000 told || fail 'not all ranks have told'
kill -TERM $head
await_end $head
expect_status 143

context='another network: '
on_hosts a:2,b:2 --net smoke "$real"
expect_status 2
expect_err '^sojourn run: --net is tcp or ucx, not .smoke.$'
expect_nothing_left
context='UCX that cannot be used: '
mkdir "$work/no_ucx"
echo 'no library' >"$work/no_ucx/libucp.so.0"
LD_LIBRARY_PATH="$work/no_ucx" on_hosts a:2,b:2 --net ucx "$real"
expect_status 2
expect_err '--net=ucx: UCX cannot be used on this host: .*leave --net and SOJOURN_NET out$'
expect_nothing_left

context='encryption over UCX: '
on_hosts a:2,b:2 --net ucx --encrypt "$real"
expect_status 2
expect_err '^sojourn run: --encrypt is for TCP, and UCX does not encrypt: leave --net=ucx out$'
expect_nothing_left
context='encryption of another kind: '
SOJOURN_ENCRYPT=rot13 on_hosts a:2,b:2 "$real"
expect_status 2
expect_err '^sojourn run: SOJOURN_ENCRYPT=rot13 is neither on nor off$'
expect_nothing_left

context='a host whose shell would encrypt: '
try run --hosts a:2,b:2 --agent "sh -c 'if [ \$0 = b ]; then export SOJOURN_ENCRYPT=on; fi; exec \"\$@\"'" "$real"
expect_status 0

context='counts of all ranks: '
on_hosts a:2,b:2 --stats "$real"
expect_status 0
awk '$1 == "collective_messages" { all = $3 > 0 && $4 > 0 && $5 > 0 && $6 > 0 } END { exit !all }' "$err" ||
  fail 'a rank is missing'

context='settings that nothing matched: '
SOJOURN_VIA='counter::ad=rpc' on_hosts a:2,b:2 "$real" remote
expect_status 0
expect_err '^sojourn run: SOJOURN_VIA: no access to another rank.s objects was to `counter::ad`, as a method or as a line; did you mean `counter::add`?$'
[ "$(wc -l <"$err")" -eq 1 ] || fail 'more is said'
SOJOURN_VIA='counter::add=rpc' on_hosts a:2,b:2 "$real" remote
expect_status 0
expect_no_err

context='the doctor: '
try doctor --hosts a,b,c --agent "$here"
expect_status 0
expect_out '^ok  *host a  *Linux [^ ,]*, [0-9]* cores for jobs$'
for host in b c; do
  expect_out "^ok  *host $host  *Linux .*; from a: a call takes [0-9.]* us, long calls carry [0-9]* MB/s, and the clocks agree within [0-9.]* us$"
done
expect_out '^ok  *job on 3 hosts  *all hosts reached each other'
try doctor --hosts=a,b --json --agent "sh -c 'if [ \$0 = b ]; then exit 9; fi; exec \"\$@\"'"
expect_status 1
expect_out '"found": "host b cannot be reached, or has no Sojourn: the command that was to start its agent ended with status 9'
for words in '--agent x' '--hosts' '--hosts a --hostfile b' '--hosts a:'; do
  # shellcheck disable=SC2086  # several words
  try doctor $words
  expect_status 2
  expect_one_sentence
done
expect_nothing_left

context='strangers: '
start a,b sh -c "$says"
until_true 10000 lines_in "$out" 2 || fail 'the ranks did not start'
ports=$(for agent in $head $(agents); do port_of "$agent"; done)
[ "$(echo "$ports" | wc -l)" -eq 3 ] || fail "the head and two agents do not listen: $ports"
for port in $ports; do
  for i in 1 2 3; do
    timeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && head -c 4096 /dev/urandom >&3 && cat <&3" \
      >"$work/stranger" 2>/dev/null || true
    [ ! -s "$work/stranger" ] || fail 'a stranger was answered'
  done
done
kill -TERM $head
await_end $head
expect_status 143
expect_nothing_left
