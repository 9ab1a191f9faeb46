# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Bad input gives one sentence and status 2; help and --dry-run start nothing.
. "$(dirname "$0")/lib.sh"

refused() {
  pattern=$1
  shift
  try "$@"
  expect_status 2
  expect_one_sentence
  expect_err "$pattern"
}

refused 'no command was given'
refused "no command 'walk'" walk
refused "no option '--walk'" --walk
refused 'no program was given' run
refused 'no program was given' run -n 2
refused 'no program was given' run -n 2 --
refused "from 1 to 1024, not '0'" run -n 0 hostname
refused "from 1 to 1024, not '-1'" run -n -1 hostname
refused "from 1 to 1024, not '1025'" run -n 1025 hostname
refused "from 1 to 1024, not 'four'" run -n four hostname
refused "from 1 to 1024, not '2x'" run -n 2x hostname
refused "from 1 to 1024, not '1.5'" run -n 1.5 hostname
refused "from 1 to 1024, not '99999999999999999999'" run -n 99999999999999999999 hostname
refused "from 1 to 1024, not ''" run -n '' hostname
refused '-n takes a value' run -n
refused 'no option --fast' run --fast hostname
refused 'no option -x' run -x hostname
refused "'on' or 'off', not 'maybe'" run --share maybe hostname
refused "'none', 'steal' or 'diffuse', not 'fair'" run --balance fair hostname
for size in '' much 5T 1M5 -1 2000G; do
  refused "--cache-bytes takes a size of at most 1024G, such as 256M, not '$size'" run --cache-bytes "$size" hostname
done
refused 'exclude each other' run --bind --no-bind hostname
for flag in bind no-bind label stats dry-run; do
  refused "--$flag takes no value" run --$flag=x hostname
done
refused "cannot start './absent': No such file" run -n 2 ./absent
refused "cannot start 'no-such-program-anywhere': No such file" run no-such-program-anywhere
refused "cannot start '': No such file" run ''
refused "cannot start '/': Is a directory" run /
refused "cannot write '/nonexistent/f': No such file" run --stats-json /nonexistent/f hostname
refused "cannot write '$work': Is a directory" run --stats-json "$work" hostname

for seconds in x -1 nan '' 1e9 2s; do
  refused "--watchdog takes a number of seconds from 0 (never) to 1000000, not '$seconds'" \
    run --watchdog "$seconds" hostname
  refused "--grace takes a number of seconds from 0 to 1000000, not '$seconds'" \
    run --grace "$seconds" hostname
done
refused '--restore: the name is too long' \
  run -n 1 --restore "./$(printf '%05000d' 0)" hostname

# Several programs.
refused "from 1 to 1024, not '0'" run -n 1 hostname : -n 0 hostname
refused "needs its number of ranks (-n), and hostname has none: 'sojourn run -n 1 ./a : -n 3 ./b'" \
  run hostname : -n 1 hostname
refused "needs its number of ranks (-n), and hostname has none: 'sojourn run -n 1 ./a : -n 3 ./b'" \
  run -n 1 hostname : hostname
refused '--restore is for jobs of one program, and this one has several' \
  run -n 1 --restore "$work/absent" hostname : -n 1 hostname
refused "only -n and a program may follow a ':', and --share is for the whole job" \
  run -n 1 hostname : --share on hostname
refused 'a job has at most 1024 ranks, and the programs of this one have 1100' \
  run -n 1000 hostname : -n 100 hostname
refused '-n takes a value' run -n 1 hostname : -n
refused "no program was given after a ':'; 'sojourn run -n 1 ./a : -n 3 ./b' starts a job of two" \
  run -n 1 hostname :

# A number or an option that stands where a file is to be named was meant for something else.
for option in --stats-json --report --restore; do
  refused "$option takes the name of .*, not -n; write ./-n for" run $option -n 2 hostname
  refused "$option takes the name of .*, not 4; write ./4 for" run $option 4 hostname
  refused "$option takes the name of" run $option '' hostname
done
(cd "$work" && "$sojourn" run -n 1 --stats-json ./4 true) || fail 'a file cannot have a number for a name'
[ -s "$work/4" ] || fail 'a file of that name is not written'

# What is echoed of the user's words cannot command a terminal.
escape=$(printf '\033[2J')
for words in "$escape" "run $escape" "run -n $escape true" "run --$escape true" "run --share $escape true" \
  "run --stats-json /nonexistent/$escape true" "new $escape/x" "doctor $escape"; do
  # shellcheck disable=SC2086
  try $words
  [ "$status" -ne 0 ] || fail "accepted: $words"
  if grep -q -F "$escape" "$err" "$out"; then fail "echoed as it is: $words"; fi
done
expect_err '\\x1b\[2J'
try run -n 1 --dry-run hostname "$escape"
expect_status 0
expect_out "'\\\\x1b\\[2J'"

# Output that cannot be written is no success.
if [ -w /dev/full ]; then
  for words in --help --version 'run --help' 'run -n 1 --dry-run true' 'doctor --help' 'new --help'; do
    context="$words: "
    status=0
    # shellcheck disable=SC2086
    "$sojourn" $words >/dev/full 2>"$err" || status=$?
    expect_status 1
    expect_err 'cannot write to standard output: No space left'
    # With standard error full too there is only the status.
    status=0
    # shellcheck disable=SC2086
    "$sojourn" $words >/dev/full 2>&1 || status=$?
    expect_status 1
  done
  context=''
fi
# A sentence that cannot be written changes no status.
for descriptor in '&-' /dev/full; do
  [ "$descriptor" = '&-' ] || [ -w "$descriptor" ] || continue
  for words in '' walk 'run ./absent' 'run -n 0 true' 'doctor --walk' 'new'; do
    status=0
    eval '"$sojourn" '"$words"' >"$out" 2>'"$descriptor" || status=$?
    expect_status 2
  done
done

printf 'text\n' >"$work/not-executable"
refused 'Permission denied' run "$work/not-executable"
# What only exec finds out: no rank is left running then.
printf '#!/nonexistent/interpreter\n' >"$work/no-interpreter"
chmod +x "$work/no-interpreter"
refused "no-interpreter': No such file" run -n 4 "$work/no-interpreter"
expect_gone "$work/no-interpreter"
printf 'echo by the shell\n' >"$work/no-first-line"
chmod +x "$work/no-first-line"
try run -n 1 "$work/no-first-line"
expect_status 0
expect_out 'by the shell'

SOJOURN_SHARE=perhaps
export SOJOURN_SHARE
refused "SOJOURN_SHARE is 'on' or 'off', not 'perhaps'" run hostname
unset SOJOURN_SHARE

(cd "$work" && printf '#!/bin/sh\n' >here && chmod +x here)
status=0
(cd "$work" && "$sojourn" run here) >"$out" 2>"$err" || status=$?
expect_status 2
expect_err 'did you mean ./here?'

# Too few descriptors for the pipes: said before anything starts.
status=0
(ulimit -n 100 && "$sojourn" run -n 64 true) >"$out" 2>"$err" || status=$?
expect_status 2
expect_err "that many ranks need [0-9]* open files and the limit is 100; raise it with 'ulimit -n [0-9]*'"
# A low soft limit is raised, and the ranks still see the low one.
status=0
(ulimit -S -n 100 && "$sojourn" run -n 64 sh -c 'ulimit -n') >"$out" 2>"$err" || status=$?
expect_status 0
[ "$(sort -u "$out")" = 100 ] || fail 'ranks have another limit on open files'

for words in --help -h help 'run --help' 'run -h' 'run -n 3 --help'; do
  # shellcheck disable=SC2086
  try $words
  expect_status 0
  expect_no_err
  expect_out 'sojourn run -n 4'
done
try --version
expect_status 0
expect_out '^sojourn [0-9]'

# What follows the program is the program's.
try run -n 1 echo -n 7 --label --help -- end
expect_status 0
[ "$(cat "$out")" = '7 --label --help -- end' ] || fail 'arguments were changed'
try run -n 2 -- echo --
expect_status 0
[ "$(cat "$out")" = "$(printf -- '--\n--')" ] || fail 'arguments after -- were changed'
try run -n2 echo attached
expect_status 0
lines_in "$out" 2 || fail '-n2 did not start two ranks'
try run -n 7 -n 1 echo last
[ "$(wc -l <"$out")" -eq 1 ] || fail 'the last -n did not win'

try run -n 3 --dry-run --share off "$fake" 'two words' "it's"
expect_status 0
expect_no_err
expect_out '^ranks: *3$'
expect_out "^command: .*'two words' 'it'.''s'$"
expect_out 'SOJOURN_SHARE=off'
expect_out '^cores: '
refused 'No such file' run --dry-run ./absent

try bench walk
[ -x "$(dirname "$sojourn")/bench_driver" ] || {
  expect_status 2
  expect_one_sentence
  expect_err 'benchmarks are not built'
}
