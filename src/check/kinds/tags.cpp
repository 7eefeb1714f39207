// What an author asserts of tags: elements carry the values that are said, the same, or others.
//
// Tags are followed from tensors through copies, shared memory, products and registers to the
// assertion, for all sizes; what nothing tags agrees with nothing.
#include "check/kind.h"

namespace tessera::check::kinds {
namespace {

Finding judge(const Subject& s, const Kind& k) {
  if (!s.assertions) return unknown("not decided where synchronization is not proved");
  const Assertions& a = *s.assertions;
  Finding out;
  for (const Violation& v : a.violations) {
    out.diagnostics.push_back(refutation(s, k, v));
    // What loads the element is mended, not the assertion.
    out.ops.emplace_back(v.chain.empty() ? v.op : v.chain.front().first,
                         v.chain.size() < 2 ? nullptr : v.chain[1].first);
  }
  if (!out.diagnostics.empty()) {
    out.verdict = Verdict::refuted;
    return out;
  }
  if (a.proved == a.all)
    return proved(a.all == 0 ? "nothing is asserted"
                             : fmt::format("{} assertion{}", a.all, a.all == 1 ? "" : "s"));
  const auto* source = s.kernel.source.get();
  const std::string where =
      source != nullptr && a.undecided != nullptr
          ? fmt::format("line {}: ", source->place(a.undecided->span.begin).line)
          : "";
  return unknown(where + a.why);
}

}  // namespace

extern const Kind tags = {
    .name = "tags",
    .number = 34,
    .law =
        "Every element that an author asserts something of carries under the tag's name the value "
        "that is asserted, the same as the other element, or another one.",
    .code = {"TS0886", "check.tags"},
    .judge = judge,
};

}  // namespace tessera::check::kinds
