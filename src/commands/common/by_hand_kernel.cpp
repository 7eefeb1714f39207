#include "commands/common/by_hand_kernel.h"

#include <fmt/ranges.h>

#include "commands/common/kernel_file.h"
#include "commands/common/kernel_verdict.h"

#include "check/kind.h"
#include "lower/lower.h"

namespace tessera::commands {
namespace {

using attempt::Failure;

inline constexpr Code other_tensors{"TS0054", "input.other_tensors"};

Diagnostic other(const core::Tensor& t, const graph::Value& v, const std::string& why) {
  return fail(other_tensors, "the kernel's tensor {} is not the pattern's %{}: {}", t.name, v.name,
              why)
      .but_found("{} ({}):({})", name_of(v.type.dtype), fmt::join(v.type.shape, ","),
                 fmt::join(v.type.strides, ","))
      .help(
          "a kernel's tensors are the pattern's inputs, then its outputs, in the order that "
          "`tessera try MODEL.py PATTERN --skeleton` writes");
}

using Values = std::map<std::string, int64_t>;

/// Whether the term can be this number; an integer of the launch becomes it.
bool bind(term::Term t, int64_t value, Values& values) {
  if (!t) return true;
  if (t->op == term::Op::constant) return t->value == value;
  if (t->op != term::Op::parameter) return true;  // what it is follows from others
  return values.try_emplace(t->symbol->name, value).first->second == value;
}

/// The value's dims as so many: leading ones together, or 1 before them. False where they do not
/// lie without gaps.
bool shaped(const graph::TensorType& type, std::size_t rank, std::vector<int64_t>& shape,
            std::vector<int64_t>& strides) {
  shape = type.shape;
  strides = type.strides;
  while (shape.size() > rank && shape.size() > 1) {
    if (strides[0] != strides[1] * shape[1] && shape[0] != 1) return false;
    shape[1] *= shape[0];
    shape.erase(shape.begin());
    strides.erase(strides.begin());
  }
  while (shape.size() < rank) {
    const int64_t whole = shape.empty() ? 1 : shape[0] * strides[0];
    shape.insert(shape.begin(), 1);
    strides.insert(strides.begin(), whole);
  }
  return shape.size() == rank;
}

Status bind_tensor(const core::Tensor& t, const graph::Value& v, bool output, Values& values) {
  if (t.element != v.type.dtype)
    return error(other(t, v, fmt::format("its elements are {}", name_of(t.element))));
  if ((t.access == core::Access::output) != output)
    return error(other(t, v, output ? "the kernel only reads it" : "the kernel writes it"));
  std::vector<int64_t> shape, strides;
  if (!shaped(v.type, t.extents.size(), shape, strides))
    return error(other(t, v, fmt::format("it has {} dims", t.extents.size())));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!bind(t.extents[d], shape[d], values))
      return error(other(t, v, fmt::format("dim {} cannot be {}", d, shape[d])));
    if (shape[d] > 1 && !bind(t.strides[d], strides[d], values))
      return error(other(t, v, fmt::format("the stride of dim {} cannot be {}", d, strides[d])));
  }
  return {};
}

Result<Values> bound(const core::Kernel& kernel, const rules::Pattern& p, const graph::Graph& g) {
  std::vector<graph::ValueId> ids = p.inputs;
  ids.insert(ids.end(), p.outputs.begin(), p.outputs.end());
  Values values;
  std::size_t at = 0;
  for (const core::Tensor& t : kernel.tensors) {
    if (t.access == core::Access::workspace) continue;
    if (at == ids.size())
      return error(
          fail(other_tensors, "the kernel has more tensors than the pattern's {}", ids.size()));
    TESSERA_CHECK(bind_tensor(t, g.value(ids[at]), at >= p.inputs.size(), values));
    ++at;
  }
  if (at < ids.size())
    return error(fail(other_tensors, "the kernel has {} tensors, the pattern {}", at, ids.size()));
  return values;
}

Result<kernel::Candidate> candidate_of(const core::Kernel& kernel, const rules::Pattern& p,
                                       const graph::Graph& g, const arch::Arch& arch) {
  TESSERA_TRY(values, bound(kernel, p, g));
  TESSERA_TRY(lowered, tessera::lower::lower(kernel));
  kernel::Candidate c{.realizer = "by_hand"};
  c.source =
      toolchain::Source{.name = "by_hand", .text = lowered.text, .arch = std::string(arch.name)};
  kernel::Launch launch;
  for (const std::string& integer : lowered.ints) {
    const auto at = values.find(integer);
    if (at == values.end())
      return error(fail(other_tensors, "the integer {} is no extent or stride of a tensor", integer)
                       .help("let every integer of the launch be one"));
    launch.ints.push_back(at->second);
  }
  c.launches = {std::move(launch)};
  return c;
}

pipeline::FromLanguage failed(Failure failure, Diagnostic d, bool parsed) {
  pipeline::FromLanguage out{.failure = failure, .parsed = parsed};
  out.diagnostics.push_back(std::move(d));
  return out;
}

pipeline::FromLanguage checked(const Judged& judged) {
  pipeline::FromLanguage out{.diagnostics = judged.diagnostics};
  if (!judged.runs) {
    out.failure = Failure::refuted;
    return out;
  }
  out.findings = findings_of(judged.report);
  const check::Verdict verdict = judged.verdict();
  out.proved = verdict == check::Verdict::proved;
  out.note = out.proved ? "proved for all sizes" : "not proved, so only running it tells:";
  for (const check::Finding& f : judged.report.findings) {
    if (f.verdict != check::Verdict::proved && f.verdict != check::Verdict::refuted)
      out.note += fmt::format(" {} ({})", f.kind->name, f.reason);
    if (f.verdict != check::Verdict::refuted) continue;
    for (const Diagnostic& d : f.diagnostics) out.diagnostics.push_back(d);
  }
  if (verdict == check::Verdict::refuted) out.failure = Failure::refuted;
  return out;
}

}  // namespace

pipeline::FromLanguage kernel_by_hand(const std::string& file, const rules::Pattern& pattern,
                                      const graph::Graph& g, const arch::Arch& arch,
                                      const Json& tunables) {
  Json arguments = {{"kernel", file}, {"set", Json::array()}};
  for (const auto& [name, value] : tunables.items())
    arguments["set"].push_back(fmt::format("{}={}", name, value.get<int64_t>()));
  auto kernel = load_kernel(arguments);
  if (!kernel) return failed(Failure::bad_source, kernel.error(), false);
  auto judged = judge(*kernel);
  if (!judged) return failed(Failure::bad_source, judged.error(), true);
  pipeline::FromLanguage out = checked(*judged);
  if (out.failure != Failure::none) return out;
  auto made = candidate_of(*kernel, pattern, g, arch);
  if (!made) {
    const bool ours = made.error().code == other_tensors.id;
    return failed(ours ? Failure::not_the_pattern : Failure::unsupported, made.error(), true);
  }
  out.candidate = std::move(*made);
  return out;
}

}  // namespace tessera::commands
