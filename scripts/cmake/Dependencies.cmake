include(Torch)
if(LAMPLIGHTER_PROGRAMS)
  find_package(CLI11 CONFIG REQUIRED)
endif()
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)

find_path(STB_INCLUDE_DIR stb_image_write.h PATH_SUFFIXES stb REQUIRED)
add_library(stb INTERFACE IMPORTED)
target_include_directories(stb SYSTEM INTERFACE "${STB_INCLUDE_DIR}")

# Optional: WebP files, and JPEG files that are read.
find_path(WEBP_INCLUDE_DIR webp/encode.h)
find_library(WEBP_LIBRARY webp)
find_path(JPEG_INCLUDE_DIR jpeglib.h)
find_library(JPEG_LIBRARY jpeg)
foreach(name IN ITEMS WEBP JPEG)
  if(${name}_INCLUDE_DIR AND ${name}_LIBRARY)
    string(TOLOWER ${name} library)
    add_library(${library} INTERFACE IMPORTED)
    target_include_directories(${library} SYSTEM INTERFACE "${${name}_INCLUDE_DIR}")
    target_link_libraries(${library} INTERFACE "${${name}_LIBRARY}")
  endif()
endforeach()
# The ones that are there, for a target of the calling folder with the sources of src/image.
function(link_image_libraries target)
  if(TARGET webp)
    target_link_libraries(${target} PRIVATE webp)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/image/webp.cpp" APPEND PROPERTY
      COMPILE_DEFINITIONS LAMPLIGHTER_WITH_WEBP=1)
  endif()
  if(TARGET jpeg)
    target_link_libraries(${target} PRIVATE jpeg)
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/image/jpeg_pixels.cpp" APPEND PROPERTY
      COMPILE_DEFINITIONS LAMPLIGHTER_WITH_JPEG=1)
  endif()
endfunction()

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
