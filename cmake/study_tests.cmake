# SPDX-License-Identifier: MIT
#
# The middle layers for study (docs/design/0010), tested from the release build: `make lib-locked` must build them without a
# warning, then programs of tests/abi, tests/misuse and the oracle run on them. They have one way to find memory, so
# `front_end` is set only to keep the programs from running twice.
#
# Left out: signal_storm asks that a handler is refused rarely, but here each malloc holds a lock, and handlers land on it;
# of tests/misuse what asks for a front end by name, and races that say nothing about small objects.

file(GLOB study_abi CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/abi/*.c ${PROJECT_SOURCE_DIR}/tests/abi/*.cpp)
list(TRANSFORM study_abi REPLACE ".*/([a-z0-9_]+)[.].*" "\\1")
list(REMOVE_ITEM study_abi signal_storm)
set(study_abi_short alignment c23_sized_free calloc_zero errno_preserved fork_storm introspection operator_new
    thread_exit thread_local_destructors usable_size zero_and_null)
set(study_misuse double_delete double_free_interleaved double_free_remote double_free_reused double_free_second
    double_free_thread free_interior free_sized_wrong free_stack free_window realloc_bad usable_size_bad)

set(study_builds ${PROJECT_SOURCE_DIR}/build)
register(NAME study.build LABELS study TIMEOUT 900 COST 100
  COMMAND make --no-print-directory -C ${PROJECT_SOURCE_DIR} lib-locked JOBS=2 "LOCKED_TARGETS=brimful oracle_stress")
set_tests_properties(${build_name}.study.build PROPERTIES FIXTURES_SETUP study)

# register_study(NAME … as register()): a test that runs on the library of build/study-${study}.
function(register_study)
  cmake_parse_arguments(arg "" "NAME" "" ${ARGN})
  register(${ARGN} ENVIRONMENT BRIMFUL_LIB=${study_builds}/study-${study}/libbrimful.so BRIMFUL_CONF=front_end:thread)
  set_tests_properties(${build_name}.${arg_NAME} PROPERTIES FIXTURES_REQUIRED study)
endfunction()

foreach(study class global)
  set(run_abi ${python} ${PROJECT_SOURCE_DIR}/tests/abi/run.py --how preload --front-end thread)
  set(oracle ${study_builds}/study-${study}/tests/oracle_stress --no-self-test)
  register_study(NAME study.${study}.abi COMMAND ${run_abi} ${study_abi_short} LABELS study)
  register_study(NAME study.${study}.abi.long COMMAND ${run_abi} ${study_abi} LABELS long TIMEOUT 1800)
  register_study(NAME study.${study}.misuse LABELS study
    COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/misuse/run.py ${study_misuse})
  register_study(NAME study.${study}.oracle_stress COMMAND ${oracle} LABELS study)
  register_study(NAME study.${study}.oracle_stress.long COMMAND ${oracle} --ops 20000000 LABELS long TIMEOUT 7200)
endforeach()
