include(Torch)
if(LAMPLIGHTER_PROGRAMS)
  find_package(CLI11 CONFIG REQUIRED)
endif()
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)

find_path(STB_INCLUDE_DIR stb_image_write.h PATH_SUFFIXES stb REQUIRED)
add_library(stb INTERFACE IMPORTED)
target_include_directories(stb SYSTEM INTERFACE "${STB_INCLUDE_DIR}")

# Optional: WebP files.
find_path(WEBP_INCLUDE_DIR webp/encode.h)
find_library(WEBP_LIBRARY webp)
if(WEBP_INCLUDE_DIR AND WEBP_LIBRARY)
  add_library(webp INTERFACE IMPORTED)
  target_include_directories(webp SYSTEM INTERFACE "${WEBP_INCLUDE_DIR}")
  target_link_libraries(webp INTERFACE "${WEBP_LIBRARY}")
endif()

# Static and hidden: a distribution's shared SentencePiece exports flags that overwrite LibTorch's memory.
add_library(sentencepiece STATIC IMPORTED)
set_target_properties(sentencepiece PROPERTIES
  IMPORTED_LOCATION "${LAMPLIGHTER_SENTENCEPIECE}/libsentencepiece.a")
target_include_directories(sentencepiece SYSTEM INTERFACE "${LAMPLIGHTER_SENTENCEPIECE}/include")
target_link_options(sentencepiece INTERFACE -Wl,--exclude-libs,libsentencepiece.a)
if(SKBUILD AND NOT EXISTS "${LAMPLIGHTER_SENTENCEPIECE}/libsentencepiece.a")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "LAMPLIGHTER_PYTHON=${LAMPLIGHTER_PYTHON}"
    "${PROJECT_SOURCE_DIR}/scripts/sentencepiece.sh" "${LAMPLIGHTER_SENTENCEPIECE}")
endif()
if(NOT EXISTS "${LAMPLIGHTER_SENTENCEPIECE}/libsentencepiece.a")
  message(FATAL_ERROR "SentencePiece not found in ${LAMPLIGHTER_SENTENCEPIECE}; run scripts/setup.sh")
endif()
