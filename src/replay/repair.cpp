#include "replay/repair.h"

#include <algorithm>
#include <set>

#include "arch/arch.h"

#include "check/kind.h"
#include "core/verify.h"
#include "core/walk.h"
#include "replay/edits.h"

namespace tessera::replay {
namespace {

using check::Finding;
using check::Verdict;

/// Its number in the order of core::for_each_op.
int number_of(const core::Kernel& kernel, const core::Op* op) {
  int n = 0, found = -1;
  core::for_each_op(kernel.body, [&](const core::Op& o) {
    if (&o == op) found = n;
    ++n;
  });
  return found;
}

/// A machine can run it, nothing is refuted of it, and all is proved that a kernel with this
/// meaning can be held to.
bool is_proved(const core::Kernel& kernel, const std::optional<check::Means>& means,
               const check::Report& before, int64_t events) {
  const auto arch = arch::find("sm_90a");
  if (!arch) return false;
  for (const Diagnostic& d : core::verify(kernel, **arch))
    if (d.level == Level::error) return false;
  check::Effort effort;
  effort.events = events;
  const check::Report r = check::check(kernel, effort, means);
  return std::all_of(r.findings.begin(), r.findings.end(), [&](const Finding& f) {
    if (f.verdict == Verdict::proved) return true;
    // Without a meaning, kinds that compare with it are never decided.
    const Finding* was = before.find(f.kind->name);
    return f.verdict == Verdict::unknown && was->verdict == Verdict::unknown && !means &&
           f.reason == "the kernel's meaning is not stated";
  });
}

}  // namespace

std::optional<Repair> repair(const core::Kernel& kernel, const std::optional<check::Means>& means,
                             const check::Report& refuted, const RepairEffort& effort) {
  std::set<std::string> tried;
  int left = effort.edits;
  std::vector<std::vector<CandidateEdit>> all;  // by refutation
  for (const Finding& f : refuted.findings)
    if (f.verdict == Verdict::refuted && !f.ops.empty())
      all.push_back(edits_at(kernel, *f.ops.front().first, f.ops.front().second));
  // In turns, so that each refutation has its likely ones tried.
  for (std::size_t i = 0; left > 0; ++i) {
    bool any = false;
    for (const std::vector<CandidateEdit>& edits : all) {
      if (i >= edits.size() || left == 0) continue;
      any = true;
      const CandidateEdit& edit = edits[i];
      if (!tried.insert(edit.text).second) continue;
      core::Kernel copy = kernel;
      const std::optional<Spot> spot = spot_of(copy, number_of(kernel, edit.at));
      if (!spot) continue;
      --left;
      edit.apply(copy, *spot);
      if (is_proved(copy, means, refuted, effort.events)) return Repair{edit.text, edit.at->span};
    }
    if (!any) break;
  }
  return std::nullopt;
}

void show(const Repair& r, const core::Kernel& kernel, check::Report& report) {
  std::string where;
  if (kernel.source != nullptr && r.span.end > r.span.begin) {
    const tessera::Place place = kernel.source->place(r.span.begin);
    where = fmt::format(" (line {}: `{}`)", place.line,
                        std::string(kernel.source->text(r.span)).substr(0, 120));
  }
  for (Finding& f : report.findings)
    if (f.verdict == Verdict::refuted && !f.diagnostics.empty()) {
      Diagnostic told = f.diagnostics.front();
      f.diagnostics.front() =
          std::move(told).help("{}{} is proved", r.edit, where).with("repair", r.edit);
    }
}

}  // namespace tessera::replay
