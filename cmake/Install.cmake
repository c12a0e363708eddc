# What `cmake --install` puts in place: the binary, one library and header set a room, and the package
# description for find_package(einmal).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/einmal)
install(EXPORT einmal-targets NAMESPACE einmal:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/einmal-config.cmake.in
  ${PROJECT_BINARY_DIR}/einmal-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/einmal-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/einmal-config.cmake ${PROJECT_BINARY_DIR}/einmal-config-version.cmake
  DESTINATION ${package_dir})
