# SPDX-License-Identifier: MIT
#
# Every program of tests/abi is compiled once and linked three times: dynamically without any mention of brimful (run with LD_PRELOAD),
# statically, and as static-pie, the latter two with libbrimful.a before libc. Each runs in both front ends.
# BRIMFUL_EXPECT makes a program fail when the allocator that answers is not brimful.
#
# tier:hardened takes other ways through malloc and free, so each preloaded program runs in it, too: with one front end by
# `make test`, with the other by `make test-long`.
#
# A source that can't be linked statically says so in a line `// no-static: reason`, and one whose run in tier:hardened is
# for `make test-long` alone says `// hardened-long: reason`.

set(abi_folder ${PROJECT_SOURCE_DIR}/tests/abi)
file(GLOB abi_sources CONFIGURE_DEPENDS ${abi_folder}/*.c ${abi_folder}/*.cpp)

function(add_abi_program name objects)
  add_executable(${name} $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/abi)
endfunction()

# Those that take seconds: CTest starts them first, and `make quick` leaves them out.
set(abi_slow address_space_limit fork_storm free_orders heap limit purge purge_burst purge_lightly resident signal_storm thread_storm)
add_custom_target(quick_programs)

function(register_abi name variant program)
  set(labels abi)
  set(cost 0)
  if(name IN_LIST abi_slow)
    set(cost 15)
  elseif(variant STREQUAL "preload")
    list(APPEND labels quick)
    add_dependencies(quick_programs ${program})
  endif()
  foreach(front_end percpu thread)
    register(NAME abi.${name}.${variant}.${front_end} COMMAND ${program} LABELS ${labels} COST ${cost}
      ENVIRONMENT BRIMFUL_EXPECT=1 BRIMFUL_CONF=front_end:${front_end} ${ARGN})
  endforeach()
endfunction()

function(register_hardened_abi name program front_end label)
  register(NAME abi.${name}.preload.${front_end}.hardened COMMAND ${program} LABELS ${label}
    ENVIRONMENT BRIMFUL_EXPECT=1 BRIMFUL_CONF=front_end:${front_end},tier:hardened
    LD_PRELOAD=${PROJECT_BINARY_DIR}/libbrimful.so)
endfunction()

# With every allocation sampled, and some of them: where a sampler could deadlock or fault (docs/design/0031).
set(abi_sampled sampled_anywhere signal_frees_huge)
function(register_sampled_abi name program)
  foreach(prof 1 4096)
    foreach(front_end percpu thread)
      register(NAME abi.${name}.preload.${front_end}.prof${prof} COMMAND ${program} LABELS abi
        ENVIRONMENT BRIMFUL_EXPECT=1 BRIMFUL_CONF=front_end:${front_end},prof:${prof}
        LD_PRELOAD=${PROJECT_BINARY_DIR}/libbrimful.so)
    endforeach()
  endforeach()
endfunction()

# With every small object guarded (docs/design/0040): some by `make test`, the others by `make test-long`, but for those that
# measure memory, which guards take, and one that is too slow for its time limit.
set(abi_guarded alignment errno_preserved fork_in_handler operator_new realloc_contents usable_size zero_and_null)
set(abi_not_guarded address_space_use c23_sized_free limit producer_consumer)
function(register_guarded_abi name program)
  set(label long)
  if(name IN_LIST abi_guarded)
    set(label abi)
  endif()
  foreach(front_end percpu thread)
    register(NAME abi.${name}.preload.${front_end}.guards COMMAND ${program} LABELS ${label}
      ENVIRONMENT BRIMFUL_EXPECT=1 BRIMFUL_CONF=front_end:${front_end},guards:1
      LD_PRELOAD=${PROJECT_BINARY_DIR}/libbrimful.so)
    set(label long)
  endforeach()
endfunction()

foreach(source IN LISTS abi_sources)
  get_filename_component(name ${source} NAME_WE)
  if(name MATCHES "^_")
    continue()
  endif()

  add_library(abi_${name}_objects OBJECT ${source})
  target_include_directories(abi_${name}_objects PRIVATE ${abi_folder})
  target_compile_options(abi_${name}_objects PRIVATE ${permissive} -fPIE)
  target_link_libraries(abi_${name}_objects PRIVATE test_flags)

  add_abi_program(abi_${name} abi_${name}_objects)
  target_link_options(abi_${name} PRIVATE -pie)
  add_dependencies(abi_${name} brimful)
  register_abi(${name} preload abi_${name} LD_PRELOAD=${PROJECT_BINARY_DIR}/libbrimful.so)
  file(STRINGS ${source} hardened_long REGEX "hardened-long:")
  set(hardened_label abi)
  if(hardened_long)
    set(hardened_label long)
  endif()
  register_hardened_abi(${name} abi_${name} percpu ${hardened_label})
  register_hardened_abi(${name} abi_${name} thread long)
  if(NOT name IN_LIST abi_not_guarded)
    register_guarded_abi(${name} abi_${name})
  endif()
  if(name IN_LIST abi_sampled)
    register_sampled_abi(${name} abi_${name})
  endif()

  file(STRINGS ${source} no_static REGEX "no-static:")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  if(no_static)
    continue()
  endif()
  foreach(variant static static-pie)
    set(program abi_${name}_${variant})
    add_abi_program(${program} abi_${name}_objects)
    add_dependencies(${program} brimful_static)
    if(variant STREQUAL "static")
      target_link_options(${program} PRIVATE -static -no-pie)
    else()
      target_link_options(${program} PRIVATE -static-pie)
    endif()
    target_link_libraries(${program} PRIVATE $<TARGET_FILE:brimful_static>)
    set_target_properties(${program} PROPERTIES LINK_DEPENDS $<TARGET_FILE:brimful_static>)
    register_abi(${name} ${variant} ${program})
  endforeach()
endforeach()
