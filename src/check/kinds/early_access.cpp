// A kernel that waits for the grids before it is launched so that it may start while they run. What
// they write, or still read, is theirs until the wait returns.
//
// A thread's wait is looked for in the text before its access, in the bodies around it. That
// another thread has waited, and handed on that it did, does not count.
#include <algorithm>

#include "arch/effects.h"

#include "check/kind.h"
#include "core/walk.h"

namespace tessera::check::kinds {
namespace {

constexpr Code early{"TS0889", "check.early_access"};

/// Whether the threads that come to a place have waited.
enum class Waited : uint8_t { no, perhaps, yes };

class Walk {
 public:
  explicit Walk(const Subject& s) : s_(s) {}

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  Waited body(const core::Body& b, Waited before) {
    Waited others = before;  // threads that have come through none of the roles so far
    for (const core::Op& op : b) {
      if (const auto* role = op.as<core::Role>())
        before = less(before, body(role->body, others));
      else
        before = others = after(op, before);
    }
    return before;
  }
  Finding finding;

 private:
  static Waited less(Waited before, Waited inside) {
    return before == inside ? before : Waited::perhaps;
  }

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  Waited after(const core::Op& op, Waited before) {
    if (const auto* lane = op.as<core::Elected>()) return less(before, body(lane->body, before));
    if (const auto* loop = op.as<core::For>()) return less(before, body(loop->body, before));
    if (const auto* branch = op.as<core::If>()) {
      const Waited then = body(branch->body, before);
      return less(then, body(branch->otherwise, before));
    }
    const auto* issue = op.as<core::Issue>();
    if (issue == nullptr) return before;
    if (core::waits_for_grids(*issue->form)) return Waited::yes;
    if (before != Waited::yes) access(op, before);
    return before;
  }

  void access(const core::Op& op, Waited before) {
    const arch::Form& form = *op.as<core::Issue>()->form;
    // Tensor maps are the launch's own.
    const auto touches = [](const arch::Access& a) {
      return a.space == arch::Space::global && a.proxy != arch::Proxy::tensormap;
    };
    const std::vector<arch::Access>& all = form.effects.accesses;
    if (std::none_of(all.begin(), all.end(), touches)) return;
    if (before == Waited::perhaps) {
      if (finding.reason.empty())
        finding.reason =
            fmt::format("whether `grid.wait` comes before `{}` depends on a condition", form.name);
      return;
    }
    Diagnostic d = fail(early, "`{}` touches global memory before `grid.wait`", form.name)
                       .expect("`grid.wait` in the same thread, before it")
                       .but_found("a kernel that may start while the grids before it run")
                       .help("put `grid.wait()` before the roles, where all threads come by")
                       .with("kind", "early_access");
    if (s_.kernel.source != nullptr) {
      d.labels.push_back(
          s_.kernel.source->label(op.span, "a grid before may still use the tensor"));
      d.place = d.labels.front().from;
    }
    finding.diagnostics.push_back(std::move(d));
  }

  const Subject& s_;
};

Finding judge(const Subject& s, const Kind& /*k*/) {
  if (!core::waits_for_grids(s.kernel))
    return proved("it starts when the grids before it have ended");
  Walk walk(s);
  walk.body(s.kernel.body, Waited::no);
  Finding out = std::move(walk.finding);
  if (!out.diagnostics.empty())
    out.verdict = Verdict::refuted;
  else
    out.verdict = out.reason.empty() ? Verdict::proved : Verdict::unknown;
  return out;
}

}  // namespace

extern const Kind early_access = {
    .name = "early_access",
    .number = 33,
    .law =
        "A thread of a kernel that waits for the grids before it touches global memory after that "
        "wait alone.",
    .code = early,
    .judge = judge,
};

}  // namespace tessera::check::kinds
