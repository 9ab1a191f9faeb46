#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs namespaces.cpp with its ranks in PID namespaces of their own, as containers may have them.
# Usage: namespaces.sh SOJOURN PROGRAM IS-SANITIZED
set -u
sojourn=$1
program=$2
unshare -f -p true 2>/dev/null || {
  echo 'skipped: no PID namespaces can be made here'
  exit 77
}
failures=0
run() {
  if ! timeout 100 "$sojourn" run "$@"; then
    echo "FAILED: sojourn run $*" >&2
    failures=$((failures + 1))
  fi
}
for share in on off; do
  # 1 is the first process of each namespace, and in the second command one of others.
  run -n 2 --share $share unshare -f -p "$program"
  # shellcheck disable=SC2016  # for the inner shell
  run -n 3 --share $share unshare -f -p sh -c '"$1"; exit $?' sh "$program"
  run -n 1 --share $share "$program" : -n 1 unshare -f -p "$program"
done
# All ranks in one.
timeout 100 unshare -f -p "$sojourn" run -n 2 --share off "$program" || failures=$((failures + 1))
exit $((failures > 0))
