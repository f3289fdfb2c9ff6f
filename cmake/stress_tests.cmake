# SPDX-License-Identifier: MIT
#
# Stress programs call the brimful_* names, so the same source serves every build. In the release build they are
# linked with libbrimful.a and therefore also *run on* brimful (their vectors and strings too); in the others they
# are linked with the test library, and their own memory is the system's or the sanitizer's.

set(stress_folder ${PROJECT_SOURCE_DIR}/tests/stress)
set_property(SOURCE ${stress_folder}/report.cpp PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)  # its kMaxThreads is another
add_support(stress_support ${stress_folder} "_stress[.]cpp$")

file(GLOB stress_sources CONFIGURE_DEPENDS ${stress_folder}/*_stress.cpp)
foreach(source IN LISTS stress_sources)
  get_filename_component(name ${source} NAME_WE)
  # These two interrupt restartable sections; the portable sequences have none.
  if(BRIMFUL_ARCH STREQUAL "generic" AND name MATCHES "^(rseq|single_step)_")
    continue()
  endif()
  # A second free that comes late reads the header of a slab that the first one gives back.
  if(BRIMFUL_SANITIZE MATCHES "thread" AND name MATCHES "^double_free_")
    continue()
  endif()
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${stress_folder} ${PROJECT_SOURCE_DIR}/src)
  if(shipped AND NOT name MATCHES "^double_free_")
    target_link_libraries(${name} PRIVATE test_flags stress_support $<TARGET_FILE:brimful_static> Threads::Threads)
    add_dependencies(${name} brimful_static)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS $<TARGET_FILE:brimful_static>)
  else()
    # The whole of it: nothing calls what a constructor registers (the handlers of fork, statistics at exit), so from an
    # archive of many members it would be missing, and a child of fork() would wait for locks of threads it has not.
    target_link_libraries(${name} PRIVATE test_flags stress_support
      "-Wl,--whole-archive,$<TARGET_FILE:brimful-test>,--no-whole-archive" Threads::Threads)
    add_dependencies(${name} brimful-test)
    # A dependency orders the builds, no more: a program that is linked with a file is made anew when that is.
    set_target_properties(${name} PROPERTIES LINK_DEPENDS $<TARGET_FILE:brimful-test>)
  endif()

  set(front_ends percpu thread)
  if(BRIMFUL_SANITIZE)
    # The portable sequences are not restartable, so there is only one front end.
    set(front_ends thread)
  endif()
  foreach(front_end IN LISTS front_ends)
    set(label stress)
    # Half a minute of processor each: `make test` steps one front end as it is shipped and the other one with its assertions.
    if(name STREQUAL "single_step_stress")
      if((shipped AND front_end STREQUAL "thread") OR (NOT shipped AND front_end STREQUAL "percpu"))
        set(label long)
      endif()
    endif()
    set(conf front_end:${front_end})
    # It asks every thread by a signal where it is, and the background thread takes none.
    if(name STREQUAL "rseq_injection_stress")
      string(APPEND conf ",background_thread:0")
    endif()
    register(NAME stress.${name}.${front_end} COMMAND ${name} LABELS ${label} COST 20 ENVIRONMENT BRIMFUL_CONF=${conf})
    register(NAME stress.${name}.${front_end}.long COMMAND ${name} --long LABELS long TIMEOUT 7200
      ENVIRONMENT BRIMFUL_CONF=${conf})
    # The hardened tier takes other ways through malloc and free.
    if(name MATCHES "^(oracle|heap|double_free_pairs|double_free_survived|rseq_injection)_stress$")
      set(arguments)
      # It ends by its time there, not by what it has seen.
      if(name STREQUAL "double_free_pairs_stress")
        set(arguments --seconds 8)
      endif()
      register(NAME stress.${name}.${front_end}.hardened COMMAND ${name} ${arguments} LABELS stress COST 20
        ENVIRONMENT BRIMFUL_CONF=front_end:${front_end},tier:hardened)
      register(NAME stress.${name}.${front_end}.hardened.long COMMAND ${name} --long LABELS long TIMEOUT 7200
        ENVIRONMENT BRIMFUL_CONF=front_end:${front_end},tier:hardened)
    endif()
    # Guarded and sampled objects are freed by ways of their own.
    if(name STREQUAL "double_free_survived_stress")
      register(NAME stress.${name}.${front_end}.guarded COMMAND ${name} --ops 20 LABELS stress COST 5
        ENVIRONMENT BRIMFUL_CONF=front_end:${front_end},guards:30,prof:16K)
    endif()
  endforeach()
endforeach()

# Many more threads than CPUs, and with them a fork every few rounds of the host.
foreach(front_end IN LISTS front_ends)
  register(NAME stress.oracle_stress.${front_end}.72_threads.long LABELS long TIMEOUT 7200
    COMMAND oracle_stress --no-self-test --threads 72 --ops 20000000
    ENVIRONMENT BRIMFUL_CONF=front_end:${front_end})
endforeach()
