#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the tool `hosts`, which makes hosts out of namespaces.
# Usage: hosts_tool.sh
# It calls itself on the front hosts of two sets, with what is to be done there.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
hosts=$here/hosts

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# until_true COMMAND...: waits until the command succeeds, at most 20 s.
until_true() {
  deadline=$(($(date +%s) + 20))
  until "$@"; do
    [ "$(date +%s)" -lt "$deadline" ] || return 1
    sleep 0.02
  done
}

not() { ! "$@"; }
equal() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }

# expect_status STATUS COMMAND...; what the command says on standard error is in $work/err.
expect_status() {
  expected=$1
  shift
  status=0
  "$@" 2>"$work/err" || status=$?
  [ "$status" -eq "$expected" ] || fail "$*: status $status, not $expected; $(cat "$work/err")"
}

# expect_refusal TEXT ARGS...: hosts ARGS says the text and ends with status 2.
expect_refusal() {
  text=$1
  shift
  expect_status 2 "$hosts" "$@"
  grep -q -e "$text" "$work/err" || fail "hosts $*: says '$(cat "$work/err")', not '$text'"
}

# sleepers I: how many processes that host I sees are `sleep $long`.
sleepers() { "$hosts" exec "$1" sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null' | count_sleepers; }
count_sleepers() { tr '\0' '|' | grep -a -o "[s]leep|$long|" | wc -l; }
has_sleepers() { [ "$(sleepers "$1")" -eq "$2" ]; }

# answers FROM TO: a port of host TO at which nobody listens refuses a connection from host FROM at
# once. Where no packets come through, nothing happens for a while.
answers() {
  "$hosts" exec "$1" timeout 0.3 bash -c ": </dev/tcp/host$2/9" 2>&1 | grep -q 'refused'
}
expect_answers() { until_true answers "$1" "$2" || fail "host $1 does not reach host $2: $3"; }
expect_silence() { not answers "$1" "$2" || fail "host $1 reaches host $2: $3"; }

carrier() { [ "$("$hosts" exec "$1" cat /sys/class/net/eth0/carrier)" = "$2" ]; }

beat() { cat "$work/beat.$1" 2>/dev/null; }
moves() { [ "$(beat "$1")" != "$2" ]; }
expect_moves() { until_true moves "$1" "$(beat "$1")" || fail "host $1 stands still: $2"; }

# What is each host's own, and what is not.
test_apart() {
  for i in 0 1 2; do
    equal "the name of host $i" "$("$hosts" exec $i cat /proc/sys/kernel/hostname)" "host$i"
    "$hosts" exec $i cat /proc/sys/kernel/random/boot_id >"$work/boot_id.$i"
    "$hosts" exec $i touch /tmp/of_$i /var/tmp/of_$i /dev/shm/of_$i || fail 'a file cannot be made'
  done
  equal 'the number of boot ids' "$(cat "$work"/boot_id.* | sort -u | wc -l)" 3
  equal 'what host 1 has of its own' \
    "$("$hosts" exec 1 sh -c 'ls -d /tmp/of_* /var/tmp/of_* /dev/shm/of_*' | tr '\n' ' ')" \
    '/dev/shm/of_1 /tmp/of_1 /var/tmp/of_1 '
  equal 'the folder of a command' "$(cd "$work" && "$hosts" exec 1 pwd)" "$work"

  "$hosts" exec 1 sleep "$long" &
  until_true has_sleepers 1 1 || fail 'host 1 does not see its process'
  has_sleepers 2 0 || fail 'host 2 sees a process of host 1'

  ahead=0
  if unshare --fork --time --monotonic 1 true 2>/dev/null; then ahead=100000; fi
  for i in 1 2; do
    there=$("$hosts" exec $i cut -d. -f1 /proc/uptime)
    off=$((there - $(cut -d. -f1 /proc/uptime) - i * ahead))
    if [ $off -lt -60 ] || [ $off -gt 60 ]; then fail "the clock of host $i is off by $off s"; fi
  done
}

test_commands() {
  expect_status 7 "$hosts" exec 0 sh -c 'exit 7'
  expect_status 7 "$hosts" exec 1 sh -c 'exit 7'
  # shellcheck disable=SC2016 # for the inner shell
  expect_status 137 "$hosts" exec 1 sh -c 'kill -KILL $$'
  [ ! -s "$work/err" ] || fail "a command that was killed says '$(cat "$work/err")'"
  expect_status 127 "$hosts" exec 1 no-such-command
  equal 'what comes through' "$(echo through | "$hosts" exec 1 cat)" through
  # shellcheck disable=SC2016 # for the other host's shell
  equal 'what ssh prints' \
    "$("$hosts" ssh -o BatchMode=yes -x root@host2 'echo $((6 * 7)) from' '$(uname -n) in $PWD')" \
    '42 from host2 in /'
  equal 'what ssh -n reads' "$(echo lost | "$hosts" ssh -n 10.77.0.1 cat)" ''
  expect_status 3 "$hosts" ssh host1 'exit 3'

  expect_refusal 'there is no host 3' exec 3 true
  expect_refusal 'there is no host .host3.' ssh host3 true
  expect_refusal 'not the number of a host' cut one
  expect_refusal 'for hosts from 1 on' stop 0
  expect_refusal 'no command was given' exec 1
  expect_refusal 'does not work on host 0 of the set' down
  expect_refusal 'does not work on host 0 of the set' run 1 true
  expect_refusal 'does not work on host 1 of the set' exec 1 "$hosts" exec 2 true
  expect_refusal "no command 'fly'" fly 1
}

test_network() {
  for pair in '0 1' '0 2' '1 0' '1 2' '2 1'; do
    expect_answers "${pair% *}" "${pair#* }" 'the network is whole'
  done

  expect_status 0 "$hosts" cut 1
  expect_silence 2 1 'host 1 is cut off'
  expect_answers 2 0 'host 1 is cut off'
  carrier 1 1 || fail 'the link of a host that is cut off is down'
  # The other set, whose hosts have the same addresses, notices nothing.
  touch "$work/is_cut"
  until_true test -e "$work/other_is_whole" || fail 'the other set does not say that it is whole'
  expect_status 0 "$hosts" heal 1
  expect_answers 2 1 'host 1 is healed'
  expect_answers 1 0 'host 1 is healed'

  expect_status 0 "$hosts" pull 1
  until_true carrier 1 0 || fail 'the link of a host whose cable is pulled is up'
  expect_silence 2 1 'the cable is pulled'
  expect_status 0 "$hosts" plug 1
  until_true carrier 1 1 || fail 'the link of a host whose cable is plugged is down'
  expect_answers 2 1 'the cable is plugged again'

  if command -v tc >/dev/null; then
    expect_status 0 "$hosts" limit 1 1gbit
    "$hosts" exec 1 tc qdisc show dev eth0 | grep -q 'tbf.*rate 1Gbit' || fail 'there is no limit'
    expect_answers 2 1 'a limit of 1 Gbit/s'
    expect_status 0 "$hosts" limit 1 none
    equal 'the number of limits' "$("$hosts" exec 1 tc qdisc show dev eth0 | grep -c tbf)" 0
  else
    expect_refusal "needs the command 'tc'" limit 1 1gbit
  fi
  if command -v nft >/dev/null; then
    expect_status 0 "$hosts" lose 1 100
    expect_silence 2 1 'it loses all packets'
    expect_status 0 "$hosts" lose 1 20
    expect_status 0 "$hosts" lose 1 0
    expect_answers 2 1 'it loses no packets'
  else
    expect_refusal "needs the command 'nft'" lose 1 50
  fi
}

test_stop() {
  for i in 1 2; do
    # Processes that make others all the time, and that only SIGCONT can wake.
    # shellcheck disable=SC2016 # for the inner shell
    "$hosts" exec $i sh -c \
      'while :; do date +%s%N >"$1.new" && mv "$1.new" "$1"; sleep 0.01; done' \
      sh "$work/beat.$i" &
  done
  expect_moves 1 'nothing has stopped it'
  for round in first second; do
    expect_status 0 "$hosts" stop 1
    then=$(beat 1)
    expect_moves 2 'host 1 is stopped'
    sleep 0.1
    equal "the beat of host 1, stopped for the $round time" "$(beat 1)" "$then"
    # What is started now runs.
    equal 'the name of a host that is stopped' "$("$hosts" exec 1 uname -n)" host1
    expect_status 0 "$hosts" cont 1
    expect_moves 1 "it was stopped for the $round time and continued"
  done
}

has_died() { "$hosts" exec "$1" true 2>&1 | grep -q "host $1 has died"; }

# One of the hosts dies as if its power had failed.
test_death() {
  read -r keeper _ <"$HOSTS_STATE/2.keeper" || fail 'the keeper of host 2 is not known'
  kill -KILL "$keeper"
  until_true has_died 2 || fail 'host 2 lives without its first process'
  expect_refusal 'host 2 has died' exec 2 true
  expect_refusal 'host 2 has died' cut 2
  expect_answers 0 1 'host 2 has died'
}

case ${1:-} in
  first)
    cat "$HOSTS_STATE/mark" >"$work/mark.first"
    test_apart
    test_commands
    test_network
    test_stop
    test_death
    # Something that no longer has any relation to the tool.
    setsid sleep "$long" &
    exit 7
    ;;
  other)
    cat "$HOSTS_STATE/mark" >"$work/mark.other"
    until_true test -e "$work/is_cut" || fail 'the first set does not say that it is cut'
    expect_answers 2 1 'it is cut off in another set only'
    expect_answers 1 0 'it is cut off in another set only'
    touch "$work/other_is_whole"
    exit 5
    ;;
  signal)
    cat "$HOSTS_STATE/mark" >"$work/mark.$2"
    "$hosts" exec 1 sh -c "setsid sleep $long & sleep $long & wait" &
    setsid sleep "$long" &
    until_true has_sleepers 1 2 || fail 'host 1 does not see its processes'
    touch "$work/started.$2"
    wait
    exit 9
    ;;
  '') ;;
  *) fail "usage: hosts_tool.sh" ;;
esac

"$hosts" can || exit $?

# What `run` puts into the folder of temporary files is seen here.
work=$(mktemp -d) || exit 1
mkdir "$work/tmp"
background= # the runs that have not been waited for
clean_up() {
  # shellcheck disable=SC2086 # a list of words
  if [ -n "$background" ]; then kill -s TERM $background 2>/dev/null; fi
  wait
  HOSTS_STATE=$work/set "$hosts" down
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
unset HOSTS_STATE HOSTS_NET
long=$((1000000 + $$)) # seconds; no process of others sleeps for as long
export work long TMPDIR="$work/tmp" HOSTS_SHARED="$work"

devices() {
  for type in bridge veth; do ip -o link show type $type; done | cut -d: -f2
}
devices_before=$(devices)

# has_left MARK: a process, in whose mounts the mark is, or a folder is there.
has_left() { grep -q -s -e "$1" /proc/[0-9]*/mountinfo || [ -n "$(ls -A "$TMPDIR")" ]; }

# expect_nothing_left NAME...: of the sets whose marks are in these files.
expect_nothing_left() {
  for name in "$@"; do
    not has_left "$(cat "$work/mark.$name")" ||
      fail "the set '$name' leaves processes, or folders: $(ls -A "$TMPDIR")"
  done
  equal 'the number of processes that are left' \
    "$(cat /proc/[0-9]*/cmdline 2>/dev/null | count_sleepers)" 0
  not grep -q -e "$work" /proc/self/mountinfo || fail 'a mount is left'
  equal 'the list of network devices' "$(devices)" "$devices_before"
}

# Two sets at once.
"$hosts" run 2 sh "$here/hosts_tool.sh" other &
background=$!
status=0
"$hosts" run 2 sh "$here/hosts_tool.sh" first || status=$?
[ $status -eq 7 ] || exit 1
status=0
wait "$background" || status=$?
background=
equal 'the status of the other set' $status 5
expect_nothing_left first other

# `run` is ended by signals. A background command of this shell would ignore SIGINT.
runs=
for signal in INT:130 TERM:143 HUP:129 KILL:137; do
  env --default-signal=INT "$hosts" run 1 sh "$here/hosts_tool.sh" signal ${signal%:*} &
  runs="$runs $signal:$!"
  background="$background $!"
done
for run in $runs; do
  name=${run%%:*}
  process=${run##*:}
  expected=${run#*:}
  until_true test -e "$work/started.$name" || fail "the set '$name' does not start"
  kill -s "$name" "$process"
  status=0
  wait "$process" 2>/dev/null || status=$?
  equal "the status after SIG$name" $status "${expected%:*}"
done
background=
# After SIGKILL, the front host ends the set.
until_true not has_left "$(cat "$work/mark.KILL")" || fail 'something is left after SIGKILL'
expect_nothing_left INT TERM HUP KILL

# Sets that last from one command to the next, in a folder that has to be new or empty.
export HOSTS_STATE="$work/set"
expect_refusal 'from 1 to 99' up 100
expect_refusal 'there is no host 1' exec 1 true
expect_status 0 "$hosts" up 1
mark=$(cat "$work/set/mark")
expect_status 0 "$hosts" up 1
equal 'the mark of the same set' "$(cat "$work/set/mark")" "$mark"
for keeper in "$work"/set/*.keeper; do
  read -r process _ <"$keeper"
  kill -KILL "$process"
done
expect_status 0 "$hosts" down
not has_left "$mark" || fail 'something is left of a set whose hosts have died'
[ ! -e "$work/set" ] || fail 'the folder of a set is left'
expect_status 0 "$hosts" down
mkdir "$work/set"
touch "$work/set/mine"
expect_refusal 'in use for something else' run 1 true
[ -e "$work/set/mine" ] || fail "a file that is not the tool's is gone"
