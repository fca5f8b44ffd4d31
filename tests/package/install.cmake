# Installs the build, compiles the consumer against it with find_package, and runs it on a bundle and without one. Then
# moves the installation, whose program has to find the demo bundle beside itself.
# cmake -DBUILD=DIR -DSOURCE=DIR -DFLAGS=... -P install.cmake
set(work "${BUILD}/package")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit ${code}\n${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix")
run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/package" -B "${work}/build" -G Ninja -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/prefix/bin/lamplighter" --version)
run("${work}/build/consumer" "${SOURCE}/models/demo/bundle" "${work}/image.png"
    "${work}/sink.png" "${work}/trace.jsonl")
foreach(file image.png sink.png trace.jsonl)
  if(NOT EXISTS "${work}/${file}")
    message(FATAL_ERROR "the consumer wrote no ${file}")
  endif()
endforeach()
execute_process(COMMAND "${work}/build/consumer" "${work}/no-bundle" "${work}/none.png" "${work}/none.png"
                "${work}/none.jsonl"
                RESULT_VARIABLE code)
if(NOT code EQUAL 4)
  message(FATAL_ERROR "a missing bundle: exit ${code}, expected 4")
endif()
file(RENAME "${work}/prefix" "${work}/moved prefix")
execute_process(COMMAND "${work}/moved prefix/bin/lamplighter" inspect RESULT_VARIABLE code OUTPUT_VARIABLE output)
if(NOT code EQUAL 0 OR NOT output MATCHES "moved prefix/share/lamplighter/models/demo/bundle")
  message(FATAL_ERROR "the moved program does not find its bundle: exit ${code}\n${output}")
endif()
foreach(file share/doc/lamplighter/tools/README.md share/lamplighter/licenses/sentencepiece/LICENSE
        share/bash-completion/completions/lamplighter share/zsh/site-functions/_lamplighter share/man/man1/lamplighter.1)
  if(NOT EXISTS "${work}/moved prefix/${file}")
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
