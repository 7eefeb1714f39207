#include "commands/common/optimizing.h"

#include "base/text.h"

namespace tessera::commands {
std::vector<Parameter> tuning_parameters(std::vector<Parameter> more) {
  using Type = Parameter::Type;
  std::vector<Parameter> out = {
      {.type = Type::text,
       .name = "effort",
       .doc = "how many configurations to try",
       .preset = "default",
       .choices = {"quick", "default", "max"}},
      {.type = Type::real,
       .name = "seconds",
       .doc = "stop tuning after so many seconds (0: no limit)",
       .preset = "0",
       .not_negative = true},
      {.type = Type::integer,
       .name = "jobs",
       .doc = "compilers at once (0: one a core)",
       .preset = "0",
       .not_negative = true},
      {.type = Type::text,
       .name = "only",
       .doc = "what kind of kernel may be placed",
       .preset = "both",
       .choices = {"both", "synthesized", "library"}},
      {.type = Type::flag,
       .name = "place-all",
       .doc = "place the best kernels even where eager is faster"},
      {.type = Type::flag, .name = "retune", .doc = "challenge stored winners"},
      {.type = Type::text,
       .name = "use-registry",
       .doc = "read and write the registry",
       .preset = "true",
       .choices = {"true", "false"}},
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<Parameter> composing_parameters(std::vector<Parameter> more) {
  using Type = Parameter::Type;
  std::vector<Parameter> out = std::move(more);
  const std::vector<Parameter> own = {
      {.type = Type::real,
       .name = "total-seconds",
       .doc = "end everything after so many seconds (0: no limit)",
       .preset = "0",
       .not_negative = true},
      {.type = Type::text,
       .name = "leftover",
       .doc = "who runs the ops that no kernel covers; auto: the faster",
       .preset = "auto",
       .choices = {"auto", "eager", "inductor"}},
      {.type = Type::list,
       .name = "peers",
       .doc = "what to measure beside",
       .preset = "eager,inductor",
       .choices = {"eager", "inductor", "inductor-max-autotune", "tensorrt"}},
      {.type = Type::text,
       .name = "resizes",
       .doc = "verify two other sizes (not at --effort quick); auto: unless --seconds is given",
       .preset = "auto",
       .choices = {"auto", "true", "false"}},
      {.type = Type::text,
       .name = "ablation",
       .doc = "measure each kernel's part",
       .preset = "true",
       .choices = {"true", "false"}},
  };
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Result<Json> options_of_program(const Json& given, const std::vector<std::string>& own) {
  using Type = Parameter::Type;
  static const Command optimize = {
      .name = "optimize",
      .doc = "",
      .parameters = tuning_parameters(composing_parameters({
          {.type = Type::text, .name = "arch", .doc = "", .preset = "auto"},
          {.type = Type::text, .name = "cache", .doc = ""},
          {.type = Type::text, .name = "registry", .doc = ""},
          {.type = Type::text, .name = "dump", .doc = ""},
          {.type = Type::numbers, .name = "checkpoints", .doc = "", .rising = true},
          {.type = Type::real, .name = "spent", .doc = "", .preset = "0", .not_negative = true},
          {.type = Type::text,
           .name = "measure",
           .doc = "",
           .preset = "true",
           .choices = {"true", "false"}},
      })),
      .run = nullptr,
  };
  Json named = Json::object();
  for (const auto& [name, value] : given.items()) {
    Json typed = value;
    const std::string key = replace_all(name, "_", "-");
    for (const Parameter& p : optimize.parameters) {
      if (p.name == key && p.type == Type::text && value.is_boolean())
        typed = value.get<bool>() ? "true" : "false";
    }
    named[key] = std::move(typed);
  }
  return complete(optimize, named, own);
}

pipeline::Context pipeline_context(Context& context) {
  pipeline::Context out;
  if (context.progress) out.progress = context.progress;
  out.stop = context.stop;
  return out;
}

}  // namespace tessera::commands
