#include "commands/common/optimizing.h"

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
       .doc = "stop tuning after this many seconds, best kept (0: no limit)",
       .preset = "0"},
      {.type = Type::integer,
       .name = "jobs",
       .doc = "parallel compilations (0: one a core)",
       .preset = "0"},
      {.type = Type::text,
       .name = "only",
       .doc = "what kind of kernel may be placed",
       .preset = "both",
       .choices = {"both", "synthesized", "library"}},
      {.type = Type::flag,
       .name = "place-all",
       .doc = "place the best kernels even where eager is faster, as benchmarks do"},
      {.type = Type::flag, .name = "retune", .doc = "challenge stored winners again"},
      {.type = Type::text,
       .name = "use-registry",
       .doc = "read and write the registry",
       .preset = "true",
       .choices = {"true", "false"}},
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

pipeline::Context pipeline_context(Context& context) {
  pipeline::Context out;
  if (context.progress) out.progress = context.progress;
  out.stop = context.stop;
  return out;
}

}  // namespace tessera::commands
