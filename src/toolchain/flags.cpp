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

/// A line of the source that defines this macro.
bool defines(const Source& source, const char* macro) {
  return source.text.find(fmt::format("#define {} 1\n", macro)) != std::string::npos;
}

/// The host side launches and does nothing else that takes time. The runtime is linked statically:
/// the library then loads beside torch whatever runtime torch has brought along, and the primary
/// context is shared through the driver. Without -fno-gnu-unique the inline functions' static
/// variables ("this kernel's attributes are set") would be shared among all libraries of the
/// process, and the second one would not launch. CUTLASS' headers name device functions in
/// templates that are never instantiated here (-fpermissive); warnings about them help nobody.
std::vector<std::string> host_flags(const Source& source) {
  std::vector<std::string> flags = {"-std=c++17",
                                    "-O1",
                                    "-fPIC",
                                    "-shared",
                                    "-s",
                                    "-fno-gnu-unique",
                                    "-fvisibility=hidden",
                                    "-fpermissive",
                                    "-w",
                                    "-Wno-psabi",
                                    "-DTESSERA_HOST_SIDE=1"};
  if (source.cutlass) flags.emplace_back("-DNDEBUG");
  for (const std::string& f : source.flags) {
    if (f.starts_with("-D")) flags.push_back(f);
  }
  return flags;
}

void add_own_includes(const Toolchain& tools, const Source& source,
                      std::vector<std::string>& argv) {
  if (!tools.own_include.empty()) argv.push_back("-I" + tools.own_include.string());
  if (!source.cutlass) return;
  argv.push_back("-I" + (tools.cutlass / "include").string());
  argv.push_back("-I" + (tools.cutlass / "tools/util/include").string());
}

std::vector<std::string> host_command(const Toolchain& tools, const Source& source,
                                      const fs::path& input, const fs::path& output,
                                      const fs::path& cubin) {
  std::vector<std::string> argv = {tools.cxx.string()};
  for (const std::string& f : host_flags(source)) argv.push_back(f);
  if (!cubin.empty()) argv.push_back(fmt::format("-DTESSERA_CUBIN=\"{}\"", cubin.string()));
  add_own_includes(tools, source, argv);
  for (const fs::path& dir : tools.host_includes)
    argv.insert(argv.end(), {"-isystem", dir.string()});
  argv.insert(argv.end(), {"-x", "c++", input.string(), "-x", "none", "-o", output.string()});
  argv.push_back("-L" + tools.host_runtime.string());
  for (const fs::path& dir : tools.cuda_libraries) argv.push_back("-L" + dir.string());
  for (const std::string& lib : source.links) argv.push_back("-l" + lib);
  argv.insert(argv.end(), {"-lcudart_static", "-lrt", "-lpthread", "-ldl"});
  return argv;
}

/// One run of the compiler that knows the source's language.
std::vector<std::string> kernel_command(const Toolchain& tools, const Source& source, Sides sides,
                                        const fs::path& input, const fs::path& output) {
  const bool cuda = source.language == Language::cuda;
  std::vector<std::string> argv = {cuda ? tools.nvcc.string() : tools.cxx.string()};
  if (cuda && !tools.cxx.empty()) argv.insert(argv.end(), {"-ccbin", tools.cxx.string()});
  for (const std::string& f : common_flags(source, sides)) argv.push_back(f);
  for (const std::string& f : source.flags) argv.push_back(f);
  add_own_includes(tools, source, argv);
  for (const fs::path& dir : tools.cuda_includes) {
    if (cuda) argv.push_back("-I" + dir.string());
  }
  argv.insert(argv.end(), {"-o", output.string(), input.string()});
  if (sides == Sides::apart) return argv;
  for (const fs::path& dir : tools.cuda_libraries) {
    if (cuda) argv.push_back("-L" + dir.string());
  }
  for (const std::string& lib : source.links) argv.push_back("-l" + lib);
  return argv;
}

}  // namespace

Sides sides_of(const Toolchain& tools, const Source& source) {
  if (source.language != Language::cuda || tools.host_runtime.empty()) return Sides::together;
  if (defines(source, "TESSERA_HOST_ONLY")) return Sides::host;
  return defines(source, "TESSERA_SIDES_APART") ? Sides::apart : Sides::together;
}

std::vector<std::string> common_flags(const Source& source, Sides sides) {
  if (source.language == Language::cxx) {
    // As Inductor's: a product that is rounded with the sum behind it is no longer the same number
    // in `a * b - b * a`, and hides an overflow. Where PyTorch's op itself rounds once, the text
    // says so (fma).
    return {"-std=c++17",
            "-O3",
            "-march=native",
            "-fopenmp",
            "-fPIC",
            "-shared",
            "-s",
            "-fno-math-errno",
            "-ffp-contract=off",
            "-fno-gnu-unique",
            "-Wno-ignored-attributes"};
  }
  std::vector<std::string> flags = {"-std=c++17", "-O3"};
  if (sides == Sides::apart) {
    flags.insert(flags.end(), {"-cubin", "-DTESSERA_DEVICE_SIDE=1"});
  } else {  // what host_flags says of these
    flags.insert(flags.end(), {"-shared", "-Xcompiler", "-fPIC", "-cudart", "static", "-Xcompiler",
                               "-fno-gnu-unique", "-Xlinker", "-s"});
  }
  flags.insert(flags.end(), {"-Xptxas", "-v", "--expt-relaxed-constexpr", gencode(source.arch)});
  if (source.cutlass) {
    flags.insert(flags.end(),
                 {"--expt-extended-lambda", "-DCUTLASS_ENABLE_TENSOR_CORE_MMA=1", "-DNDEBUG"});
  }
  return flags;
}

std::vector<std::vector<std::string>> compile_commands(const Toolchain& tools, const Source& source,
                                                       const fs::path& input,
                                                       const fs::path& output) {
  const Sides sides = sides_of(tools, source);
  if (sides == Sides::together) return {kernel_command(tools, source, sides, input, output)};
  if (sides == Sides::host) return {host_command(tools, source, input, output, {})};
  const fs::path cubin = output.parent_path() / (output.stem().string() + ".cubin");
  return {kernel_command(tools, source, sides, input, cubin),
          host_command(tools, source, input, output, cubin)};
}

std::string cache_key(const Toolchain& tools, const Source& source) {
  const bool cuda = source.language == Language::cuda;
  const Sides sides = sides_of(tools, source);
  std::string text = fmt::format("tessera.build/1\n{}\n{}\n", cuda ? "cuda" : "cxx", source.arch);
  text += cuda ? tools.nvcc_version : tools.cxx_version + " " + cpu_model();
  text += "\n";
  if (sides != Sides::together)
    text += fmt::format("{}\n{}\n", tools.cxx_version, join(host_flags(source), " "));
  if (source.cutlass) text += "cutlass " + tools.cutlass_version + "\n";
  text += join(common_flags(source, sides), " ") + "\n" + join(source.flags, " ") + "\n" +
          join(source.links, " ") + "\n";
  text += included_headers_hash(tools.own_include, source.text) + "\n";
  text += source.text;
  return content_hash(text);
}

}  // namespace tessera::toolchain
