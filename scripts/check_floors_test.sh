#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Feeds check_floors.sh small trees: one that is right, and one for each rule it must see broken.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fresh() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/src/base" "$scratch/tree/src/fiber" "$scratch/tree/src/transport/shm" \
    "$scratch/tree/src/message" "$scratch/tree/include/sojourn/detail" "$scratch/tree/apps/btree" \
    "$scratch/tree/bench/common" "$scratch/tree/tools" "$scratch/tree/include/sojourn/containers" "$scratch/tree/include/sojourn/readers"
  cd "$scratch/tree"
  echo '#include <cstdint>' >src/base/clock.hpp
  printf '#include "base/clock.hpp"\n#include <sojourn/rank.hpp>\n' >src/base/clock.cpp
  echo '#include "base/clock.hpp"' >src/fiber/fiber.hpp
  echo '  #  include "base/clock.hpp" // spaced' >src/transport/shm/ring.hpp
  printf '#include "fiber/fiber.hpp"\n#include "transport/shm/ring.hpp"\n' >src/message/send.cpp
  echo '#include "message/late.hpp"' >src/base/clock_test.cpp # tests may
  echo '#include <sojourn/detail/wire.hpp>' >include/sojourn/rank.hpp
  echo '#include <cstddef>' >include/sojourn/detail/wire.hpp
  echo '#include "sojourn/rank.hpp"' >include/sojourn/containers/map.hpp
  echo '#include "sojourn/containers/map.hpp"' >include/sojourn/containers.hpp
  echo '#include "sojourn/rank.hpp"' >include/sojourn/readers/lines.hpp
  printf '#include "btree/tree.hpp"\n#include <sojourn/sojourn.hpp>\n' >apps/btree/main.cpp
  echo '#include <sojourn/rank.hpp>' >tools/main.cpp
}

# expect STATUS WORDS: runs the check on the tree as it is; its output must hold WORDS.
expect() {
  status=0
  output=$(sh "$here/check_floors.sh" --print "$scratch/tree" 2>&1) || status=$?
  case $output in
    *"$2"*) found=1 ;;
    *) found=0 ;;
  esac
  if [ "$status" -ne "$1" ] || [ "$found" -eq 0 ]; then
    echo "FAILED: expected status $1 and '$2', got status $status and:"
    echo "$output"
    failures=$((failures + 1))
  else
    echo "ok: $2"
  fi
}

fresh
expect 0 'none points up'
fresh
expect 0 'message    -> transport(1) fiber(1)'
fresh
echo '#include "message/send.hpp"' >>src/base/clock.hpp
expect 1 'src/base/clock.hpp:2: includes "message/send.hpp", which points up from base to message'
fresh
echo '#include "transport/shm/ring.hpp"' >>src/fiber/fiber.hpp
expect 1 'fiber and transport do not know each other'
fresh
mkdir src/observe src/job src/launcher
echo '#include <cstdint>' >src/launcher/report.hpp
echo '#include "launcher/report.hpp"' >src/job/crash.hpp
expect 1 'src/job/crash.hpp:1: includes "launcher/report.hpp", which points up from job to launcher'
fresh
mkdir src/observe src/checkpoint
echo '#include <cstdint>' >src/checkpoint/files.hpp
echo '#include "checkpoint/files.hpp"' >src/observe/watch.hpp
expect 1 'observe and checkpoint do not know each other'
fresh
echo '#include "../message/send.hpp"' >>src/transport/shm/ring.hpp
expect 1 'points up from transport to message'
fresh
printf '#include <cstdint>\n#include "base/clock.hpp"\n' >src/base/clock.cpp
expect 1 'must include its own header "base/clock.hpp" first'
fresh
echo '#include <sojourn/sojourn.hpp>' >>src/message/send.cpp
expect 1 'includes the umbrella header'
fresh
echo '#include "base/clock.hpp"' >>include/sojourn/rank.hpp
expect 1 'include/sojourn/rank.hpp:2: is a public header and includes "base/clock.hpp" of src/'
fresh
echo '#include <sojourn/detail/wire.hpp>' >>apps/btree/main.cpp
expect 1 'apps/ stands on the public API alone'
for line in 'auto t = sojourn::detail::ticket_open();' 'using namespace sojourn::detail;' \
  'sojourn::shared::detail::barrier_here();' 'int x{detail::job.me};' 'using namespace detail;' \
  'namespace sojourn::detail {'; do
  for file in apps/btree/main.cpp tools/main.cpp bench/bench_calls.cpp bench/common/other.hpp; do
    fresh
    echo "$line" >>"$file"
    expect 1 'uses a namespace detail of the runtime'
  done
done
fresh
echo '#include "sojourn/detail/wire.hpp"' >>include/sojourn/containers/map.hpp
expect 1 'containers/ stands on the public API alone'
fresh
echo 'int t = detail::job.me;' >>include/sojourn/containers/map.hpp
expect 1 'include/sojourn/containers/map.hpp:2: uses a namespace detail of the runtime'
fresh
echo '#include "sojourn/containers/map.hpp"' >>include/sojourn/rank.hpp
expect 1 'containers and readers stand on the rest of the public API'
fresh
echo '#include "sojourn/readers/lines.hpp"' >>include/sojourn/containers.hpp
expect 1 'containers and readers stand on the rest of the public API'
fresh
echo '#include "sojourn/detail/wire.hpp"' >>include/sojourn/readers/lines.hpp
expect 1 'readers/ stands on the public API alone'
fresh
printf 'namespace detail {\nint cells();\n}\nint x = detail::cells();\n' >>apps/btree/main.cpp
cat >>tools/main.cpp <<'END'
throw CLI::detail::error(); // not sojourn::detail
int y = 3 * details::of(a_detail); add_detail("x");
int own = sojourn::tools::detail::own();
END
for file in one_way request_reply move_by_switch; do
  printf '#include <sojourn/detail/wire.hpp>\nint t = sojourn::detail::job.me;\n' >>bench/common/$file.hpp
done
expect 0 'none points up'
printf 'namespace detail {\nint cells();\n}\nint x = sojourn::detail::cells();\n' >>apps/btree/main.cpp
expect 1 'apps/btree/main.cpp:10: uses a namespace detail of the runtime'
fresh
echo '#include "../src/base/clock.hpp"' >>tools/main.cpp
expect 1 'tools/ stands on the public API alone'
fresh
mkdir src/attic
echo '#include <cstdint>' >src/attic/old.hpp
expect 1 'src/attic is no floor'

fresh
echo '#include "base/later.hpp"' >>src/base/clock.hpp
echo '#include "base/clock.hpp"' >src/base/later.hpp
expect 1 'these modules of src/ include each other in circles: base/'
fresh
echo '#include <cstdint>' >src/base/later.hpp
echo '#include "base/later.hpp"' >>src/base/clock.cpp
printf '#include "base/later.hpp"\n#include "base/third.hpp"\n' >src/base/later.cpp
echo '#include "base/clock.hpp"' >src/base/third.hpp
expect 1 'include each other in circles:'
fresh
echo '#include "base/clock.hpp"' >src/base/later.hpp
expect 0 'none points up'
fresh
mkdir src/transport/far
echo '#include "transport/shm/ring.hpp"' >src/transport/far/rank.hpp
echo '#include "transport/far/sizes.hpp"' >>src/transport/shm/ring.hpp
echo '#include <cstdint>' >src/transport/far/sizes.hpp
expect 1 'these folders of src/ include each other in circles: transport/'
fresh
mkdir -p src/shared/pages
echo '#include "fiber/fiber.hpp"' >src/shared/pages/rules.hpp
expect 1 'src/shared/pages stands on src/base alone'
fresh
mkdir -p src/object/coherence
echo '#include "message/outbound.hpp"' >src/object/coherence/rules.hpp
expect 1 'src/object/coherence stands on src/base alone'
for path in shared/memory.hpp ../memory.hpp sojourn/rank.hpp; do
  fresh
  mkdir -p src/shared/pages
  echo '#include <cstdint>' >src/shared/memory.hpp
  echo "#include \"$path\"" >src/shared/pages/rules.hpp
  expect 1 "src/shared/pages/rules.hpp:1: includes \"$path\": src/shared/pages stands on src/base alone"
done
fresh
echo '#include "../base/clock.hpp"' >>src/base/clock.cpp
expect 1 'write "../base/clock.hpp" with its floor'

if [ "$failures" -ne 0 ]; then
  echo "$failures checks failed"
  exit 1
fi
