#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what the documents say they run and compares the output with the block behind each
#   <!-- output: [NAME=VALUE…] -n RANKS PROGRAM[, in any order] -->
# with the heap shared and not. PROGRAM is an example: account for examples/account.cpp.
# Usage: run_outputs.sh ROOT SOJOURN DIRECTORY-OF-PROGRAMS
set -u
root=$1
sojourn=$2
bin=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
runs=0

cd "$root" || exit 1
for document in README.md docs/*.md; do
  awk -v mode=outputs -v examples=docs/examples -f "$here/check_documents.awk" "$document"
done >"$work/outputs"

while IFS='	' read -r place marker; do
  order='cat'
  case $marker in
    *', in any order')
      order='sort'
      marker=${marker%, in any order}
      ;;
  esac
  program=${marker##* }
  options=${marker% *}
  document=${place%:*}
  # The block behind the marker: from the next line with a fence up to the one after it.
  awk -v from="${place##*:}" 'NR > from && /^```/ { if (inside) exit; inside = 1; next } inside' "$document" |
    "$order" >"$work/expected"
  variables=''
  for word in $options; do
    case $word in *=*) variables="$variables $word" ;; esac
  done
  # Before a ':' stands another program of the job.
  options=$(printf '%s\n' "$options" | tr ' ' '\n' | grep -v = | tr '\n' ' ' |
    sed "s|\([^ ]*\) : |$bin/job_doc_\1 : |g")
  for share in on off; do
    # shellcheck disable=SC2086  # lists of words
    env $variables "$sojourn" run --share "$share" $options "$bin/job_doc_$program" >"$work/got" 2>"$work/errors"
    status=$?
    runs=$((runs + 1))
    "$order" "$work/got" >"$work/ordered"
    if [ "$status" -ne 0 ] || [ -s "$work/errors" ] || ! diff -u "$work/expected" "$work/ordered"; then
      echo "$place: $marker, --share $share: status $status" >&2
      cat "$work/errors" >&2
      failures=$((failures + 1))
    fi
  done
done <"$work/outputs"

# What `sojourn run` says of jobs that hang; without what differs from run to run and build to build.
stable() { sed -E 's/ \(pid [0-9]+\)//; s/ \([a-z_.]*\.[ch]pp:[0-9]+\)//g; s/^(  .*), for [0-9.]+ s/\1/' "$1"; }
for document in docs/*.md; do
  awk -v mode=reports -v examples=docs/examples -f "$here/check_documents.awk" "$document"
done >"$work/reports"
while IFS='	' read -r place marker; do
  awk -v from="${place##*:}" 'NR > from && /^```/ { if (inside) exit; inside = 1; next } inside' \
    "${place%:*}" >"$work/expected"
  stable "$work/expected" >"$work/stable"
  for share in on off; do
    # shellcheck disable=SC2086  # a list of words
    "$sojourn" run --share "$share" ${marker% *} "$bin/job_doc_${marker##* }" >"$work/got" 2>"$work/errors"
    status=$?
    runs=$((runs + 1))
    stable "$work/errors" >"$work/ordered"
    if [ "$status" -ne 1 ] || [ -s "$work/got" ] || ! diff -u "$work/stable" "$work/ordered"; then
      echo "$place: $marker, --share $share: status $status" >&2
      failures=$((failures + 1))
    fi
  done
done <"$work/reports"

[ "$runs" -gt 0 ] || failures=1
echo "$runs runs"
[ "$failures" -eq 0 ]
