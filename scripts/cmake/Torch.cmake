# Defines the imported target `torch` for a wheel or a LibTorch archive. find_package(Torch) is not used: with a CUDA
# wheel it requires a toolkit, and it adds foreign flags and run paths to every target.
set(TORCH_ROOT "" CACHE PATH "Folder with Torch's include/ and lib/; default: the torch package of .venv or python3")
if(SKBUILD)
  set(LAMPLIGHTER_PYTHON "${Python3_EXECUTABLE}" CACHE FILEPATH "" FORCE) # pip's
endif()
if(NOT TORCH_ROOT)
  find_program(LAMPLIGHTER_PYTHON NAMES python3 PATHS "${PROJECT_SOURCE_DIR}/.venv/bin" NO_DEFAULT_PATH)
  find_program(LAMPLIGHTER_PYTHON NAMES python3 REQUIRED)
  execute_process(
    COMMAND "${LAMPLIGHTER_PYTHON}" -c
            "import importlib.util, os; s = importlib.util.find_spec('torch'); print(os.path.dirname(s.origin) if s else '', end='')"
    OUTPUT_VARIABLE torch_dir)
  set(TORCH_ROOT "${torch_dir}" CACHE PATH "" FORCE)
endif()
set(torch_version_header "${TORCH_ROOT}/include/torch/headeronly/version.h")
if(NOT EXISTS "${torch_version_header}")
  message(FATAL_ERROR "Torch not found (TORCH_ROOT='${TORCH_ROOT}'); run scripts/setup.sh or pass -DTORCH_ROOT=DIR")
endif()
file(STRINGS "${torch_version_header}" version_lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9]*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" TORCH_VERSION
       "${version_lines}")
if(TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "Torch ${TORCH_VERSION} in ${TORCH_ROOT} is too old: 2.11 or newer is needed")
endif()
message(STATUS "Torch ${TORCH_VERSION}: ${TORCH_ROOT}")

add_library(torch INTERFACE IMPORTED)
target_include_directories(torch SYSTEM INTERFACE
  "${TORCH_ROOT}/include" "${TORCH_ROOT}/include/torch/csrc/api/include")
# Makes Torch headers include only the operators that they use.
target_compile_definitions(torch INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_libraries(torch INTERFACE "${TORCH_ROOT}/lib/libtorch_cpu.so" "${TORCH_ROOT}/lib/libc10.so")
set(TORCH_RUNTIME_DIRS "${TORCH_ROOT}/lib")
