# SPDX-License-Identifier: MIT
#
# The switches of a build. CMake picks files by them; the sources themselves see only
# BRIMFUL_ARCH_GENERIC, BRIMFUL_DEBUG, BRIMFUL_INTERPOSE and BRIMFUL_MIDDLE, and only arch/, config/build.h and base/compiler.h look.

option(BRIMFUL_INTERPOSE "Define malloc, operator new and the rest; OFF leaves only the brimful_* names" ON)
option(BRIMFUL_ARCH_GENERIC "Use the portable C++ sequences in place of the assembly" OFF)
option(BRIMFUL_TESTS "Build the tests" OFF)
option(BRIMFUL_TOGETHER "Compile the library a dozen files at a time: to see that it compiles, not to ship it" OFF)
set(BRIMFUL_SANITIZE "" CACHE STRING "Comma-separated sanitizers for -fsanitize=; empty for none")
# What drives the targets of tests/fuzz: nothing (they replay their corpora, in builds with tests), or one of these.
set(BRIMFUL_FUZZ "" CACHE STRING "libfuzzer, afl or coverage; empty: no fuzzers")
set_property(CACHE BRIMFUL_FUZZ PROPERTY STRINGS "" libfuzzer afl coverage)
# For study (docs/design/0010): what the contexts are worth is seen by leaving them out.
set(BRIMFUL_MIDDLE "contexts" CACHE STRING "The middle layer: contexts, class-mutex or global-lock")
set_property(CACHE BRIMFUL_MIDDLE PROPERTY STRINGS contexts class-mutex global-lock)
set(brimful_middle_contexts kContexts)
set(brimful_middle_class-mutex kClassMutex)
set(brimful_middle_global-lock kGlobalLock)
if(NOT DEFINED brimful_middle_${BRIMFUL_MIDDLE})
  message(FATAL_ERROR "BRIMFUL_MIDDLE is contexts, class-mutex or global-lock, not ${BRIMFUL_MIDDLE}")
endif()

# A second build from scratch then takes seconds. Whoever names a launcher, also an empty one, is obeyed. ccache fails every
# compilation where it can't write into its folder (a read-only HOME), so there it is left out.
find_program(brimful_ccache ccache)
set(brimful_ccache_works OFF)
if(brimful_ccache)
  execute_process(RESULT_VARIABLE brimful_ccache_fails OUTPUT_QUIET ERROR_QUIET
    COMMAND sh -c "folder=$(\"$0\" --get-config cache_dir) && mkdir -p \"$folder\" && test -w \"$folder\"" ${brimful_ccache})
  if(brimful_ccache_fails EQUAL 0)
    set(brimful_ccache_works ON)
  endif()
endif()
foreach(lang C CXX)
  if(brimful_ccache_works AND NOT DEFINED CMAKE_${lang}_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_${lang}_COMPILER_LAUNCHER})
    set(CMAKE_${lang}_COMPILER_LAUNCHER ${brimful_ccache})
  endif()
endforeach()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Line tables even in the release build: a stack trace through the allocator is worth more than the disk.
foreach(lang C CXX ASM)
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -g")
  set(CMAKE_${lang}_FLAGS_DEBUG "-O1 -g -DBRIMFUL_DEBUG=1")
endforeach()

if(BRIMFUL_SANITIZE AND BRIMFUL_INTERPOSE)
  message(FATAL_ERROR "a sanitizer owns malloc: configure with -DBRIMFUL_INTERPOSE=OFF")
endif()

# Assembly exists for x86-64 and 64-bit ARM. Every other machine, and a sanitizer build (which must see each memory
# access), takes the portable sequences.
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" brimful_machine)
if(BRIMFUL_ARCH_GENERIC)
  set(BRIMFUL_ARCH generic)
elseif(brimful_machine MATCHES "^(x86_64|amd64)$")
  set(BRIMFUL_ARCH x86_64)
elseif(brimful_machine MATCHES "^(aarch64|arm64)$")
  set(BRIMFUL_ARCH aarch64)
else()
  set(BRIMFUL_ARCH generic)
endif()
