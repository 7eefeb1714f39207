#include "toolchain/device_text.h"

#include <map>
#include <regex>
#include <system_error>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "toolchain/flags.h"
#include "toolchain/machine.h"
#include "toolchain/ready.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

inline constexpr Code compile_failed{"TS0303", "build.compile_failed"};
inline constexpr Code compile_timed_out{"TS0304", "build.timed_out"};
inline constexpr Code did_not_start{"TS0306", "build.compiler_did_not_start"};
inline constexpr Code no_disassembler{"TS0326", "build.no_disassembler"};

Result<std::string> run_tool(const Source& source, const std::vector<std::string>& argv,
                             const fs::path& folder, std::chrono::seconds limit) {
  Finished done;
  try {
    done = run({.argv = argv, .folder = folder, .env = {{"TMPDIR", folder.string()}}}, limit);
  } catch (const std::system_error& e) {
    return error(fail(did_not_start, "{} did not start: {}", argv.front(), e.what())
                     .help("`tessera doctor` says what is installed"));
  }
  if (done.timed_out)
    return error(
        fail(compile_timed_out, "compiling `{}` took more than {} s", source.name, limit.count()));
  if (!done.ok())
    return error(fail(compile_failed, "`{}` does not compile", source.name)
                     .expect("{} to end with exit code 0", argv.front())
                     .but_found("{}", trim(done.output).substr(0, 2000))
                     .help("`tessera lower --emit cuda` prints the source"));
  return done.output;
}

Result<fs::path> disassembler(const Toolchain& tools) {
  if (const auto found = beside_nvcc(tools, "nvdisasm")) return *found;
  return error(fail(no_disassembler, "there is no nvdisasm to print machine code with")
                   .expect("nvdisasm beside {} or on PATH", tools.nvcc.string())
                   .but_found("neither")
                   .help("install it (cuda-nvdisasm of the CUDA toolkit), or print PTX"));
}

/// The compiler of the device side, making `output`; ".ptx" is PTX.
std::vector<std::string> command(const Toolchain& tools, const Source& source,
                                 const fs::path& input, const fs::path& output) {
  std::vector<std::string> argv = {tools.nvcc.string()};
  if (!tools.cxx.empty()) argv.insert(argv.end(), {"-ccbin", tools.cxx.string()});
  for (const std::string& f : common_flags(source, Sides::apart))
    argv.push_back(f == "-cubin" && output.extension() == ".ptx" ? "-ptx" : f);
  argv.emplace_back("-lineinfo");
  for (const std::string& f : source.flags) argv.push_back(f);
  if (!tools.own_include.empty()) argv.push_back("-I" + tools.own_include.string());
  for (const fs::path& dir : tools.cuda_includes) argv.push_back("-I" + dir.string());
  argv.insert(argv.end(), {"-o", output.string(), input.string()});
  return argv;
}

/// Names a place of the source by what the compiler says: a file and a line.
class Marks {
 public:
  Marks(const std::string& file, const std::vector<std::string>& places)
      : file_(file), places_(places) {}

  [[nodiscard]] std::string place(const std::string& file, const std::string& line) const {
    const std::size_t n = std::stoul(line);
    return file == file_ && n >= 1 && n <= places_.size() ? places_[n - 1] : "";
  }

 private:
  const std::string& file_;
  const std::vector<std::string>& places_;
};

}  // namespace

std::vector<std::string> authors_places(const std::string& source) {
  static const std::regex mark(R"(^\s*// (.+:\d+: .*)$)");
  std::vector<std::string> out;
  std::string place;
  for (const std::string& line : split(source, '\n')) {
    std::smatch found;
    if (std::regex_match(line, found, mark)) place = found[1];
    if (line.starts_with("}")) place.clear();  // a function ends
    out.push_back(place);
  }
  return out;
}

std::string with_places(const std::string& text, Stage stage, const std::string& file,
                        const std::vector<std::string>& places) {
  static const std::regex file_mark(R"re(^\s*\.file\s+(\d+)\s+"(.*?)".*$)re");
  static const std::regex loc_mark(R"(^\s*\.loc\s+(\d+) (\d+) .*$)");
  static const std::regex inlined(R"(inlined_at (\d+) (\d+) )");
  static const std::regex sass_mark(R"re(^\s*//## File "(.*?)", line (\d+).*$)re");
  const Marks marks(file, places);
  std::vector<std::string> lines = split(text, '\n');
  std::map<std::string, std::string> files;  // of PTX, by number; they stand at its end
  std::smatch m;
  for (const std::string& line : lines)
    if (std::regex_match(line, m, file_mark)) files[m[1]] = m[2];
  std::string out, last, next;
  for (const std::string& line : lines) {
    std::string place;
    if (stage == Stage::ptx && std::regex_match(line, m, loc_mark)) {
      std::string number = m[1], at = m[2];
      if (std::regex_search(line, m, inlined)) {
        number = m[1];
        at = m[2];
      }
      place = marks.place(files[number], at);
    } else if (stage == Stage::sass && std::regex_match(line, m, sass_mark)) {
      place = marks.place(m[1], m[2]);
    } else if (stage == Stage::ptx && std::regex_match(line, m, file_mark)) {
      continue;
    } else {
      if (!next.empty() && next != last) out += "\t// " + next + "\n";
      if (!next.empty()) last = next;
      next.clear();
      out += line + "\n";
      continue;
    }
    // Of code that is inlined several marks stand together, the outermost last.
    if (!place.empty()) next = place;
  }
  return out;
}

Result<std::string> device_text(const Toolchain& tools, const Source& source, Stage stage,
                                std::chrono::seconds limit) {
  TESSERA_CHECK(ready_to_build(tools, source.language));
  const TemporaryFolder folder("tessera-device");
  const fs::path input = folder.path() / "source.cu";
  const std::vector<std::string> places = authors_places(source.text);
  write_file_atomically(input, source.text);
  if (stage == Stage::ptx) {
    const fs::path ptx = folder.path() / "device.ptx";
    TESSERA_CHECK(run_tool(source, command(tools, source, input, ptx), folder.path(), limit));
    return with_places(read_file(ptx), stage, input.string(), places);
  }
  TESSERA_TRY(nvdisasm, disassembler(tools));
  const fs::path cubin = folder.path() / "device.cubin";
  TESSERA_CHECK(run_tool(source, command(tools, source, input, cubin), folder.path(), limit));
  TESSERA_TRY(text, run_tool(source, {nvdisasm.string(), "-c", "-gi", cubin.string()},
                             folder.path(), limit));
  return with_places(text, stage, input.string(), places);
}

}  // namespace tessera::toolchain
