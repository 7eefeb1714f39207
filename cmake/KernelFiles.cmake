# Writes a source file with the texts of kernels/*.py, for tessera::realize::kernel_file.
function(tessera_kernel_files target)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.py)
  if(NOT files)
    message(FATAL_ERROR "there are no kernel files in ${CMAKE_SOURCE_DIR}/kernels, which ${target} takes products from")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(rows "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND rows "    {\"${name}\", R\"file(${text})file\"},\n")
  endforeach()
  set(text "// Written by cmake/KernelFiles.cmake.
#include \"realize/common/kernel_files.h\"

#include <stdexcept>
#include <string>
#include <utility>

namespace tessera::realize {

std::string_view kernel_file(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> files[] = {
${rows}  };
  for (const auto& [known, text] : files)
    if (known == name) return text;
  throw std::logic_error(\"there is no kernel file \" + std::string(name));
}

}  // namespace tessera::realize
")
  set(written ${CMAKE_CURRENT_BINARY_DIR}/kernel_files.cpp)
  file(GENERATE OUTPUT ${written} CONTENT "${text}")
  target_sources(${target} PRIVATE ${written})
endfunction()
