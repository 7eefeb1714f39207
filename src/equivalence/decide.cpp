#include "equivalence/decide.h"

#include <algorithm>

#include "check/kind.h"
#include "check/place.h"

namespace tessera::equivalence {
namespace {

bool is_open(const check::Finding& f) {
  return f.verdict == check::Verdict::unknown || f.verdict == check::Verdict::unsupported;
}

check::Finding* open_finding(check::Report& report) {
  check::Finding* out = nullptr;
  for (check::Finding& f : report.findings)
    if (is_open(f) && (out == nullptr || f.kind->name == "placement")) out = &f;
  return out;
}

/// A kind's own reason, rather than that it needs another one.
std::string reason_of(const check::Report& report, const check::Finding& told) {
  for (const check::Finding& f : report.findings)
    if (is_open(f) && !f.reason.starts_with("not decided")) return f.reason;
  return told.reason;
}

/// Where the kernel writes global memory first: what is wrong is seen there.
const core::Op* first_store(const core::Kernel& kernel) {
  for (const check::Place& p : check::places(kernel))
    if (const auto* issue = p.op->as<core::Issue>())
      for (const arch::Access& a : issue->form->effects.accesses)
        if (a.space == arch::Space::global && a.action != arch::Action::read) return p.op;
  return nullptr;
}

Diagnostic refutation(const core::Kernel& kernel, const check::Finding& f, const core::Op* store,
                      const std::string& reason, const Answer& a) {
  constexpr std::string_view message = "a run shows that the kernel is wrong";
  Diagnostic d =
      fail(f.kind->code, "{}", message).expect("{}", kernel.means).but_found("{}", a.seen);
  d.notes.push_back(fmt::format("the checker could not decide it: {}", reason));
  d.notes.push_back("replayed: " + a.seen);
  d.helps.emplace_back("look at where this element comes from");
  if (kernel.source != nullptr && store != nullptr) {
    d.labels.push_back(kernel.source->label(store->span, std::string(message)));
    d.place = d.labels.front().from;
  }
  return std::move(d).with("kind", f.kind->name).with("replayed", "same");
}

}  // namespace

Answer decide(const core::Kernel& kernel, const check::Means& means, check::Report& report,
              const Effort& effort) {
  Answer out = compare(kernel, means, report.sizes, effort);
  check::Finding* open = out.seen.empty() || report.verdict() == check::Verdict::refuted
                             ? nullptr
                             : open_finding(report);
  if (open == nullptr) return out;
  const core::Op* store = first_store(kernel);
  open->diagnostics.push_back(refutation(kernel, *open, store, reason_of(report, *open), out));
  if (store != nullptr) open->ops.emplace_back(store, nullptr);
  open->verdict = check::Verdict::refuted;
  open->reason.clear();
  return out;
}

}  // namespace tessera::equivalence
