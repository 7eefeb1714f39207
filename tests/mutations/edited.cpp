// Which lines an edit changed: the two bodies compared op by op.
#include "core/print.h"
#include "mutations/study.h"

namespace tessera::mutations {
namespace {

using core::Body;
using core::Kernel;
using core::Op;

std::vector<const Body*> bodies_of(const Op& op) {
  if (const auto* loop = op.as<core::For>()) return {&loop->body};
  if (const auto* branch = op.as<core::If>()) return {&branch->body, &branch->otherwise};
  if (const auto* elected = op.as<core::Elected>()) return {&elected->body};
  if (const auto* role = op.as<core::Role>()) return {&role->body};
  return {};
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
std::string text_of(const Kernel& k, const Op& op) {
  std::string out = core::head_of(k, op);
  for (const Body* b : bodies_of(op)) {
    out += "{";
    for (const Op& inner : *b) out += text_of(k, inner) + "\n";
    out += "}";
  }
  return out;
}

class Compare {
 public:
  Compare(const Kernel& original, const Kernel& mutant) : original_(original), mutant_(mutant) {}

  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void bodies(const Body& a, const Body& b) {
    std::vector<std::string> as, bs;
    for (const Op& op : a) as.push_back(text_of(original_, op));
    for (const Op& op : b) bs.push_back(text_of(mutant_, op));
    std::size_t first = 0, last = 0;
    while (first < as.size() && first < bs.size() && as[first] == bs[first]) ++first;
    while (last < as.size() - first && last < bs.size() - first &&
           as[as.size() - 1 - last] == bs[bs.size() - 1 - last])
      ++last;
    const std::size_t gone = as.size() - first - last, come = bs.size() - first - last;
    if (gone == 0 && come == 0) return;
    if (gone == come && within(a, b, first, gone)) return;
    std::set<std::string> touched;
    for (std::size_t i = first; i < first + gone; ++i) touched.merge(storages_of(original_, a[i]));
    for (std::size_t i = first; i < first + come; ++i) {
      touched.merge(storages_of(mutant_, b[i]));
      line(b[i]);
    }
    if (come == 0) {
      if (first > 0) line(b[first - 1]);
      if (first < b.size()) line(b[first]);
    }
    for (std::size_t i = first; i < first + gone; ++i) ordered(a[i], touched);
    for (std::size_t i = first; i < first + come; ++i) ordered(b[i], touched);
    // What stands beside a barrier or a fence is what it orders.
    for (const auto& [body, at] : around_)
      if (touched.empty()) beside(*body, at, 1, touched);
    if (touched.empty() || come == 0) beside(b, first, come, touched);
    out.storages.merge(touched);
  }

  Edited out;

 private:
  /// Ops with the same heads differ in their bodies.
  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  bool within(const Body& a, const Body& b, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      if (bodies_of(a[i]).size() != bodies_of(b[i]).size() || bodies_of(a[i]).empty() ||
          core::head_of(original_, a[i]) != core::head_of(mutant_, b[i]))
        return false;
    for (std::size_t i = first; i < first + count; ++i)
      for (std::size_t j = 0; j < bodies_of(a[i]).size(); ++j)
        around_.insert(around_.begin(), {&b, i}), bodies(*bodies_of(a[i])[j], *bodies_of(b[i])[j]);
    return true;
  }
  /// Waits, commits and fences of products and of bulk stores name no storage: they order all that
  /// the kernel's products, or its stores, touch.
  void ordered(const Op& op, std::set<std::string>& touched) const {
    const auto* issue = op.as<core::Issue>();
    if (issue == nullptr) return;
    const std::string& form = issue->form->name;
    const bool products = form.starts_with("wgmma."), stores = form.starts_with("bulk.");
    if (products || stores) forms(mutant_.body, products ? "wgmma." : "store", touched);
  }
  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void forms(const Body& body, std::string_view word, std::set<std::string>& touched) const {
    for (const Op& op : body) {
      const auto* issue = op.as<core::Issue>();
      if (issue != nullptr && issue->form->name.find(word) != std::string::npos)
        touched.merge(storages_of(mutant_, op));
      for (const Body* inner : bodies_of(op)) forms(*inner, word, touched);
    }
  }
  void beside(const Body& body, std::size_t first, std::size_t count,
              std::set<std::string>& touched) const {
    for (std::size_t i = first > 2 ? first - 2 : 0; i < body.size() && i < first + count + 2; ++i)
      touched.merge(storages_of(mutant_, body[i]));
  }
  void line(const Op& op) {
    if (mutant_.source) out.lines.insert(mutant_.source->place(op.span.begin).line);
  }

  const Kernel& original_;
  const Kernel& mutant_;
  std::vector<std::pair<const Body*, std::size_t>> around_;  // the innermost first
};

/// The storages that differ: their names, their lines.
template <class T>
void compare(const std::vector<T>& a, const std::vector<T>& b, const Kernel& mutant,
             const std::function<bool(const T&, const T&)>& same, Edited& out) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (same(a[i], b[i])) continue;
    out.storages.insert(b[i].name);
    if (mutant.source) out.lines.insert(mutant.source->place(b[i].span.begin).line);
  }
}

const std::string& storage_of(const Kernel& k, const core::Tagged& at) {
  if (const auto* s = std::get_if<core::SharedAt>(&at)) return k[s->shared].name;
  if (const auto* r = std::get_if<core::Slice>(&at)) return k[r->registers].name;
  return k[std::get<core::GlobalAt>(at).tensor].name;
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
std::set<std::string> storages_of(const Kernel& k, const Op& op) {
  std::set<std::string> out;
  if (const auto* issue = op.as<core::Issue>()) {
    for (const core::Argument& a : issue->arguments) {
      if (const auto* s = std::get_if<core::SharedAt>(&a)) out.insert(k[s->shared].name);
      if (const auto* s = std::get_if<core::BarrierAt>(&a)) out.insert(k[s->barriers].name);
      if (const auto* s = std::get_if<core::GlobalAt>(&a)) out.insert(k[s->tensor].name);
      if (const auto* s = std::get_if<core::MapRef>(&a)) out.insert(k[s->map].name);
      if (const auto* s = std::get_if<core::Slice>(&a)) out.insert(k[s->registers].name);
    }
  } else if (const auto* c = op.as<core::Compute>()) {
    for (const auto& in : c->inputs)
      if (const auto* run = std::get_if<core::Run>(&in)) out.insert(k[run->registers].name);
    for (const core::Run& run : c->results) out.insert(k[run.registers].name);
  } else if (const auto* t = op.as<core::Tag>()) {
    out.insert(storage_of(k, t->at));
  } else if (const auto* a = op.as<core::AssertTag>()) {
    out.insert(storage_of(k, a->at));
    if (const auto* other = std::get_if<core::Tagged>(&a->to)) out.insert(storage_of(k, *other));
  }
  for (const Body* b : bodies_of(op))
    for (const Op& inner : *b) out.merge(storages_of(k, inner));
  return out;
}

Edited edited(const Kernel& original, const Kernel& mutant) {
  Compare c(original, mutant);
  c.bodies(original.body, mutant.body);
  compare<core::Shared>(
      original.shared, mutant.shared, mutant,
      [](const auto& a, const auto& b) {
        return a.swizzle == b.swizzle && a.at == b.at && to_string(a.layout) == to_string(b.layout);
      },
      c.out);
  compare<core::TensorMap>(
      original.maps, mutant.maps, mutant,
      [](const auto& a, const auto& b) {
        return a.swizzle == b.swizzle && a.box == b.box && a.dims == b.dims &&
               a.rounded == b.rounded;
      },
      c.out);
  return c.out;
}

}  // namespace tessera::mutations
