# SPDX-License-Identifier: MIT
#
# cmake --install: libraries, brimful.o, headers, pkg-config files, what share/ and docs/man/ hold.

include(GNUInstallDirs)
if(TARGET brimful)
  install(TARGETS brimful brimful_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_BINARY_DIR}/brimful.o DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/brimful DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  configure_file(cmake/brimful.pc.in brimful.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/brimful.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  set(brimful-pools_description "Memory pools that need no operating system: TLSF, page pool, handle pool")
  set(brimful-pools-checked_description "${brimful-pools_description}; misuse of TLSF is found at the call")
  foreach(pools IN ITEMS brimful-pools brimful-pools-checked)
    set(pools_description "${${pools}_description}")
    configure_file(cmake/brimful-pools.pc.in ${pools}.pc @ONLY)
    install(TARGETS ${pools} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(FILES ${PROJECT_BINARY_DIR}/${pools}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
  file(GLOB brimful_man CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
  install(FILES share/schema/brimful.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/brimful)
  install(FILES share/grafana/brimful.json DESTINATION ${CMAKE_INSTALL_DATADIR}/brimful RENAME grafana-dashboard.json)
  install(FILES ${brimful_man} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
