# SPDX-License-Identifier: MIT
#
# brimful-observer: the program that looks at processes and cores from outside. It is a program of its own, with the C++ run
# time and libraries that the allocator must not have.

find_path(brimful_json nlohmann/json.hpp)
if(NOT brimful_json)
  message(STATUS "brimful-observer is not built: nlohmann-json3-dev is missing")
  return()
endif()
find_package(Threads REQUIRED)

file(GLOB_RECURSE observer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/observer/*.cpp)
add_executable(brimful-observer ${observer_sources})
set_target_properties(brimful-observer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/observer)
target_include_directories(brimful-observer PRIVATE ${PROJECT_SOURCE_DIR}/observer)
target_compile_definitions(brimful-observer PRIVATE _GNU_SOURCE)
target_compile_options(brimful-observer PRIVATE -Wconversion -Wno-sign-conversion)
target_link_libraries(brimful-observer PRIVATE brimful_warnings Threads::Threads)
install(TARGETS brimful-observer DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/brimful)
