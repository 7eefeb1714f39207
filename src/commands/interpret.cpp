// `tessera interpret FILE.py`: a kernel run at sizes of the user's under many schedules, and
// judged.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "base/text.h"
#include "commands/common/kernel_file.h"

#include "simulate/simulate.h"
#include "term/evaluate.h"

namespace tessera::commands {
namespace {

constexpr Code no_size{"TS0039", "input.no_size"};

/// Sizes of all of the kernel's integers.
Result<std::map<std::string, int64_t>> sizes_of(const core::Kernel& k, const Json& arguments) {
  TESSERA_TRY(given, assignments(arguments, "size"));
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> names;
  for (const term::Term p : k.parameters) names.push_back(p->symbol->name);
  for (const auto& [name, text] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return error(fail(no_size, "the kernel `{}` has no size `{}`", k.name, name)
                       .expect("{}", join(names, ", ")));
    int64_t n = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (status != std::errc() || end != text.data() + text.size())
      return error(fail(no_size, "the size `{}` of `{}` is no whole number", text, name));
    sizes[name] = n;
  }
  for (const std::string& name : names)
    if (!sizes.contains(name))
      return error(fail(no_size, "the kernel `{}` has a size `{}` that is not given", k.name, name)
                       .help("add --size {}=NUMBER", name));
  return sizes;
}

/// Elements that the tensor spans at these sizes.
Result<int64_t> elements_of(const core::Tensor& t, const term::Assignment& at) {
  int64_t last = 0;
  for (std::size_t i = 0; i < t.extents.size(); ++i) {
    TESSERA_TRY(extent, term::evaluate(t.extents[i], at));
    TESSERA_TRY(stride, term::evaluate(t.strides[i], at));
    last += (extent - 1) * stride;
  }
  return last + 1;
}

Result<simulate::Launch> launch_of(const core::Kernel& k, const Json& arguments) {
  simulate::Launch launch;
  TESSERA_TRY(sizes, sizes_of(k, arguments));
  launch.parameters = sizes;
  launch.multiprocessors = arguments.at("multiprocessors").get<int64_t>();
  term::Assignment at;
  for (const auto& [name, n] : sizes) at.symbols[name] = n;
  std::mt19937_64 random(arguments.at("seed").get<uint64_t>());
  std::normal_distribution<double> normal;
  for (const core::Tensor& t : k.tensors) {
    if (t.access != core::Access::input) continue;
    TESSERA_TRY(n, elements_of(t, at));
    std::vector<double>& values = launch.inputs[t.name];
    for (int64_t i = 0; i < n; ++i) values.push_back(normal(random));
  }
  return launch;
}

/// Elements in which two runs differ. Elements that nothing wrote are NaN in both.
int64_t differences(const simulate::Outcome& a, const simulate::Outcome& b) {
  int64_t n = 0;
  for (const auto& [name, values] : a.outputs) {
    const std::vector<double>& others = b.outputs.at(name);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != others[i] && !(std::isnan(values[i]) && std::isnan(others[i]))) ++n;
  }
  return n;
}

Result<Outcome> run(const Json& arguments, Context& context) {
  TESSERA_TRY(kernel, load_kernel(arguments));
  TESSERA_TRY(launch, launch_of(kernel, arguments));
  TESSERA_TRY(simulator, simulate::Simulator::make(kernel, launch));
  const auto schedules = arguments.at("schedules").get<int64_t>();
  const auto seed = arguments.at("seed").get<uint64_t>();
  Outcome out;
  std::optional<simulate::Outcome> first;
  int64_t steps = 0, ran = 0, differing = 0;
  for (; ran < schedules && out.diagnostics.empty(); ++ran) {
    if (context.stop != nullptr && *context.stop) break;
    simulate::Outcome o =
        simulator.run(simulate::Schedule::seeded(seed + static_cast<uint64_t>(ran)));
    steps += o.steps;
    out.diagnostics = o.findings;
    if (first)
      differing += differences(*first, o);
    else
      first = std::move(o);
  }
  const bool wrong = !out.diagnostics.empty() || differing > 0;
  out.exit = wrong ? Exit::refuted : Exit::ok;
  out.text = fmt::format("{}: {} schedules, {} steps: {}\n", kernel.name, ran, steps,
                         !out.diagnostics.empty() ? "wrong"
                         : differing > 0          ? "results depend on the schedule"
                                                  : "nothing found");
  out.data = {{"schema", "tessera.interpreted/1"},
              {"kernel", kernel.name},
              {"schedules", ran},
              {"steps", steps},
              {"differing", differing},
              {"findings", Json::array()}};
  for (const Diagnostic& d : out.diagnostics) out.data["findings"].push_back(to_json(d));
  return out;
}

}  // namespace

extern const Command interpret;
const Command interpret = {
    .name = "interpret",
    .doc = "run a kernel file at small sizes under many schedules, and say what is wrong in any",
    .details =
        "tessera interpret kernels/gemm.py --set BM=64 --set BN=64 --size M=64 --size N=128 --size "
        "K=256\nInputs are drawn from a normal distribution by the seed.",
    .parameters =
        kernel_parameters({{.type = Parameter::Type::list,
                            .name = "size",
                            .doc = "NAME=NUMBER: an integer of the launch, as M=256"},
                           {.type = Parameter::Type::integer,
                            .name = "schedules",
                            .doc = "how many schedules",
                            .preset = "100",
                            .not_negative = true},
                           {.type = Parameter::Type::integer,
                            .name = "seed",
                            .doc = "of the first schedule and of the inputs",
                            .preset = "0",
                            .not_negative = true},
                           {.type = Parameter::Type::integer,
                            .name = "multiprocessors",
                            .doc = "of the machine: bounds the grid of persistent kernels",
                            .preset = "2",
                            .not_negative = true}}),
    .run = run,
    .schemas = {"tessera.interpreted/1"},
};

}  // namespace tessera::commands
