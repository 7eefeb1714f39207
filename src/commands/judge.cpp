// `tessera judge FILE.py`: a module that somebody wrote in the place of another, judged by all
// gates.
#include "pipeline/judge.h"

#include <algorithm>
#include <filesystem>

#include "commands/commands.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

using Type = Parameter::Type;

inline constexpr Code no_reference{"TS0072", "input.no_reference"};

/// The file, or those of a folder in their order.
std::vector<std::string> files_at(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(path))
    if (e.path().extension() == ".py") out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::pair<std::string, std::string> split_class(const std::string& spec) {
  const std::size_t colon = spec.rfind(':');
  if (colon == std::string::npos) return {spec, ""};
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

Exit exit_of(const attempt::Verdict& v) {
  if (v.passed()) return Exit::ok;
  return v.failure == attempt::Failure::out_of_memory ? Exit::undecided : Exit::refuted;
}

Result<Outcome> run(const Json& arguments, Context& context) {
  pipeline::Judging given;
  const auto [path, cls] = split_class(arguments.at("file"));
  if (!cls.empty()) given.cls = cls;
  given.files = files_at(path);
  std::tie(given.reference, given.reference_cls) = split_class(arguments.value("reference", ""));
  given.precision = arguments.at("precision");
  given.device = arguments.at("device");
  given.synthesized = arguments.at("claim") == "synthesized";
  given.confined = !arguments.value("unsandboxed", false);
  given.peers = arguments.at("peers").get<std::vector<std::string>>();
  given.reads = arguments.value("reads", std::vector<std::string>());
  given.limit = std::chrono::seconds(std::max<int64_t>(1, arguments.at("limit").get<int64_t>()));
  given.rounds = std::max(3, static_cast<int>(arguments.at("rounds").get<int64_t>()));
  pipeline::Options options;
  if (given.files.size() != 1 && given.reference.empty()) {
    return error(fail(no_reference, "`{}` holds {} files, and no file is named as the reference",
                      path, given.files.size())
                     .expect("--reference FILE.py"));
  }
  TESSERA_TRY(judged, pipeline::judge(given, options, pipeline_context(context)));
  Outcome out;
  if (!std::filesystem::is_directory(path)) {
    out.data = pipeline::to_json(given, judged.front());
  } else {
    out.data = {{"schema", "tessera.judged_folder/1"}, {"judged", Json::array()}};
    for (const pipeline::Judged& j : judged) out.data["judged"].push_back(to_json(given, j));
  }
  for (const pipeline::Judged& j : judged) {
    out.text += (out.text.empty() ? "" : "\n") + pipeline::to_text(j);
    out.exit = std::max(out.exit, exit_of(j.verdict));
  }
  return out;
}

std::vector<Parameter> parameters() {
  return {
      {.type = Type::text,
       .name = "file",
       .doc = "a Python file with the module that is judged: FILE.py, of which ModelNew is taken, "
              "FILE.py:CLASS, or a folder of such files",
       .positional = true,
       .required = true,
       .names = Parameter::Names::source},
      {.type = Type::text,
       .name = "reference",
       .doc = "the file with the module that it stands for, FILE.py (of which Model is taken) or "
              "FILE.py:CLASS (default: the same file)",
       .names = Parameter::Names::source},
      {.type = Type::text,
       .name = "claim",
       .doc = "synthesized: it fails where a library's op or kernel computes",
       .preset = "any",
       .choices = {"any", "synthesized"}},
      {.type = Type::text,
       .name = "precision",
       .doc = "cast both modules and the inputs, or set torch's own fp32 flags; auto keeps the "
              "reference's dtypes",
       .preset = "auto",
       .choices = {"auto", "fp32", "tf32", "bf16", "fp16"}},
      {.type = Type::text,
       .name = "device",
       .doc = "where both run",
       .preset = "cpu",
       .choices = {"cpu", "cuda"}},
      {.type = Type::list,
       .name = "peers",
       .doc = "what to time beside",
       .preset = "eager,inductor",
       .choices = {"eager", "inductor"}},
      {.type = Type::integer,
       .name = "rounds",
       .doc = "of timing, each on inputs of its own; at least 3",
       .preset = "7",
       .not_negative = true},
      {.type = Type::list,
       .name = "reads",
       .doc = "further folders that the file may read: an export's",
       .names = Parameter::Names::place},
      {.type = Type::integer,
       .name = "limit",
       .doc = "seconds that one call may take, and a tenth of what a build may",
       .preset = "60",
       .not_negative = true},
      {.type = Type::flag,
       .name = "unsandboxed",
       .doc = "run the files with all that you may do yourself",
       .names = Parameter::Names::place},
  };
}

}  // namespace

extern const Command judge;
const Command judge = {
    .name = "judge",
    .doc = "judge a module that somebody wrote in the place of another: a KernelBench solution",
    .details =
        "tessera judge solution.py --reference problem.py\nThe file is built and run in a "
        "sandbox. References, comparisons and the clock are in other processes. Exit code 0: "
        "it is right. 1: it is wrong, or it cheats. 2: memory was short. docs/judge.md has "
        "what is checked and what is said.",
    .parameters = parameters(),
    .run = run,
    .schemas = {"tessera.judged/1", "tessera.judged_folder/1"},
};

}  // namespace tessera::commands
