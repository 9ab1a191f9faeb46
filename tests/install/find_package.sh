#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project outside the tree finds the installed package, builds without a warning, also as position
# independent code where it may, and runs on two ranks.
# Usage: find_package.sh PREFIX CMAKE COMPILER PROJECT WORK
set -eu
prefix=$1
cmake=$2
compiler=$3
project=$4
work=$5
trap 'rm -rf "$work"' EXIT
rm -rf "$work"

"$cmake" -G Ninja -S "$project" -B "$work" -DCMAKE_CXX_COMPILER="$compiler" \
  "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_POSITION_INDEPENDENT_CODE=ON
"$cmake" --build "$work"
ctest --test-dir "$work" --output-on-failure --no-tests=error
