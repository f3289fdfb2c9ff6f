# SPDX-License-Identifier: MIT
#
# brimful-observer: the program that looks at processes and cores from outside. It is a program of its own, with the C++ run
# time and libraries that the allocator must not have: elfutils' libdw (unwind tables, names), libiberty (demangling),
# nlohmann-json. Without them it is left out, and the commands that need it say what to install.

find_path(brimful_json nlohmann/json.hpp)
find_path(brimful_libdw_headers elfutils/libdwfl.h)
find_path(brimful_libiberty_headers libiberty/demangle.h)
find_library(brimful_libdw dw)
find_library(brimful_libelf elf)
find_library(brimful_libiberty iberty)
if(NOT (brimful_json AND brimful_libdw_headers AND brimful_libiberty_headers AND brimful_libdw AND brimful_libelf AND brimful_libiberty))
  left_out("brimful-observer (nlohmann-json3-dev, libdw-dev, libiberty-dev)")
  return()
endif()
find_package(Threads REQUIRED)

file(GLOB_RECURSE observer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/observer/*.cpp)
set(observer_main ${PROJECT_SOURCE_DIR}/observer/main.cpp)
list(REMOVE_ITEM observer_sources ${observer_main})
add_library(observer_parts STATIC EXCLUDE_FROM_ALL ${observer_sources}) # tests/observer/ has them too
target_include_directories(observer_parts PUBLIC ${PROJECT_SOURCE_DIR}/observer ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(observer_parts PUBLIC _GNU_SOURCE)
target_compile_options(observer_parts PRIVATE -Wconversion -Wno-sign-conversion)
target_link_libraries(observer_parts PUBLIC ${brimful_libdw} ${brimful_libelf} ${brimful_libiberty} Threads::Threads)
target_link_libraries(observer_parts PRIVATE brimful_warnings)
add_executable(brimful-observer ${observer_main})
target_link_libraries(brimful-observer PRIVATE brimful_warnings observer_parts)
add_dependencies(command_tools brimful-observer)
install(TARGETS brimful-observer DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/brimful)
install(FILES ${PROJECT_SOURCE_DIR}/observer/gdb/brimful_address.py DESTINATION ${CMAKE_INSTALL_DATADIR}/brimful/gdb)
