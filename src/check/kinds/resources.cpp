// A block fits a multiprocessor of sm_90a: threads, shared memory, and registers after setmaxnreg.
//
// A kernel that moves registers between its warps is compiled for the same number of each thread;
// what the roles claim together must not be more than the multiprocessor has for as many blocks as
// must fit.
#include "arch/arch.h"

#include "check/kind.h"
#include "check/place.h"

namespace tessera::check::kinds {
namespace {

constexpr Code too_much{"TS0879", "check.resources"};

Diagnostic refuse(std::string_view what, int64_t most, int64_t has, std::string_view help) {
  return fail(too_much, "a block has more {} than a multiprocessor", what)
      .expect("at most {}", most)
      .but_found("{}", has)
      .help("{}", help)
      .with("kind", "resources");
}

/// Registers of the block after every setmaxnreg; nothing where the kernel has none. The last one
/// of a role counts; roles without one keep what the launch gives.
std::optional<int64_t> registers(const core::Kernel& kernel, int64_t all) {
  const int64_t launched = all / kernel.min_blocks / kernel.threads / 8 * 8;
  std::map<const core::Role*, int64_t> claims;
  for (const Place& p : places(kernel))
    if (p.op->as<core::Issue>() != nullptr && p.issue().form->name.starts_with("setmaxnreg"))
      if (const auto* n = argument<core::Integers>(p.issue(), "registers"))
        claims[p.role] = value_of(n->values[0], {}).value_or(0);
  if (claims.empty()) return std::nullopt;
  int64_t sum = 0;
  for (const core::Op& op : kernel.body)
    if (const auto* role = op.as<core::Role>()) {
      const auto claimed = claims.find(role);
      sum += int64_t{32} * role->warps * (claimed == claims.end() ? launched : claimed->second);
    }
  return sum;
}

Finding judge(const Subject& s, const Kind& /*k*/) {
  Finding out;
  const Result<const arch::Arch*> arch = arch::find("sm_90a");
  if (!arch) return unknown(arch.error().message);
  const core::Kernel& k = s.kernel;
  if (k.threads > (*arch)->limits.threads_per_block)
    out.diagnostics.push_back(
        refuse("threads", (*arch)->limits.threads_per_block, k.threads, "have fewer warps"));
  const int64_t shared = (*arch)->shared_memory_per_block / k.min_blocks;
  if (k.shared_bytes() > shared)
    out.diagnostics.push_back(refuse("bytes of shared memory", shared, k.shared_bytes(),
                                     "have fewer stages, or smaller tiles"));
  const int64_t most = (*arch)->registers_per_multiprocessor / k.min_blocks;
  if (const std::optional<int64_t> sum = registers(k, (*arch)->registers_per_multiprocessor);
      sum && *sum > most)
    out.diagnostics.push_back(
        refuse("registers", most, *sum,
               "claim fewer by `setmaxnreg.inc`, or keep fewer by `setmaxnreg.dec`"));
  out.verdict = out.diagnostics.empty() ? Verdict::proved : Verdict::refuted;
  return out;
}

}  // namespace

extern const Kind resources = {
    .name = "resources",
    .number = 22,
    .law = "A block's threads, shared memory and registers fit a multiprocessor of sm_90a.",
    .code = too_much,
    .judge = judge,
};

}  // namespace tessera::check::kinds
