# SPDX-License-Identifier: MIT
#
# The libraries.
#
#   brimful_inner + brimful_outer ──► libbrimful.so      (preload or link; exports what src/abi/export.map lists)
#          │                 └─ ld -r ──► brimful.o ──► libbrimful.a
#          └────────────────────────────► brimful-test    (every symbol within reach, without the interposed names)
#
# brimful_inner is compiled once for all of them. brimful_outer is what knows the standard names: src/abi/, and src/arch/,
# where malloc and free may stand on the fast paths themselves.
#
# libbrimful.a holds ONE member. With one member per source, a static link takes only the members that
# resolve something undefined at that moment: malloc from us, then a late reference to free from libc's own
# archive, and with it libc's malloc: "multiple definition" at best, two heaps at worst. One member means all
# entry points or none. It also lets us make the internal symbols local, which an archive can't.

file(GLOB_RECURSE brimful_common CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
list(FILTER brimful_common EXCLUDE REGEX "/src/(arch|abi|pools)/")
# The parts of slots/ that differ between the middle layers.
if(BRIMFUL_MIDDLE STREQUAL "contexts")
  list(FILTER brimful_common EXCLUDE REGEX "/src/slots/locked/")
else()
  list(FILTER brimful_common EXCLUDE REGEX "/src/slots/(background|free|free_pages|magazine|reclaim|refill|thread)[.]cpp$")
endif()
file(GLOB brimful_arch CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/arch/${BRIMFUL_ARCH}/*.cpp
     ${PROJECT_SOURCE_DIR}/src/arch/${BRIMFUL_ARCH}/*.S)
file(GLOB brimful_native CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/abi/native_*.cpp)
file(GLOB brimful_interpose CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/abi/*.cpp)
list(REMOVE_ITEM brimful_interpose ${brimful_native})

set(brimful_core ${brimful_common} ${brimful_arch} ${brimful_native})
if(NOT brimful_core)
  message(FATAL_ERROR "no sources under src/")
endif()

# Where leaks:exit finds the observer, unless BRIMFUL_OBSERVER says so. Said anew for each folder (see below).
include(GNUInstallDirs)
macro(tell_where_the_observer_is)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/debug/leaks_at_exit.cpp PROPERTY COMPILE_DEFINITIONS
    BRIMFUL_OBSERVER_PATH="${CMAKE_INSTALL_FULL_LIBEXECDIR}/brimful/brimful-observer")
endmacro()
tell_where_the_observer_is()

add_library(brimful_inner OBJECT ${brimful_common})
target_link_libraries(brimful_inner PRIVATE brimful_flags)

# Without malloc itself: a unit test's own allocations stay with the system's allocator, so that a broken layer fails its
# test and not the test framework.
add_library(brimful-test STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:brimful_inner> ${brimful_arch} ${brimful_native})
target_link_libraries(brimful-test PUBLIC brimful_flags)

set_target_properties(brimful_inner PROPERTIES
  POSITION_INDEPENDENT_CODE ON
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)

# What is not shipped is compiled a dozen files at a time, in a third of the time. Two files that give one name of their
# own two meanings can't be read together: these have such names (a compiler's "redefinition" here means one more). Said
# anew for each target, because a property of a source holds in one folder only.
function(compile_together target)
  tell_where_the_observer_is()
  foreach(source abi/native_statistics alloc/heaps debug/leaks_at_exit pages/free_ranges slots/background
      slots/locked/locked slots/magazine slots/refill
      slots/thread slots/user_heap)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/${source}.cpp PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
endfunction()
if(BRIMFUL_SANITIZE OR NOT BRIMFUL_MIDDLE STREQUAL "contexts" OR BRIMFUL_TOGETHER)
  compile_together(brimful_inner)
  set(brimful_small OFF)
else()
  set(brimful_small ON)
endif()

# A sanitizer build has only the test library: a shared library that holds a sanitizer's run time is of no use.
if(BRIMFUL_SANITIZE)
  return()
endif()

add_library(brimful_outer OBJECT ${brimful_arch} ${brimful_native})
if(BRIMFUL_INTERPOSE)
  target_sources(brimful_outer PRIVATE ${brimful_interpose})
  target_compile_definitions(brimful_outer PRIVATE BRIMFUL_INTERPOSE=1)
endif()
target_link_libraries(brimful_outer PRIVATE brimful_flags)
set_target_properties(brimful_outer PROPERTIES
  POSITION_INDEPENDENT_CODE ON
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
set(brimful_objects $<TARGET_OBJECTS:brimful_inner> $<TARGET_OBJECTS:brimful_outer>)

# The nothrow forms of operator new catch what a new-handler throws; the C++ run time stays weak (see the file).
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/abi/operators.cpp PROPERTIES COMPILE_OPTIONS -fexceptions)
# What runs once, or when somebody asks, is built small: the kernel maps a library's file 64 KiB at a time, and each page of
# it counts as resident in every process.
file(GLOB brimful_cold CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/config/*.cpp ${PROJECT_SOURCE_DIR}/src/os/*.cpp ${PROJECT_SOURCE_DIR}/src/stats/*.cpp
  ${PROJECT_SOURCE_DIR}/src/debug/leaks_at_exit.cpp ${PROJECT_SOURCE_DIR}/src/control/*.cpp
  ${PROJECT_SOURCE_DIR}/src/abi/native_control.cpp ${PROJECT_SOURCE_DIR}/src/abi/jemalloc.cpp
  ${PROJECT_SOURCE_DIR}/src/abi/introspection.cpp ${PROJECT_SOURCE_DIR}/src/abi/native_heaps.cpp
  ${PROJECT_SOURCE_DIR}/src/abi/native_statistics.cpp ${PROJECT_SOURCE_DIR}/src/meta/misuse.cpp
  ${PROJECT_SOURCE_DIR}/src/pages/backing.cpp ${PROJECT_SOURCE_DIR}/src/pages/hugetlb.cpp
  ${PROJECT_SOURCE_DIR}/src/pages/limit.cpp ${PROJECT_SOURCE_DIR}/src/pages/nodes.cpp
  ${PROJECT_SOURCE_DIR}/src/pages/pressure.cpp ${PROJECT_SOURCE_DIR}/src/pages/window.cpp
  ${PROJECT_SOURCE_DIR}/src/slots/background.cpp ${PROJECT_SOURCE_DIR}/src/slots/fork.cpp
  ${PROJECT_SOURCE_DIR}/src/slots/reclaim.cpp ${PROJECT_SOURCE_DIR}/src/slots/start.cpp
  ${PROJECT_SOURCE_DIR}/src/slots/thread.cpp ${PROJECT_SOURCE_DIR}/src/slots/free_pages.cpp
  ${PROJECT_SOURCE_DIR}/src/pages/decay.cpp ${PROJECT_SOURCE_DIR}/src/pages/purger.cpp)
# Files with options of their own are not compiled together.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND brimful_small)
  set_property(SOURCE ${brimful_cold} APPEND_STRING PROPERTY COMPILE_FLAGS " -Os")
endif()

# CMake adds the C++ run time to whatever holds C++ objects when the C driver links it.
set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "")
set(CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES "")

set(brimful_export_map ${PROJECT_SOURCE_DIR}/src/abi/export.map)
add_library(brimful SHARED ${brimful_objects})
set_target_properties(brimful PROPERTIES
  LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION}
  SOVERSION 1
  LINK_DEPENDS ${brimful_export_map})
target_link_options(brimful PRIVATE
  -static-libgcc
  -Wl,--version-script=${brimful_export_map}
  # Nothing undefined but what libc has, and all of it bound at load: a lazily bound call inside malloc runs
  # the dynamic linker, which may itself allocate.
  -Wl,-z,defs -Wl,-z,now -Wl,-z,relro
  # Once loaded it stays: fork handlers, thread-exit keys and live objects lead back into it.
  -Wl,-z,nodelete
  # Our own calls of malloc stay inside, without a jump through the procedure linkage table.
  -Wl,-Bsymbolic
  # The sections of BRIMFUL_ZEROS_… in their order (base/compiler.h).
  -Wl,--sort-section=name
  # Code and constants in one mapping: two calls less at each start, and fewer faults, for the kernel maps a file 64 KiB at a time.
  -Wl,-z,noseparate-code
  -Wl,--build-id -Wl,--gc-sections -Wl,--hash-style=gnu)
target_include_directories(brimful INTERFACE ${PROJECT_SOURCE_DIR}/include)

# The export map as objcopy's keep list: one name a line.
file(STRINGS ${brimful_export_map} brimful_export_lines REGEX "^ +[A-Za-z_][A-Za-z0-9_]*;")
list(TRANSFORM brimful_export_lines REPLACE "^ +([A-Za-z0-9_]+);.*" "\\1")
list(JOIN brimful_export_lines "\n" brimful_keep)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/keep-global.txt CONTENT "${brimful_keep}\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${brimful_export_map})

# --force-group-allocation dissolves the COMDAT groups of inline functions: their signatures become local
# symbols, and a program's own copy of the same group must not replace (or discard) ours.
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/brimful.o
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,--force-group-allocation
          -o ${PROJECT_BINARY_DIR}/brimful.o ${brimful_objects}
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${PROJECT_BINARY_DIR}/keep-global.txt
          ${PROJECT_BINARY_DIR}/brimful.o
  DEPENDS ${brimful_objects} ${PROJECT_BINARY_DIR}/keep-global.txt
  COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Linking brimful.o")
add_custom_target(brimful_relocatable ALL DEPENDS ${PROJECT_BINARY_DIR}/brimful.o)

set_source_files_properties(${PROJECT_BINARY_DIR}/brimful.o PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(brimful_static STATIC ${PROJECT_BINARY_DIR}/brimful.o)
add_dependencies(brimful_static brimful_relocatable)
set_target_properties(brimful_static PROPERTIES OUTPUT_NAME brimful LINKER_LANGUAGE C)
target_include_directories(brimful_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
