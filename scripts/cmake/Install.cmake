# find_package(lamplighter) gives lamplighter::lamplighter: the public headers and the shared library. Torch is
# needed when a program runs, not when it is compiled.
include(CMakePackageConfigHelpers)
set(package_dir lib/cmake/lamplighter)

install(TARGETS lamplighter lamplighter_ops EXPORT lamplighterTargets LIBRARY DESTINATION lib)
install(TARGETS lamplighter_cli lamplighter_engine RUNTIME DESTINATION bin)
install(DIRECTORY include/lamplighter DESTINATION include)
install(FILES "${PROJECT_BINARY_DIR}/generated/lamplighter/version.h" DESTINATION include/lamplighter)
install(EXPORT lamplighterTargets NAMESPACE lamplighter:: DESTINATION ${package_dir}
        FILE lamplighterConfig.cmake)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/lamplighterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/lamplighterConfigVersion.cmake" LICENSE DESTINATION ${package_dir})
