# SPDX-License-Identifier: MIT
#
# cmake --install: libraries, brimful.o, headers, brimful.pc and whatever man pages docs/man/ holds.

include(GNUInstallDirs)
if(TARGET brimful)
  install(TARGETS brimful brimful_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_BINARY_DIR}/brimful.o DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/brimful DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  configure_file(cmake/brimful.pc.in brimful.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/brimful.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(GLOB brimful_man CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
  install(FILES ${brimful_man} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
