# SPDX-License-Identifier: MIT
#
# The simulated machines of tests/topology: `topology` with the library as this build makes it, and in the release build
# `topology_traffic`, whose library is compiled as for the thread sanitizer but linked with our own hooks in place of its
# run time: that way every access of the library to memory is seen.

set(topology_folder ${PROJECT_SOURCE_DIR}/tests/topology)
set(topology_sources
  ${topology_folder}/census.cpp
  ${topology_folder}/machine.cpp
  ${topology_folder}/report.cpp
  ${topology_folder}/topology.cpp
  ${topology_folder}/traffic.cpp
  ${topology_folder}/workloads.cpp
  ${PROJECT_SOURCE_DIR}/tests/unit/fake_os.cpp)

function(add_topology name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${topology_folder} ${PROJECT_SOURCE_DIR}/tests/unit
    ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:brimful_flags,INTERFACE_COMPILE_DEFINITIONS>)
  target_link_libraries(${name} PRIVATE test_flags Threads::Threads)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
endfunction()

add_topology(topology ${topology_sources})
target_link_libraries(topology PRIVATE $<TARGET_FILE:brimful-test>)
add_dependencies(topology brimful-test)
register(NAME topology.thread COMMAND topology --cpus 64 --nodes 8 --rounds 60 LABELS topology)
if(BRIMFUL_ARCH STREQUAL "x86_64")
  register(NAME topology.percpu COMMAND topology --cpus 64 --nodes 8 --rounds 60 --front-end percpu LABELS topology)
endif()

if(shipped)
  add_topology(hold_times ${topology_folder}/hold_times.cpp)
  target_link_libraries(hold_times PRIVATE $<TARGET_FILE:brimful-test>)
  add_dependencies(hold_times brimful-test)

  file(GLOB generic_sequences ${PROJECT_SOURCE_DIR}/src/arch/generic/*.cpp)
  add_library(brimful_watched STATIC EXCLUDE_FROM_ALL ${brimful_common} ${brimful_native} ${generic_sequences})
  compile_together(brimful_watched)
  target_link_libraries(brimful_watched PUBLIC brimful_flags)
  target_compile_definitions(brimful_watched PUBLIC BRIMFUL_ARCH_GENERIC=1)
  # Calls of memset and memcpy stay calls, so that the linker can lead them to the hooks.
  target_compile_options(brimful_watched PRIVATE -fsanitize=thread -fno-builtin-memset -fno-builtin-memcpy)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(brimful_watched PRIVATE -Wno-tsan)
  endif()
  add_topology(topology_traffic ${topology_sources} ${topology_folder}/hooks.cpp)
  target_link_libraries(topology_traffic PRIVATE $<TARGET_FILE:brimful_watched>)
  target_link_options(topology_traffic PRIVATE
    -Wl,--wrap=memset,--wrap=memcpy,--wrap=_ZN7brimful5slots9make_slabEhjNS0_8ExpectedE)
  add_dependencies(topology_traffic brimful_watched)
  register(NAME topology.traffic COMMAND topology_traffic --cpus 64 --nodes 8 --rounds 30 LABELS topology)
endif()
