# What `cmake --install` copies. Component `program`: the programs, the demo bundle, documents and licences, enough to
# run from any folder. Component `development`: headers, the shared library and a CMake package.
# find_package(lamplighter) gives lamplighter::lamplighter; Torch is needed when a program runs, not when it is compiled.
include(CMakePackageConfigHelpers)
set(package_dir lib/cmake/lamplighter)

install(TARGETS lamplighter_cli lamplighter_engine RUNTIME DESTINATION bin COMPONENT program)
install(TARGETS lamplighter_ops EXPORT lamplighterTargets LIBRARY DESTINATION lib COMPONENT program)
install(DIRECTORY models/demo/bundle DESTINATION share/lamplighter/models/demo COMPONENT program)
install(FILES LICENSE DESTINATION share/lamplighter/licenses/lamplighter COMPONENT program)
install(FILES "${LAMPLIGHTER_SENTENCEPIECE}/LICENSE" DESTINATION share/lamplighter/licenses/sentencepiece
        COMPONENT program)
install_shell_files(share program)
# Documents lie as in the repository, so that their links work.
file(GLOB_RECURSE documents RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
  kernels/*.md models/*.md scripts/results/*.md src/*.md tests/*.md tools/*.md)
file(GLOB images RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
  models/demo/*.png models/demo/*.jpg models/mar/demo/*.jpg)
foreach(document IN LISTS documents images ITEMS BENCHMARKS.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md)
  get_filename_component(folder "${document}" DIRECTORY)
  install(FILES "${document}" DESTINATION "share/doc/lamplighter/${folder}" COMPONENT program)
endforeach()

install(TARGETS lamplighter EXPORT lamplighterTargets LIBRARY DESTINATION lib COMPONENT development)
install(DIRECTORY include/lamplighter DESTINATION include COMPONENT development)
install(FILES "${PROJECT_BINARY_DIR}/generated/lamplighter/version.h" DESTINATION include/lamplighter
        COMPONENT development)
install(EXPORT lamplighterTargets NAMESPACE lamplighter:: DESTINATION ${package_dir}
        FILE lamplighterConfig.cmake COMPONENT development)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/lamplighterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/lamplighterConfigVersion.cmake" LICENSE DESTINATION ${package_dir}
        COMPONENT development)
