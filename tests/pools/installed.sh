#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `cmake --install`, and then a C and a C++ program that know nothing but what pkg-config says: against the pools alone,
# against the checked pools, and against pools and malloc together. The installed tree is moved first, because the .pc
# files promise that it may be. A program that uses one pool must not carry the others.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${BRIMFUL_BUILD:-$root/build/release}

for program in pkg-config gcc g++ cmake; do
  command -v "$program" > /dev/null || { echo "skip: $program is not installed"; exit 77; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/brimful-installed-XXXXXX")
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first" "$work/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name brimful-pools.pc)")
export PKG_CONFIG_PATH

cat > "$work/consumer.c" << 'EOC'
#include <brimful/brimful.h>
#include <brimful/tlsf.h>
#include <stdio.h>
#include <string.h>

static char memory[1 << 20];

int main(void) {
  brimful_tlsf* pool = brimful_tlsf_create(memory, sizeof memory);
  char* text = brimful_tlsf_malloc(pool, 16);
  strcpy(text, "from the pool");
  puts(text);
  brimful_tlsf_free(pool, text);
#ifdef WITH_MALLOC
  puts(brimful_version());
#endif
  return brimful_tlsf_check(pool, NULL) != NULL;
}
EOC
cp "$work/consumer.c" "$work/consumer.cpp"
sed -i 's/= brimful_tlsf_malloc/= (char*)brimful_tlsf_malloc/' "$work/consumer.cpp"

# consumer COMPILER SOURCE PACKAGE… -- FLAG…: compiled, run; prints what the program prints.
consumer() {
  local compiler=$1 source=$2 packages=() flags
  shift 2
  while [ "$1" != -- ]; do
    packages+=("$1")
    shift
  done
  shift
  read -ra flags <<< "$(pkg-config --cflags --libs "${packages[@]}")"
  "$compiler" -Wall -Wextra -Werror -o "$work/program" "$work/$source" "$@" "${flags[@]}" \
    -Wl,-rpath,"${PKG_CONFIG_PATH%/*}"
  "$work/program"
}

expect() { # expect TEXT FOUND
  [ "$1" = "$2" ] || { echo "expected \"$1\", found \"$2\""; exit 1; }
}

expect "from the pool" "$(consumer gcc consumer.c brimful-pools --)"
expect "from the pool" "$(consumer g++ consumer.cpp brimful-pools --)"
expect "from the pool" "$(consumer gcc consumer.c brimful-pools-checked --)"
if nm "$work/program" | grep -E 'brimful_(handle|page_pool|pool_host)'; then
  echo "a program that uses TLSF alone carries what is named above"
  exit 1
fi
version=$(pkg-config --modversion brimful)
expect "from the pool"$'\n'"$version" "$(consumer gcc consumer.c brimful-pools brimful -- -DWITH_MALLOC)"
echo "installed below a prefix, moved, found by pkg-config: pools, checked pools, pools and malloc"
