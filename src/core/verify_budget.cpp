// Registers a thread that roles give back and claim by setmaxnreg, against those that the block was
// launched with (PTX ISA, "setmaxnreg").
#include <algorithm>
#include <map>

#include "core/verifier.h"

namespace tessera::core {
namespace {

/// What a thread has at the launch: the launch bounds leave all that fits to the block's threads.
int64_t at_launch(const Site& site) {
  const Kernel& k = site.kernel;
  const int64_t step = std::max(site.arch.limits.register_step, 1);
  const int64_t share = site.arch.registers_per_multiprocessor / (k.threads * k.min_blocks);
  return std::min<int64_t>(share / step * step, site.arch.limits.most_registers);
}

struct Use {
  int64_t now, most;
};

/// True if the change is one that can be: downwards by dec, upwards by inc.
bool is_change(const Site& site, const RegisterChange& c, Use& use) {
  if (!c.always) {
    Diagnostic d = fail(undecided, "could not decide whether all warps of a role change registers")
                       .expect("setmaxnreg in the role's own body")
                       .help("move it out of branches and loops");
    d.level = Level::warning;
    site.report(std::move(d));
    return false;
  }
  if (c.claims ? c.registers < use.now : c.registers > use.now) {
    site.report(
        fail(bad_structure, "setmaxnreg.{} does not go {}", c.claims ? "inc" : "dec",
             c.claims ? "up" : "down")
            .expect("at {} {}, which a thread has here", c.claims ? "least" : "most", use.now)
            .but_found("{}", c.registers));
    return false;
  }
  return true;
}

}  // namespace

void verify_budget(const Site& top, const std::vector<RegisterChange>& changes) {
  if (changes.empty()) return;
  Site site = top;
  const int64_t launch = at_launch(top);
  std::map<const Role*, Use> uses;
  for (const RegisterChange& c : changes) {
    site.op = c.op;
    if (c.role == nullptr)
      return site.report(fail(bad_structure, "setmaxnreg stands outside of a role")
                             .expect("in the body of a role"));
    const bool fresh = uses.count(c.role) == 0;
    Use& use = uses.try_emplace(c.role, Use{launch, launch}).first->second;
    if (!is_change(site, c, use)) return;
    use.now = c.registers;
    use.most = fresh ? c.registers : std::max(use.most, c.registers);
  }
  int64_t warps = top.kernel.threads / 32, total = 0;
  std::string parts;
  for (const Op& op : top.kernel.body) {
    const auto* r = op.as<Role>();
    const auto use = r == nullptr ? uses.end() : uses.find(r);
    if (use == uses.end()) continue;
    warps -= r->warps;
    total += int64_t{32} * r->warps * use->second.most;
    parts += fmt::format("{}`{}` {} x {}", parts.empty() ? "" : ", ", r->name, 32 * r->warps,
                         use->second.most);
    site.op = &op;
  }
  if (warps > 0) {
    total += 32 * warps * launch;
    parts += fmt::format(", other threads {} x {}", 32 * warps, launch);
  }
  if (total <= launch * top.kernel.threads) return;
  site.report(fail(bad_structure, "roles claim more registers than the block has")
                  .expect("at most {}: {} threads of {} registers", launch * top.kernel.threads,
                          top.kernel.threads, launch)
                  .but_found("{}: {}", total, parts)
                  .help("give back more in the roles that need less"));
}

}  // namespace tessera::core
