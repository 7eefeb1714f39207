// `tessera build FILE.py`: a kernel file to a library that can be launched
// (include/tessera/kernel.h), after it has been checked.
#include <filesystem>

#include "base/files.h"
#include "commands/common/kernel_build.h"

namespace tessera::commands {
namespace {

namespace fs = std::filesystem;

constexpr Code not_writable{"TS0033", "input.output_not_writable"};

/// DIR/<kernel>.so, .cu and .json.
Status export_to(const fs::path& folder, Json& data) {
  const auto name = data.at("kernel").get<std::string>();
  try {
    fs::create_directories(folder);
    for (const auto& [what, end] : {std::pair{"library", ".so"}, std::pair{"source", ".cu"}}) {
      const fs::path copy = fs::absolute(folder / (name + end));
      write_file_atomically(copy, read_file(data.at(what).get<std::string>()));
      data[what] = copy.string();
    }
    write_file_atomically(folder / (name + ".json"), data.dump(1));
    return {};
  } catch (const fs::filesystem_error& e) {
    return error(fail(not_writable, "the output folder {} cannot be written", folder.string())
                     .expect("a folder that can be made and written")
                     .but_found("{}", e.code().message())
                     .help("give another one with -o DIR"));
  }
}

std::string summary(const Json& data) {
  const Json& r = data.at("resources");
  const auto count = [&](const char* name) {
    return r.contains(name) ? std::to_string(r.at(name).get<int64_t>()) : std::string("unknown");
  };
  const auto text = [&](const char* name) { return data.at(name).get<std::string>(); };
  std::string out = fmt::format("{}: {}, {} kinds of invariants, {}\n", text("kernel"),
                                text("verdict"), data.at("findings").size(),
                                text("means").empty() ? "no meaning to hold it to" : text("means"));
  for (const Json& f : data.at("findings"))
    if (f.at("verdict") != "proved")
      out += fmt::format("  {} {}: {}\n", f.at("verdict").get<std::string>(),
                         f.at("kind").get<std::string>(), f.at("reason").get<std::string>());
  out += fmt::format("{}\n", text("library"));
  out += fmt::format("{} registers, {} bytes spilled, {} bytes of shared memory, {} threads\n",
                     count("registers"), count("spill_bytes"),
                     data.at("shared_bytes").get<int64_t>(), data.at("threads").get<int>());
  return out + fmt::format("built in {:.1f} s{}\n", data.at("seconds").get<double>(),
                           data.at("cached").get<bool>() ? ", before: from the cache" : "");
}

Result<Outcome> run(const Json& arguments, Context& context) {
  TESSERA_TRY(out, built(arguments, context));
  if (out.exit != Exit::ok) return out;
  if (const std::string folder = arguments.value("output", ""); !folder.empty())
    TESSERA_CHECK(export_to(folder, out.data));
  out.text = summary(out.data);
  return out;
}

}  // namespace

extern const Command build;
const Command build = {
    .name = "build",
    .doc = "check a kernel file and compile it to a library that can be launched",
    .details =
        "tessera build kernels/gemm.py --set BN=128 -o out\nA kernel that is refuted is not built: "
        "exit code 1. One that the checker could not decide needs --unproved: else exit code 2. "
        "Libraries are kept in the cache of kernels; -o copies one, with its source and its "
        "interface, as DIR/KERNEL.so, .cu and .json.",
    .parameters = building_parameters({{.type = Parameter::Type::text,
                                        .name = "output",
                                        .doc = "a folder that gets a copy of the library",
                                        .names = Parameter::Names::output}}),
    .run = run,
    .schemas = {"tessera.built/1"},
};

}  // namespace tessera::commands
