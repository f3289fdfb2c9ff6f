# SPDX-License-Identifier: MIT
#
# brimful_flags: how the allocator's own sources are compiled. An interface target, so that the shipped
# library and the test library are compiled alike except for symbol visibility.

add_library(brimful_warnings INTERFACE)
target_compile_options(brimful_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow -Wpedantic -Werror>)

add_library(brimful_headers INTERFACE)
target_include_directories(brimful_headers INTERFACE ${PROJECT_SOURCE_DIR}/include)

add_library(brimful_flags INTERFACE)
target_link_libraries(brimful_flags INTERFACE brimful_warnings brimful_headers)
target_include_directories(brimful_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(brimful_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:
    -Wconversion
    # clang counts signed/unsigned conversions under -Wconversion, gcc does not: same rule for both.
    -Wno-sign-conversion
    # No C++ run time: the library is linked by the C driver and must load into C programs.
    -fno-exceptions
    -fno-rtti
    -fno-threadsafe-statics
    # The compiler knows malloc and its family. Inside them that knowledge is wrong: it would turn
    # malloc + memset into a call of calloc, that is calloc into itself.
    -fno-builtin-malloc
    -fno-builtin-calloc
    -fno-builtin-realloc
    -fno-builtin-free
    # One load from the thread pointer. The dynamic model calls __tls_get_addr, which may call malloc.
    -ftls-model=initial-exec
    -fno-semantic-interposition
    -ffunction-sections
    # Profilers and crash handlers unwind through malloc; bad_alloc propagates through operator new.
    -fasynchronous-unwind-tables
    # Some compilers switch the protector on by default; it costs instructions on the fast path.
    -fno-stack-protector
  >
  # Assembly has no compiler that says its stack need not be executable.
  $<$<COMPILE_LANGUAGE:ASM>:-Wa,--noexecstack>)
target_compile_definitions(brimful_flags INTERFACE
  _GNU_SOURCE
  BRIMFUL_VERSION="${PROJECT_VERSION}"
  BRIMFUL_MIDDLE=${brimful_middle_${BRIMFUL_MIDDLE}}
  $<$<STREQUAL:${BRIMFUL_ARCH},generic>:BRIMFUL_ARCH_GENERIC=1>)

# The library keeps to branch target identification and pointer authentication, so that a program that does may link it.
# Older processors take these instructions for hints that say nothing.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  target_compile_options(brimful_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-mbranch-protection=standard>)
endif()

# The sanitizers go on everything, tests and allocator alike.
if(BRIMFUL_SANITIZE)
  add_compile_options(-fsanitize=${BRIMFUL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BRIMFUL_SANITIZE})
  if(BRIMFUL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The thread sanitizer does not see fences. Ours order a store before a load (who sees whom) and publish no
    # data, so it misses no happens-before edge by that.
    add_compile_options(-Wno-tsan)
    # What gcc puts in place of a call of these is not instrumented.
    add_compile_options(-fno-builtin-memset -fno-builtin-memcpy -fno-builtin-memmove)
  endif()
endif()

# What tells a fuzzer which way an input took; afl's compilers put it in by themselves.
if(BRIMFUL_FUZZ STREQUAL "libfuzzer")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
elseif(BRIMFUL_FUZZ STREQUAL "coverage")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fprofile-instr-generate> $<$<COMPILE_LANGUAGE:C,CXX>:-fcoverage-mapping>)
  add_link_options(-fprofile-instr-generate)
endif()
