#include "check/assertions.h"

#include <algorithm>
#include <stdexcept>

#include "check/tag_walk.h"
#include "core/walk.h"

namespace tessera::check {
namespace {

constexpr int most_dimensions = 8;  // of a tensor

/// Names, tensors' tags, and the symbols that get numbers in a walk.
void gather(Tagging& t) {
  const core::Kernel& k = t.kernel;
  t.numbered.insert(k.at.lane.node());
  t.numbered.insert(k.at.warp.node());
  core::for_each_op(k.body, [&](const core::Op& op) {
    if (const auto* l = op.as<core::For>(); l != nullptr && l->unroll)
      t.numbered.insert(l->counter.node());
    if (const auto* r = op.as<core::Role>()) t.numbered.insert(r->warp.node());
    if (const auto* a = op.as<core::AssertTag>()) {
      for (const Term s : a->over) t.numbered.insert(s.node());
      t.decided[&op];
    }
    const auto* tag = op.as<core::Tag>();
    if (tag == nullptr) return;
    const auto* tensor = std::get_if<core::GlobalAt>(&tag->at);
    if (tensor == nullptr)
      for (const Term s : tag->over) t.numbered.insert(s.node());
    else if (tag->value)
      t.tensors[tensor->tensor.index].push_back(
          {&op,
           static_cast<int>(std::find(t.names.begin(), t.names.end(), tag->name) - t.names.begin()),
           tag->value, tensor->at});
  });
  for (int d = 0; d < most_dimensions; ++d) {
    const std::string name = fmt::format("u{}", d);
    // With a point in its name, it is nobody's symbol.
    const Result<Term> u =
        k.pool->derive("box." + name, term::Op::coordinate,
                       {k.pool->constant(0), k.pool->constant(int64_t{1} << 16)});
    if (!u) throw std::logic_error("a place in a box: " + u.error().message);
    t.offsets[name] = *u;
    t.numbered.insert(u->node());
  }
}

bool asserts(const core::Body& body) {
  bool any = false;
  core::for_each_op(body,
                    [&](const core::Op& op) { any = any || op.as<core::AssertTag>() != nullptr; });
  return any;
}

}  // namespace

Assertions assertions(const core::Kernel& kernel, const Runs& runs) {
  std::vector<std::string> names;
  Assertions out;
  core::for_each_op(kernel.body, [&](const core::Op& op) {
    const auto* tag = op.as<core::Tag>();
    const auto* a = op.as<core::AssertTag>();
    out.all += a != nullptr ? 1 : 0;
    if (tag == nullptr && a == nullptr) return;
    const std::string& name = tag != nullptr ? tag->name : a->name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  if (out.all == 0) return out;
  Tagging tagging{
      kernel, runs, places(kernel), names, {}, {}, {}, Carried(*kernel.pool, names.size()), {}, {}};
  gather(tagging);
  bool outside = false;
  for (const core::Op& op : kernel.body) {
    const auto* role = op.as<core::Role>();
    if (role != nullptr && asserts(role->body)) TagWalk(tagging, role).run();
    outside = outside || (role == nullptr && asserts({op}));
  }
  if (outside) TagWalk(tagging, nullptr).run();
  core::for_each_op(kernel.body, [&](const core::Op& op) {
    if (op.as<core::AssertTag>() == nullptr) return;
    const Decided& d = tagging.decided[&op];
    if (d.refuted) {
      out.violations.push_back(*d.refuted);
    } else if (d.reached && d.why.empty()) {
      ++out.proved;
    } else if (out.undecided == nullptr) {
      out.undecided = &op;
      out.why = d.reached ? d.why : "no thread is known to come to it";
    }
  });
  return out;
}

}  // namespace tessera::check
