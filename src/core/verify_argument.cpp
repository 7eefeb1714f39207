// Arguments against the operands of their form: kinds, counts, ranges, alignments.
#include <algorithm>
#include <array>

#include "base/text.h"

#include "core/operand.h"
#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

using arch::OperandKind;

/// Bytes that tensors begin at multiples of.
constexpr int64_t tensor_alignment = 16;

std::string_view kind_of(const Argument& a) {
  static constexpr std::array<std::string_view, 6> names = {"shared memory",      "an mbarrier",
                                                            "a tensor's element", "a tensor map",
                                                            "registers",          "integers"};
  return names.at(a.index());
}

/// low, low + step, ..., high
struct Range {
  int64_t low, high, step;
};

/// Values that the operand may have: by its form, and by the block and the cluster of this kernel.
std::optional<Range> range_of(const Issued& i, const arch::Operand& o) {
  std::optional<Range> out;
  if (o.low != o.high) out = Range{o.low, o.high, o.step};
  const Kernel& k = i.site.kernel;
  const auto at_most = [&](int64_t high) {
    if (!out) out = Range{0, high, 1};
    out->high = std::min(out->high, high);
  };
  for (const arch::Event& e : i.form().effects.events) {
    const bool counts = e.amount.of == arch::Amount::Of::operand && e.amount.name == o.name;
    if (e.kind == arch::EventKind::named_barrier && counts) at_most(k.threads);
    if (e.block == o.name) at_most(k.cluster - 1);
    if (e.blocks == o.name) at_most((int64_t{1} << k.cluster) - 1);
  }
  return out;
}

struct Checker {
  const Issued& i;
  const arch::Operand& operand;
  std::size_t at;
  std::optional<Range> range = range_of(i, operand);
  [[nodiscard]] Span span() const { return i.span(at); }
  [[nodiscard]] const Argument& argument() const { return i.issue.arguments[at]; }
  [[nodiscard]] std::string text() const { return to_string(i.site.kernel, argument()); }

  bool wrong(std::string_view expected) const {
    i.site.report(fail(bad_argument, "`{}` is given the wrong kind of argument for `{}`",
                       i.form().name, operand.name)
                      .expect("{}", expected)
                      .but_found("`{}`, which is {}", text(), kind_of(argument())),
                  span());
    return false;
  }

  [[nodiscard]] std::string range_text(const Range& r) const {
    const std::string all = fmt::format("{} to {}", r.low, r.high);
    return r.step == 1 ? all : fmt::format("{} in steps of {}", all, r.step);
  }

  /// Every lane that uses the address: those alone that an ldmatrix reads, or whose flag is set.
  [[nodiscard]] Site where_used() const {
    Site site = i.site;
    for (const arch::Access& a : i.form().effects.accesses) {
      if (a.operand != operand.name) continue;
      const auto lanes = value_of(a.lanes, i.issue.choices);
      if (a.place == arch::Place::rows && lanes && *lanes < 32)
        site.conditions.push_back(less(site.kernel.at.lane, site.pool().constant(*lanes)));
      const Argument* flag = a.unless_zero.empty() ? nullptr : i.argument(a.unless_zero);
      if (const auto* n = flag == nullptr ? nullptr : std::get_if<Integers>(flag);
          n != nullptr && n->values.size() == 1 && n->values[0] && !n->values[0]->predicate())
        site.conditions.push_back(logical_not(equals(n->values[0], site.pool().constant(0))));
    }
    return site;
  }

  void aligned(const Site& site, Term bytes, int64_t alignment) const {
    if (alignment <= 1 || bytes->facts.multiple_of(alignment)) return;
    site.prove({.holds = equals(floor_mod(bytes, alignment), site.pool().constant(0)),
                .code = bad_argument,
                .wrong = fmt::format("`{}` of `{}` is not aligned", operand.name, i.form().name),
                .expected = fmt::format("a multiple of {} bytes", alignment),
                .found = "byte " + quoted(bytes),
                .whether = fmt::format("`{}` of `{}` is aligned", operand.name, i.form().name)},
               span());
  }

  bool shared() const {
    if (operand.name == "barrier") return barrier();
    const auto* a = std::get_if<SharedAt>(&argument());
    if (a == nullptr) return wrong("shared memory: `a[...]`");
    const Shared& s = i.site.kernel[a->shared];
    if (static_cast<int>(a->at.size()) != s.layout.rank()) {
      i.site.report(fail(bad_argument, "`{}` is given the wrong number of indices", s.name)
                        .expect("{}, one a mode", s.layout.rank())
                        .but_found("{}", a->at.size()),
                    span());
      return false;
    }
    const Site site = where_used();
    for (std::size_t m = 0; m < a->at.size(); ++m) {
      if (!site.known(a->at[m], span())) return false;
      if (!site.prove_range(a->at[m], 1, s.layout.mode(static_cast<int>(m)).size(), bad_argument,
                            fmt::format("index {} of `{}`", m, s.name), span()))
        return false;
    }
    // Boxes and matrices see to it themselves, and to more than 16 bytes, which a swizzle moves.
    const Term byte = address_term(i.site.kernel, *a);
    if (operand.kind == OperandKind::descriptor) return true;
    aligned(site, byte, std::min<int64_t>(operand.alignment, 16));
    for (const arch::Access& access : i.form().effects.accesses)
      if (access.operand == operand.name) ends_inside(site, s, byte, access.bytes);
    return true;
  }

  /// What is accessed from `byte` on ends where the shared memory does, or before.
  void ends_inside(const Site& site, const Shared& s, Term byte, const arch::Amount& bytes) const {
    const auto known = value_of(bytes, i.issue.choices);
    Term count = known ? site.pool().constant(*known) : Term();
    if (bytes.of == arch::Amount::Of::operand)
      if (const auto* n = std::get_if<Integers>(i.argument(bytes.name));
          n != nullptr && n->values.size() == 1 && n->values[0] && !n->values[0]->predicate())
        count = n->values[0] * bytes.times;
    if (!count) return;
    const int64_t end = s.at + s.bytes();
    site.prove(
        {.holds = less_equal(byte + count, site.pool().constant(end)),
         .code = bad_argument,
         .wrong = fmt::format("`{}` reaches beyond `{}`", i.form().name, s.name),
         .expected = fmt::format("an end at byte {} or before", end),
         .found = fmt::format("{} bytes from byte {} on", term::to_string(count), quoted(byte)),
         .whether = fmt::format("`{}` ends within `{}`", i.form().name, s.name)},
        span());
  }

  bool barrier() const {
    const auto* b = std::get_if<BarrierAt>(&argument());
    if (b == nullptr) return wrong("an mbarrier: `full[...]`");
    const Barriers& all = i.site.kernel[b->barriers];
    return i.site.known(b->slot, span()) &&
           i.site.prove_range(b->slot, 1, all.count, bad_argument,
                              fmt::format("the slot of `{}`", all.name), span());
  }

  bool global() const {
    const auto* g = std::get_if<GlobalAt>(&argument());
    if (g == nullptr) return wrong("a tensor's element: `A[...]`");
    const Tensor& t = i.site.kernel[g->tensor];
    if (!writable(t)) return false;
    if (g->at.size() != t.strides.size()) {
      i.site.report(fail(bad_argument, "`{}` is given the wrong number of indices", t.name)
                        .expect("{}, one a dimension", t.strides.size())
                        .but_found("{}", g->at.size()),
                    span());
      return false;
    }
    Term sum = i.site.pool().constant(0);
    for (std::size_t d = 0; d < g->at.size(); ++d) {
      if (!i.site.known(g->at[d], span())) return false;
      sum = sum + g->at[d] * t.strides[d];
    }
    aligned(where_used(), sum * int64_t{size_of(t.element)},
            std::min(operand.alignment, tensor_alignment));
    return true;
  }

  /// Of a tensor that the instruction reaches by this operand.
  bool writable(const Tensor& t) const {
    const std::vector<arch::Access>& all = i.form().effects.accesses;
    const bool writes = std::any_of(all.begin(), all.end(), [&](const arch::Access& a) {
      return a.space == arch::Space::global && a.action != arch::Action::read &&
             a.operand == operand.name;
    });
    if (!writes || t.access != Access::input) return true;
    i.site.report(fail(bad_argument, "`{}` writes `{}`, which is an input", i.form().name, t.name)
                      .expect("a tensor that is `out` or `workspace`"),
                  span());
    return false;
  }

  bool map() const {
    const auto* m = std::get_if<MapRef>(&argument());
    if (m == nullptr) return wrong("a tensor map");
    if (!writable(i.site.kernel[i.site.kernel[m->map].tensor])) return false;
    const auto rank = value_of(arch::Amount::modifier("rank"), i.issue.choices);
    const TensorMap& map = i.site.kernel[m->map];
    if (!rank || *rank == static_cast<int64_t>(map.dims.size())) return true;
    i.site.report(fail(bad_argument, "`{}` and `{}` have different ranks", i.form().name, map.name)
                      .expect("rank={}", map.dims.size())
                      .but_found("rank={}", *rank),
                  span());
    return false;
  }

  bool immediate() const {
    const auto* n = std::get_if<Integers>(&argument());
    if (n == nullptr || n->values.size() != 1) return wrong("one integer");
    if (!i.site.known(n->values[0], span())) return false;
    const auto values = i.site.values(n->values[0]);
    if (!values) {
      i.site.report(
          fail(bad_argument, "`{}` of `{}` is not constant", operand.name, i.form().name)
              .expect("constants and counters of unrolled loops: it stands in the instruction")
              .but_found("`{}`", text()),
          span());
      return false;
    }
    return std::all_of(values->begin(), values->end(), [&](int64_t v) { return in_range(v); });
  }
  bool in_range(int64_t v) const {
    if (!range || (v >= range->low && v <= range->high && (v - range->low) % range->step == 0))
      return true;
    i.site.report(fail(bad_argument, "`{}` of `{}` is out of range", operand.name, i.form().name)
                      .expect("{}", range_text(*range))
                      .but_found("{}", v),
                  span());
    return false;
  }

  bool value() const {
    if (const auto* s = std::get_if<Slice>(&argument())) {
      if (!verify_slice(i, at, *s)) return false;
      if (range) unknown_range();
      return true;
    }
    const auto* n = std::get_if<Integers>(&argument());
    if (operand.direction != arch::Direction::in) return wrong("registers: `acc[...]`");
    if (n == nullptr || operand.kind == OperandKind::f32)
      return wrong(n == nullptr ? "registers or integers" : "registers of f32: `acc[...]`");
    const int64_t wanted = value_of(operand.registers, i.issue.choices).value_or(1);
    if (static_cast<int64_t>(n->values.size()) != wanted) {
      i.site.report(fail(bad_argument, "`{}` is given the wrong number of integers for `{}`",
                         i.form().name, operand.name)
                        .expect("{}", wanted)
                        .but_found("{}: `{}`", n->values.size(), text()),
                    span());
      return false;
    }
    for (const Term t : n->values) {
      if (!i.site.known(t, span())) return false;
      if (!range) continue;
      if (const auto c = t->facts.constant()) {
        if (!in_range(*c)) return false;
        continue;
      }
      bounded(t);
    }
    return true;
  }
  void bounded(Term t) const {
    term::Pool& pool = i.site.pool();
    Term holds = logical_and(less_equal(pool.constant(range->low), t),
                             less_equal(t, pool.constant(range->high)));
    if (range->step != 1)
      holds = logical_and(holds, equals(floor_mod(t - range->low, range->step), pool.constant(0)));
    i.site.prove({.holds = holds,
                  .code = bad_argument,
                  .wrong = fmt::format("`{}` of `{}` is out of range", operand.name, i.form().name),
                  .expected = range_text(*range),
                  .found = fmt::format("`{}`", term::to_string(t)),
                  .whether = fmt::format("`{}` of `{}` is in range", operand.name, i.form().name)},
                 span());
  }
  void unknown_range() const {
    Diagnostic d = fail(undecided, "could not decide whether `{}` of `{}` is in range",
                        operand.name, i.form().name)
                       .expect("{}", range_text(*range))
                       .but_found("what `{}` holds", text())
                       .help("pass an index term");
    d.level = Level::warning;
    i.site.report(std::move(d), span());
  }

  bool run() const {
    switch (operand.kind) {
      case OperandKind::shared:
      case OperandKind::cluster_shared:
      case OperandKind::descriptor:
        return shared();
      case OperandKind::global:
        return global();
      case OperandKind::tensor_map:
        return map();
      case OperandKind::immediate:
        return immediate();
      case OperandKind::b16:
      case OperandKind::b32:
      case OperandKind::b64:
      case OperandKind::f32:
        return value();
    }
    return false;
  }
};

}  // namespace

bool verify_arguments(const Issued& i) {
  const auto& operands = i.form().operands;
  if (operands.size() != i.issue.arguments.size()) {
    std::vector<std::string> names;
    for (const arch::Operand& o : operands) names.emplace_back(o.name);
    i.site.report(fail(bad_argument, "`{}` is given the wrong number of arguments", i.form().name)
                      .expect("{}: {}", operands.size(), names.empty() ? "none" : join(names, ", "))
                      .but_found("{}", i.issue.arguments.size()));
    return false;
  }
  bool right = true;
  for (std::size_t at = 0; at < operands.size(); ++at)
    right = Checker{i, operands[at], at}.run() && right;
  return right;
}

}  // namespace tessera::core
