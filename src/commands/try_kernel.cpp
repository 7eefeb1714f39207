// `tessera try MODEL.py PATTERN --source FILE`: one kernel by hand for one pattern, judged.
#include "base/files.h"
#include "base/text.h"
#include "commands/common/by_hand_kernel.h"
#include "commands/common/model.h"
#include "commands/common/optimizing.h"

#include "skeleton/skeleton.h"

namespace tessera::commands {
namespace {

inline constexpr Code one_of_two{"TS0055", "input.source_or_skeleton"};

Result<Outcome> skeleton_of(const Json& arguments, const Json& traced,
                            const pipeline::Options& options) {
  TESSERA_TRY(found, pipeline::discover(traced, options));
  TESSERA_TRY(pattern, pipeline::pattern_named(found, arguments.at("pattern")));
  TESSERA_TRY(written, skeleton::write(*pattern, found.graph, *found.arch));
  Outcome out;
  out.data = {{"schema", "tessera.skeleton/1"}, {"pattern", pattern->id},
              {"rule", pattern->rule},          {"ending", written.ending},
              {"text", written.text},           {"missing", written.missing}};
  out.text = written.text;
  if (const std::string file = arguments.value("output", ""); !file.empty()) {
    write_file_atomically(file, written.text);
    out.text = fmt::format("wrote {}\n", file);
    if (!written.missing.empty())
      out.text += fmt::format("to be written in it, where an #error stands: {}\n",
                              join(written.missing, ", "));
  }
  return out;
}

Exit exit_of(const attempt::Verdict& v) {
  if (v.passed()) return Exit::ok;
  const bool open =
      v.failure == attempt::Failure::unsupported || v.failure == attempt::Failure::out_of_memory;
  return open ? Exit::undecided : Exit::refuted;
}

Result<Outcome> judged(const Json& arguments, const Json& traced, const pipeline::Options& options,
                       attempt::SourceFile source, Context& context) {
  pipeline::ByHand given{.pattern = arguments.at("pattern"), .source = std::move(source)};
  given.peers = arguments.at("peers").get<std::vector<std::string>>();
  given.limit = std::chrono::seconds(std::max<int64_t>(1, arguments.at("limit").get<int64_t>()));
  given.again = arguments.value("again", false);
  given.elaborate = [file = given.source.file](const rules::Pattern& p, const graph::Graph& g,
                                               const arch::Arch& arch, const Json& tunables) {
    return kernel_by_hand(file, p, g, arch, tunables);
  };
  TESSERA_TRY(verdict, pipeline::try_by_hand(traced, options, given, pipeline_context(context)));
  Outcome out;
  out.data = attempt::to_json(verdict);
  out.text = attempt::to_text(verdict);
  out.exit = exit_of(verdict);
  return out;
}

Result<Outcome> run(const Json& arguments, Context& context) {
  const std::string file = arguments.value("source", "");
  const bool skeleton = arguments.value("skeleton", false);
  if (skeleton != file.empty()) {
    return error(fail(one_of_two, "{}",
                      skeleton ? "a skeleton is written, or a source is judged"
                               : "there is no source to judge")
                     .expect("--source FILE or --skeleton"));
  }
  // Before the long way to the module.
  std::optional<attempt::SourceFile> source;
  if (!skeleton) {
    TESSERA_TRY(read, attempt::read_source(file));
    source = std::move(read);
  }
  TESSERA_TRY(model, load_model(arguments, context));
  pipeline::Options options = pipeline::options_from(arguments);
  options.compose = false;
  options.confined = !arguments.value("unsandboxed", false);
  if (skeleton) return skeleton_of(arguments, model.traced, options);
  return judged(arguments, model.traced, options, std::move(*source), context);
}

std::vector<Parameter> parameters() {
  using Type = Parameter::Type;
  std::vector<Parameter> out = model_parameters();
  const std::vector<Parameter> own = {
      {.type = Type::text,
       .name = "pattern",
       .doc = "a pattern as `tessera discover` names it: p03",
       .positional = true,
       .required = true},
      {.type = Type::text,
       .name = "source",
       .doc = "the kernel: .py of the tile language, .cu (CUDA C++, CUTLASS), .cpp for the host",
       .names = Parameter::Names::source},
      {.type = Type::flag,
       .name = "skeleton",
       .doc = "write a correct naive kernel to start from, and judge nothing"},
      {.type = Type::text,
       .name = "output",
       .doc = "file that the skeleton is written to",
       .names = Parameter::Names::output},
      {.type = Type::list,
       .name = "peers",
       .doc = "what to time beside; the best so far is always there",
       .preset = "eager,inductor,library",
       .choices = {"eager", "inductor", "library"}},
      {.type = Type::integer,
       .name = "limit",
       .doc = "seconds that one verification of it may take, and a tenth of what its build may",
       .preset = "60",
       .not_negative = true},
      {.type = Type::flag,
       .name = "unsandboxed",
       .doc = "build and run it with all that you may do yourself",
       .names = Parameter::Names::place},
      {.type = Type::flag, .name = "again", .doc = "judge it anew, whatever is known of it"},
      {.type = Type::text,
       .name = "use-registry",
       .doc = "read and write the registry",
       .preset = "true",
       .choices = {"true", "false"}},
  };
  // The positional ones come in their order.
  out.insert(out.begin() + 1, own.front());
  out.insert(out.end(), own.begin() + 1, own.end());
  return out;
}

}  // namespace

extern const Command try_kernel;
const Command try_kernel = {
    .name = "try",
    .doc = "judge one kernel that you wrote, for one pattern of a module",
    .details =
        "tessera try MODEL.py p03 --skeleton --output k.cpp\ntessera try MODEL.py p03 --source "
        "k.cpp\nGates in order: parse, check, build, verify, sanitize, measure. Exit code 0: it "
        "passed all. 1: it is wrong. 2: this machine cannot tell. docs/try.md has "
        "the "
        "verdict's fields.",
    .parameters = parameters(),
    .run = run,
    .schemas = {"tessera.skeleton/1", "tessera.verdict/1"},
};

}  // namespace tessera::commands
