#include "toolchain/flags.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "toolchain/machine.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

// "sm_90a" -> "-gencode=arch=compute_90a,code=sm_90a": code for this machine alone, no PTX.
std::string gencode(const std::string& arch) {
  const std::string digits = arch.starts_with("sm_") ? arch.substr(3) : arch;
  return fmt::format("-gencode=arch=compute_{0},code=sm_{0}", digits);
}

}  // namespace

std::vector<std::string> common_flags(const Source& source) {
  if (source.language == Language::cxx) {
    return {"-std=c++17", "-O3", "-march=native",   "-fopenmp",        "-fPIC",
            "-shared",    "-s",  "-fno-math-errno", "-fno-gnu-unique", "-Wno-ignored-attributes"};
  }
  // The runtime is linked statically: the library then loads beside torch whatever runtime torch
  // has brought along, and the primary context is shared through the driver. Without
  // -fno-gnu-unique the inline functions' static variables ("this kernel's attributes are set")
  // would be shared among all libraries of the process, and the second one would not launch.
  std::vector<std::string> flags = {"-std=c++17",
                                    "-O3",
                                    "-shared",
                                    "-Xcompiler",
                                    "-fPIC",
                                    "-cudart",
                                    "static",
                                    "-Xptxas",
                                    "-v",
                                    "--expt-relaxed-constexpr",
                                    "-Xcompiler",
                                    "-fno-gnu-unique",
                                    "-Xlinker",
                                    "-s",
                                    gencode(source.arch)};
  if (source.cutlass) {
    flags.insert(flags.end(),
                 {"--expt-extended-lambda", "-DCUTLASS_ENABLE_TENSOR_CORE_MMA=1", "-DNDEBUG"});
  }
  return flags;
}

std::vector<std::string> compile_command(const Toolchain& tools, const Source& source,
                                         const fs::path& input, const fs::path& output) {
  const bool cuda = source.language == Language::cuda;
  std::vector<std::string> argv = {cuda ? tools.nvcc.string() : tools.cxx.string()};
  if (cuda && !tools.cxx.empty()) argv.insert(argv.end(), {"-ccbin", tools.cxx.string()});
  for (const std::string& f : common_flags(source)) argv.push_back(f);
  for (const std::string& f : source.flags) argv.push_back(f);
  if (!tools.own_include.empty()) argv.push_back("-I" + tools.own_include.string());
  for (const fs::path& dir : tools.cuda_includes) {
    if (cuda) argv.push_back("-I" + dir.string());
  }
  if (source.cutlass) {
    argv.push_back("-I" + (tools.cutlass / "include").string());
    argv.push_back("-I" + (tools.cutlass / "tools/util/include").string());
  }
  argv.insert(argv.end(), {"-o", output.string(), input.string()});
  for (const fs::path& dir : tools.cuda_libraries) {
    if (cuda) argv.push_back("-L" + dir.string());
  }
  for (const std::string& lib : source.links) argv.push_back("-l" + lib);
  return argv;
}

std::string cache_key(const Toolchain& tools, const Source& source) {
  const bool cuda = source.language == Language::cuda;
  std::string text = fmt::format("tessera.build/1\n{}\n{}\n", cuda ? "cuda" : "cxx", source.arch);
  text += cuda ? tools.nvcc_version : tools.cxx_version + " " + cpu_model();
  text += "\n";
  if (source.cutlass) text += "cutlass " + tools.cutlass_version + "\n";
  text += join(common_flags(source), " ") + "\n" + join(source.flags, " ") + "\n" +
          join(source.links, " ") + "\n";
  text += included_headers_hash(tools.own_include, source.text) + "\n";
  text += source.text;
  return content_hash(text);
}

}  // namespace tessera::toolchain
