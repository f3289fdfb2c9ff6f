# SPDX-License-Identifier: MIT
#
# libbrimful-pools.a: the pools of src/pools/, which use neither the malloc nor an operating system.
#
#   libbrimful-pools.a           what programs link
#   libbrimful-pools-checked.a   the same with BRIMFUL_TLSF_CHECK: misuse of a TLSF pool is found at the call
#
# One member per source file: a program that uses TLSF alone links it alone. Compiled freestanding; nothing undefined but
# memcpy, memmove, memset and memcmp (tools/check_pool_symbols.py), host_linux.cpp apart.

file(GLOB_RECURSE brimful_pool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/pools/*.cpp)

foreach(pools IN ITEMS brimful-pools brimful-pools-checked)
  add_library(${pools} STATIC ${brimful_pool_sources})
  target_link_libraries(${pools} PUBLIC brimful_headers PRIVATE brimful_flags)
  set_target_properties(${pools} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  # Else gcc calls __aarch64_cas8_acq and its like, of libgcc, which asks at start-up what the processor has.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    target_compile_options(${pools} PRIVATE -mno-outline-atomics)
  endif()
endforeach()
target_compile_definitions(brimful-pools-checked PRIVATE BRIMFUL_TLSF_CHECK=1)
foreach(source IN LISTS brimful_pool_sources)
  if(NOT source MATCHES "/host_linux[.]cpp$")
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -ffreestanding)
  endif()
  if(source MATCHES "/tlsf/")
    # Two adjacent words stored as one vector have to be put together in a vector register first, which takes longer
    # than both stores, on the way of each free.
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -fno-tree-slp-vectorize)
  endif()
endforeach()
