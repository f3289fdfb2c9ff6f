# SPDX-License-Identifier: MIT
#
# Packages of others that only the observer, tests and examples use. The library is built without them, so a build that lacks one
# leaves out what needs it and says so; and it looks again once one is installed, without being configured by hand.
# A package puts its headers into an include folder, whose time of change then moves: as long as one is missing, the
# build depends on those folders. (A dependency on the missing file itself would configure at every build.)

set(brimful_include_folders "")
foreach(prefix IN LISTS CMAKE_PREFIX_PATH CMAKE_SYSTEM_PREFIX_PATH)
  if(IS_DIRECTORY ${prefix}/include)
    list(APPEND brimful_include_folders ${prefix}/include)
  endif()
endforeach()

# left_out(TEXT): what is left out for want of a package, and the packages.
function(left_out text)
  message(STATUS "Left out: ${text}")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${brimful_include_folders})
endfunction()

# A library that this machine runs is of no use to another one: there it is compiled from Debian's package of its source.
if(CMAKE_CROSSCOMPILING)
  if(BRIMFUL_TESTS AND EXISTS /usr/src/googletest/CMakeLists.txt)
    set(BUILD_GMOCK OFF)
    set(INSTALL_GTEST OFF)
    add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
    if(NOT TARGET GTest::gtest)
      add_library(GTest::gtest ALIAS gtest)
    endif()
    set(GTest_FOUND TRUE)
  endif()
  return()
endif()
find_package(GTest QUIET)
find_path(zstd_headers zstd.h)
find_path(lz4_headers lz4.h)
find_library(zstd_library zstd)
find_library(lz4_library lz4)
