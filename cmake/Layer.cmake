# tessera_precompiled(TARGET): the headers that nearly every file includes, parsed once for all targets: without it a
# build from nothing takes almost twice as long.
function(tessera_precompiled target)
  if(target STREQUAL "tessera_base")
    target_precompile_headers(tessera_base PRIVATE <base/precompiled.h>)
    target_compile_options(tessera_base PRIVATE -fpch-preprocess)
  else()
    target_precompile_headers(${target} REUSE_FROM tessera_base)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# tessera_layer(NAME [PUBLIC libs...]): one src/ folder as a static library `tessera_NAME` with all its *.cpp but tests,
# and its *_test.cpp as one test program `NAME_test`.
function(tessera_layer name)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  set(tests ${files})
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(NOT files)
    add_library(tessera_${name} INTERFACE)
    target_link_libraries(tessera_${name} INTERFACE tessera_flags ${ARGN})
  else()
    tessera_units(files ${name} ${files})
    add_library(tessera_${name} STATIC ${files})
    target_link_libraries(tessera_${name} PUBLIC tessera_flags ${ARGN})
    tessera_precompiled(tessera_${name})
  endif()
  tessera_layer_tests(${name} ${tests})
endfunction()

# tessera_plugin_layer(NAME TYPE [libs...]): a folder whose *.cpp are its registry; shared code of the folder lies in
# NAME/common/*.cpp.
function(tessera_plugin_layer name type)
  file(GLOB common CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/common/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*_test.cpp)
  list(APPEND tests_common ${common})
  list(FILTER tests_common INCLUDE REGEX "_test\\.cpp$")
  list(FILTER common EXCLUDE REGEX "_test\\.cpp$")
  tessera_units(common ${name}_common ${common})
  add_library(tessera_${name} STATIC ${common})
  tessera_plugin_folder(tessera_${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${type} ${name} "${name}/${name}.h")
  target_link_libraries(tessera_${name} PUBLIC tessera_flags ${ARGN})
  tessera_precompiled(tessera_${name})
  tessera_layer_tests(${name} ${tests} ${tests_common})
endfunction()

# The tests' own headers come on top: the first tests hold them for all.
function(tessera_precompiled_tests target)
  get_property(holder GLOBAL PROPERTY TESSERA_PRECOMPILED_TESTS)
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  if(holder)
    target_precompile_headers(${target} REUSE_FROM ${holder})
  else()
    set_property(GLOBAL PROPERTY TESSERA_PRECOMPILED_TESTS ${target})
    get_target_property(headers tessera_base PRECOMPILE_HEADERS)
    target_precompile_headers(${target} PRIVATE ${headers} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()

# What defines source_folder() (base/source_folder.h): the target tessera_source_folder.
function(tessera_source_folder)
  if(TARGET tessera_source_folder)
    return()
  endif()
  set(file ${CMAKE_BINARY_DIR}/source_folder.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "#include \"base/source_folder.h\"

const std::string& tessera::source_folder() {
  static const std::string folder = \"${CMAKE_SOURCE_DIR}\";
  return folder;
}
")
  add_library(tessera_source_folder STATIC ${file})
  target_link_libraries(tessera_source_folder PRIVATE tessera_flags)
endfunction()

function(tessera_layer_tests name)
  tessera_test_program(${name} FILES ${ARGN} LIBRARIES tessera_${name})
endfunction()

# tessera_test_program(NAME FILES files... LIBRARIES libs...): the files as one test program `NAME_test`, whose tests ctest
# knows by the label NAME.
function(tessera_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "FILES;LIBRARIES")
  if(NOT TESSERA_TESTS OR NOT of_FILES)
    return()
  endif()
  tessera_units(files ${name}_test ${of_FILES})
  add_executable(${name}_test ${files})
  tessera_source_folder()
  target_link_libraries(${name}_test PRIVATE ${of_LIBRARIES} tessera_source_folder GTest::gmock GTest::gtest_main)
  tessera_precompiled_tests(${name}_test)
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${TESSERA_TEST_SECONDS} LABELS ${name})
endfunction()
