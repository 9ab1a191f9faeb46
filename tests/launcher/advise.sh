# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# `sojourn advise`: what a run has learnt about its calls becomes words, and a setting that holds.
. "$(dirname "$0")/lib.sh"
program=$3
run=$work/run.json

advise() {
  status=0
  "$sojourn" advise "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# A run that tries all words: --stats shows each place, and the advice follows it.
status=0
SOJOURN_VIA=automatic "$sojourn" run -n 2 --stats --stats-json "$run" "$program" >"$out" 2>"$err" || status=$?
expect_status 0
expect_err '^calls of .* at .* word .* now .* migrate/rpc *bring/rpc$'
expect_err '^prices::of *`total` (automatic.cpp:[0-9]*) *automatic '
expect_err '^account::add *`save` (automatic.cpp:[0-9]*) '
# Also where SOJOURN_VIA says the word, a copy that is here is used first.
expect_err '^prices::of .* automatic *rpc *[0-9][0-9] *0 *1 '
advise "$run"
expect_status 0
expect_no_err
expect_out '^calls of .* advised *messages saved *bytes saved$'
expect_out '^account::add *`pay_in` (automatic.cpp:[0-9]*) .* migrate'
setting=$(grep '^SOJOURN_VIA=' "$out") || fail 'no setting is advised'
eval "export $setting"
"$sojourn" run -n 2 "$program" >"$out" 2>"$err" || fail 'the setting that is advised is refused'
expect_no_err
unset SOJOURN_VIA

# Figures whose advice is known.
figures() {
  cat >"$run" <<END
{"ranks": 2, "counters": {"requests_sent": {"sum": 1000}, "request_bytes": {"sum": 64000},
 "replies_sent": {"sum": 1000}, "reply_bytes": {"sum": 32000}},
 "calls": [
 {"place": "\`look\` (table.cpp:7)", "method": "{anonymous}::bucket::price", "said": "$1", "now": "cache",
  "rpc": 500, "migrate": 0, "cache": 10, "fetch": 0, "bringing": "cache", "cost_of_migrating": 1.5,
  "cost_of_bringing": 0.25, "calls_a_migration": 1, "calls_a_bringing": 50, "changes": 1},
 {"place": "\`look\` (table.cpp:9)", "method": "{anonymous}::bucket::price", "said": "rpc", "now": "rpc",
  "rpc": 100, "migrate": 0, "cache": 0, "fetch": 0, "bringing": "cache", "cost_of_migrating": null,
  "cost_of_bringing": null, "calls_a_migration": null, "calls_a_bringing": null, "changes": 0},
 {"place": "\`raise\` (table.cpp:12)", "method": "{anonymous}::bucket::raise", "said": "rpc", "now": "rpc",
  "rpc": 100, "migrate": 0, "cache": 0, "fetch": 0, "bringing": "fetch", "cost_of_migrating": 1.5,
  "cost_of_bringing": 2, "calls_a_migration": 1, "calls_a_bringing": 2, "changes": 0}]}
END
}
figures rpc
advise "$run"
expect_status 0
# 1000 calls that cost 1 come to cost 0.25: 1500 messages of 48 bytes.
expect_out '^{anonymous}::bucket::price *`look` (table.cpp:7) *1000 *rpc *cache *1500 *72000$'
expect_out '^{anonymous}::bucket::price *`look` (table.cpp:9) *100 *rpc *not known *$'
expect_out '^{anonymous}::bucket::raise *`raise` (table.cpp:12) *100 *rpc *rpc *$'
# One method, called in two ways: by the line.
expect_out '^SOJOURN_VIA=table.cpp:7=cache$'
advise --json "$run"
expect_status 0
expect_out '"advised": "cache"'
expect_out '"messages_saved": 1500'
expect_out '"advised": null'
expect_out '"setting": "SOJOURN_VIA=table.cpp:7=cache"'
figures cache
advise "$run"
expect_out '^No other word would cost clearly less.$'

# What is no such file is refused in one sentence.
refused() {
  sentence=$1
  shift
  advise "$@"
  expect_status 2
  expect_no_out
  expect_err "$sentence"
  [ "$(wc -l <"$err")" -eq 1 ] || fail 'standard error is not one line'
}
refused '^sojourn advise: cannot read .*nothing.*--stats-json' "$work/nothing"
printf 'text' >"$run"
refused 'is not what .sojourn run --stats-json FILE. writes$' "$run"
printf '{"counters": {}, "calls": [{"place": 3}]}' >"$run"
refused 'is not what .sojourn run --stats-json FILE. writes$' "$run"
"$sojourn" run -n 2 --stats-json "$run" "$program" >"$out" 2>"$err" || fail 'the program fails'
refused 'tells of no calls of objects on other ranks: run with --stats beside --stats-json' "$run"
refused "RUN.json is required; 'sojourn advise --help'"
refused "sojourn advise --help" "$run" --more
advise --help
expect_status 0
expect_out 'SOJOURN_VIA=automatic sojourn run'
