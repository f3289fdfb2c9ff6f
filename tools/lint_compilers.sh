#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The libraries compile without a warning and link by compilers other than the one that ships them: clang, and gcc for
# 64-bit ARM (with the portable sequences). The pools stand alone there, too; the clang build must carry a program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build() { # build PRESET COMPILER
  if ! command -v "$2" > /dev/null; then
    echo "$2 is not installed: preset $1 is not built"
    return
  fi
  local log="build/compilers-$1.log"
  if ! { cmake --preset "$1" \
    && cmake --build "build/$1" --target \
      brimful brimful_static brimful_relocatable brimful-pools brimful-pools-checked; } > "$log" 2>&1; then
    cat "$log"
    return 1
  fi
  /usr/bin/python3 tools/check_pool_symbols.py build/"$1"/libbrimful-pools{,-checked}.a
  built+=("$1")
}

built=()
mkdir -p build
build clang clang++
build aarch64 aarch64-linux-gnu-g++
if [ "${#built[@]}" -eq 0 ]; then
  exit 77
fi
if [ -e build/clang/libbrimful.so ]; then
  LD_PRELOAD="$PWD/build/clang/libbrimful.so" grep -q libbrimful.so /proc/self/maps
fi
echo "built: ${built[*]}"
