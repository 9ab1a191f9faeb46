#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the project that docs/getting_started.md has inside another build, and runs it on one rank and on four. CMake
# optimizes such a build more than our presets do (-O3): no warning may come of it.
# Usage: build_first.sh PROJECT SOJOURN-SOURCES BUILD-FOLDER CMAKE COMPILER SOJOURN
set -eu
project=$1
sources=$2
folder=$3
cmake=$4
compiler=$5
sojourn=$6

"$cmake" -G Ninja -S "$project" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DSOJOURN="$sources" -DSOJOURN_WERROR=ON
"$cmake" --build "$folder" -j 2
[ "$("$folder/first")" = '1 ranks, whose numbers add up to 0' ]
[ "$("$sojourn" run -n 4 "$folder/first")" = '4 ranks, whose numbers add up to 6' ]
