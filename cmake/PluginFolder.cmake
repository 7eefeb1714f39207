# The folder is the registry: every DIR/<name>.cpp defines `extern const TYPE NS::<name>` and lands in the table that
# NS::all() returns, sorted by file name. A file whose symbol does not carry its name, or that
# forgets `extern` (a constant is local to its file without it), fails to link.
#
#   tessera_plugin_folder(TARGET DIR TYPE NAMESPACE HEADER)
function(tessera_plugin_folder target dir type namespace header)
  file(GLOB files CONFIGURE_DEPENDS ${dir}/*.cpp)
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  list(SORT files)
  set(decls "")
  set(refs "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    string(APPEND decls "extern const ${type} ${name};\n")
    string(APPEND refs "    &${name},\n")
  endforeach()
  string(REPLACE "::" "_" stem ${namespace})
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${stem}_table.cpp)
  file(CONFIGURE OUTPUT ${table} CONTENT "#include <iterator>
#include <span>

#include \"${header}\"

namespace tessera::${namespace} {
${decls}
namespace {
const ${type}* const table[] = {
${refs}    nullptr};
}
std::span<const ${type}* const> all() { return {table, std::size(table) - 1}; }
}  // namespace tessera::${namespace}
")
  tessera_units(files ${stem}_folder ${files})
  target_sources(${target} PRIVATE ${files} ${table})
endfunction()
