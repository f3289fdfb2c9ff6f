#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install-deps.sh run|lib|test|test-arm64|bench|rivals|real-programs|service|share: makes sure that what `make run`, `make test` …
# need is there; `lib PRESET` what that build of the libraries needs.
#
# Silent and instant when nothing is missing, so every front-door target can call it first. What is missing is
# installed from Debian when we are root or sudo asks no password; otherwise the packages are named and we stop,
# because a build tool that waits for a password in CI hangs and one that half works misleads.
#
# A need is a check and the package that meets it. Checks look for what is used (a command, a file, a Python
# module), not for the package: a compiler or a Java from elsewhere is as good. A guest that can't be had is named in
# build/not-to-be-had.txt and not asked for again, until that file is removed.
set -euo pipefail

profile="${1:-}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
refused="$root/build/not-to-be-had.txt"

missing=()  # packages without which the profile can't do its job
guests=()   # programs to run under a library, and libraries to compare; one that is absent is skipped, and that is said

has_command() { command -v "$1" > /dev/null 2>&1; }
has_module() { /usr/bin/python3 -c "import $1" > /dev/null 2>&1; }
has_header() { [ -e "/usr/include/$1" ]; }
has_file() { [ -e "$1" ]; }
has_library() { compgen -G "/usr/lib/*-linux-gnu*/$1" > /dev/null; }

need() { # need PACKAGE CHECK ARGUMENT
  "$2" "$3" || missing+=("$1")
}
guest() {
  "$2" "$3" || grep -qsx -e "$1" "$refused" || guests+=("$1")
}

need_for_lib() { # need_for_lib [PRESET]
  need g++ has_command g++
  need cmake has_command cmake
  need ninja-build has_command ninja
  need binutils has_command objcopy
  case "${1:-}" in
    clang) need clang has_command clang++ ;;
    aarch64 | arm64-*) need g++-aarch64-linux-gnu has_command aarch64-linux-gnu-g++ ;;
  esac
}

need_for_run() {
  need_for_lib
  need python3 has_command /usr/bin/python3
  need python3-typer has_module typer
  need python3-rich has_module rich
  guest libdw-dev has_header elfutils/libdwfl.h
  guest libiberty-dev has_header libiberty/demangle.h
  guest nlohmann-json3-dev has_header nlohmann/json.hpp
  guest python3-protobuf has_module google.protobuf
  guest python3-prometheus-client has_module prometheus_client
  guest python3-pyelftools has_module elftools
}

need_for_test() {
  need_for_run
  need clang has_command clang++
  need clang-format has_command clang-format
  need clang-tidy has_command clang-tidy
  need libgtest-dev has_library libgtest.a
  need git has_command git
  need shellcheck has_command shellcheck
  need python3-venv has_module ensurepip
  need python3-numpy has_module numpy
  guest python3-jsonschema has_module jsonschema
  guest prometheus has_command prometheus
  guest valgrind has_command valgrind
  guest llvm has_command llvm-mca
  guest redis-server has_command redis-server
  guest redis-tools has_command redis-benchmark
  guest sqlite3 has_command sqlite3
  guest perl has_command perl
  guest man-db has_command man
  guest groff-base has_command nroff
  guest stress-ng has_command stress-ng
  guest postgresql has_postgres any
  guest openjdk-17-jre-headless has_command java
  guest nodejs has_command node
  guest memcached has_command memcached
  guest nginx has_command /usr/sbin/nginx
  guest libzstd-dev has_header zstd.h
  guest liblz4-dev has_header lz4.h
}

need_for_test_arm64() {
  need_for_lib aarch64
  need googletest has_file /usr/src/googletest/CMakeLists.txt
  need qemu-system-arm has_command qemu-system-aarch64
}

# The bench itself, and zcache, which it measures the handle pool with; its packages for Python are below.
need_for_bench() {
  need_for_run
  need git has_command git
  need python3-venv has_module ensurepip
  guest valgrind has_command valgrind
  guest libzstd-dev has_header zstd.h
  guest liblz4-dev has_header lz4.h
}

# What the allocators that brimful is compared with are built from, and those that Debian has built. One that is missing
# is declared in every table.
need_for_rivals() {
  need_for_bench
  need clang has_command clang++
  need make has_command make
  guest libjemalloc2 has_library libjemalloc.so.2
  guest libtcmalloc-minimal4 has_library libtcmalloc_minimal.so.4
  guest libmimalloc2.0 has_library libmimalloc.so.2.0
  guest libtbbmalloc2 has_library libtbbmalloc_proxy.so.2
  guest cargo-web has_command cargo # Debian's cargo is too old for some of the crates
  has_scudo || guests+=("$(newest_scudo)")
}

# What bench/programs/build_programs.py builds needs the compiler of the libraries, and make.
need_for_real_programs() {
  need_for_bench
  need make has_command make
  guest memcached has_command memcached
  guest nginx has_command /usr/sbin/nginx
  guest ruby has_command /usr/bin/ruby
  guest perl has_command /usr/bin/perl
  guest php-cli has_command php
  guest openjdk-17-jre-headless has_command java
  guest clang has_command /usr/bin/clang++
  guest jq has_command jq
  guest xsltproc has_command xsltproc
  guest povray has_command povray
  guest redis-server has_command redis-server
  guest redis-tools has_command redis-benchmark
  guest lua5.4 has_command lua5.4
  guest z3 has_command z3
  guest ghostscript has_command gs
  guest rocksdb-tools has_command db_bench
  guest sqlite3 has_command sqlite3
  guest postgresql has_postgres any
  guest nodejs has_command node
}

# A profiler for the study of that name.
need_for_share() {
  need_for_bench
  guest linux-perf has_command perf
}

need_for_service() {
  need_for_bench
  need openjdk-17-jdk-headless has_command javac
  need maven has_command mvn
}

has_scudo() { compgen -G "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-*.so" > /dev/null; }
newest_scudo() {
  apt-cache search --names-only '^libclang-rt-[0-9]+-dev$' 2> /dev/null | sed 's/ .*//' | sort -V | tail -n 1 \
    | grep . || echo libclang-rt-14-dev
}

# The servers live outside PATH.
has_postgres() { compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null; }

case "$profile" in
  run) need_for_run ;;
  lib) need_for_lib "${2:-}" ;;
  test) need_for_test ;;
  test-arm64) need_for_test_arm64 ;;
  bench) need_for_bench ;;
  rivals) need_for_rivals ;;
  real-programs) need_for_real_programs ;;
  service) need_for_service ;;
  share) need_for_share ;;
  *)
    echo "usage: install-deps.sh run|lib|test|test-arm64|bench|rivals|real-programs|service|share" >&2
    exit 2
    ;;
esac

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo -n)
fi
may_install() {
  has_command apt-get && { [ "$(id -u)" -eq 0 ] || { has_command sudo && sudo -n true 2> /dev/null; }; }
}

# One clone at a time, and after any other installation that is under way: two would refuse each other's locks.
apt() {
  "${as_root[@]}" flock -w 900 /var/lib/dpkg \
    env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" < /dev/null
}

if [ "${#missing[@]}" -gt 0 ] && ! may_install; then
  echo "Missing packages (install them and try again):" >&2
  echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
if [ "${#guests[@]}" -gt 0 ] && ! may_install; then
  echo "Not installed, and left out of what uses them: ${guests[*]}"
  guests=()
fi
if [ "${#missing[@]}" -gt 0 ] || [ "${#guests[@]}" -gt 0 ]; then
  echo "Installing: ${missing[*]} ${guests[*]}"
  apt update || echo "The list of packages could not be renewed: going on with what is known"
fi
if [ "${#missing[@]}" -gt 0 ] && ! apt install --no-install-recommends "${missing[@]}"; then
  echo "Missing packages, which could not be installed: ${missing[*]}" >&2
  exit 1
fi
# All at once is quicker; but a guest that this distribution lacks must not keep the others out.
if [ "${#guests[@]}" -gt 1 ] && apt install --no-install-recommends "${guests[@]}"; then
  guests=()
fi
for package in "${guests[@]}"; do
  if ! apt install --no-install-recommends "$package"; then
    echo "Going on without $package: what uses it will be left out"
    mkdir -p "$root/build"
    echo "$package" >> "$refused"
  fi
done

# What Debian 12 lacks in usable versions lives in a folder of the build tree: ruff and mypy, and what the bench computes
# and draws with. The copy of the lists in there says what it was made from.
if [ "$profile" != run ] && [ "$profile" != lib ] && [ "$profile" != test-arm64 ]; then
  venv="$root/build/venv"
  lists=("$root/tools/requirements-lint.txt" "$root/tools/requirements-bench.txt")
  if ! cat "${lists[@]}" | cmp -s - "$venv/requirements.txt"; then
    echo "Installing the Python packages of tools/requirements-*.txt into build/venv"
    # Without a package index the checks and tests that need them are skipped, and say so; all else can be tested.
    if /usr/bin/python3 -m venv "$venv" \
      && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "${lists[0]}" -r "${lists[1]}" < /dev/null; then
      cat "${lists[@]}" > "$venv/requirements.txt"
    else
      echo "Going on without them"
    fi
  fi
fi
