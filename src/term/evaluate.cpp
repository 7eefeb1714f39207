#include "term/evaluate.h"

#include <algorithm>

#include "base/text.h"

namespace tessera::term {
namespace {

class Evaluator {
 public:
  explicit Evaluator(const Assignment& a, Assignment* used = nullptr) : given_(a), used_(used) {}

  Result<int64_t> of(Term t) {
    switch (t->op) {
      case Op::constant:
      case Op::truth:
        return t->value;
      case Op::coordinate:
      case Op::counter:
      case Op::parameter:
        return leaf(t);
      case Op::read:
        return read(t);
      case Op::select: {
        TESSERA_TRY(condition, of(t->args[0]));
        return of(t->args[condition != 0 ? 1 : 2]);
      }
      case Op::logical_not: {
        TESSERA_TRY(inner, of(t->args[0]));
        return inner == 0 ? 1 : 0;
      }
      default:
        break;
    }
    TESSERA_TRY(a, of(t->args[0]));
    if (t->op == Op::logical_and && a == 0) return 0;
    if (t->op == Op::logical_or && a != 0) return 1;
    TESSERA_TRY(b, of(t->args[1]));
    return binary(t, a, b);
  }

 private:
  static Result<int64_t> fitting(Term t, Wide value) {
    if (const auto narrowed = narrow(value)) return *narrowed;
    return error(fail(overflow, "`{}` does not fit 64 bits", to_string(t)));
  }
  static Result<int64_t> binary(Term t, int64_t a, int64_t b) {
    switch (t->op) {
      case Op::add:
        return fitting(t, Wide{a} + b);
      case Op::subtract:
        return fitting(t, Wide{a} - b);
      case Op::multiply:
        return fitting(t, Wide{a} * b);
      case Op::divide:
      case Op::remainder:
        if (b < 1) return error(fail(inadmissible, "`{}` divides by {}", to_string(t), b));
        return t->op == Op::divide ? floor_quotient(a, b) : floor_remainder(a, b);
      case Op::bit_xor:
        return a ^ b;
      case Op::bit_and:
        return a & b;
      case Op::bit_or:
        return a | b;
      case Op::shift_left:
      case Op::shift_right:
        if (b < 0 || b > 62) return error(fail(inadmissible, "`{}` shifts by {}", to_string(t), b));
        return t->op == Op::shift_left ? fitting(t, Wide{a} * (Wide{1} << b)) : a >> b;
      case Op::min:
        return std::min(a, b);
      case Op::max:
        return std::max(a, b);
      case Op::equal:
        return a == b ? 1 : 0;
      case Op::not_equal:
        return a != b ? 1 : 0;
      case Op::less:
        return a < b ? 1 : 0;
      case Op::less_equal:
        return a <= b ? 1 : 0;
      default:
        return b;  // and, or: the first did not decide
    }
  }
  static Result<int64_t> checked(const std::string& name, const Facts& facts, int64_t value) {
    if (facts.holds(value)) return value;
    return error(fail(inadmissible, "{} = {} is not admissible", name, value)
                     .expect("{}", to_string(facts)));
  }
  Result<int64_t> leaf(Term t) {
    const auto it = given_.symbols.find(t->symbol->name);
    if (it == given_.symbols.end())
      return error(fail(inadmissible, "`{}` has no value", t->symbol->name));
    return checked(t->symbol->name, t->symbol->facts, it->second);
  }
  Result<int64_t> read(Term t) {
    std::vector<int64_t> at;
    for (Term a : t->args) {
      TESSERA_TRY(value, of(a));
      at.push_back(value);
    }
    const auto it = given_.reads.find({t->symbol->name, at});
    const std::string name = fmt::format("{}[{}]", t->symbol->name, fmt::join(at, ", "));
    if (it == given_.reads.end() && !given_.seed)
      return error(fail(inadmissible, "`{}` has no value", name));
    const int64_t value =
        it != given_.reads.end() ? it->second : invented(*t->symbol, at, *given_.seed);
    if (used_ != nullptr) used_->reads[{t->symbol->name, at}] = value;
    return checked(name, t->symbol->facts, value);
  }

  const Assignment& given_;
  Assignment* used_;
};

Status within(const std::string& name, const Symbol& s, int64_t value, Evaluator& evaluator) {
  if (!s.facts.holds(value))
    return error(fail(inadmissible, "{} = {} is not admissible", name, value));
  if (s.bounds.lower) {
    TESSERA_TRY(lower, evaluator.of(s.bounds.lower));
    if (value < lower) return error(fail(inadmissible, "{} = {} is below {}", name, value, lower));
  }
  if (s.bounds.upper) {
    TESSERA_TRY(upper, evaluator.of(s.bounds.upper));
    if (value >= upper)
      return error(fail(inadmissible, "{} = {} is not below {}", name, value, upper));
  }
  return {};
}

}  // namespace

int64_t invented(const Symbol& memory, const std::vector<int64_t>& indices, uint64_t seed) {
  constexpr int64_t choices = 8;
  const Facts& f = memory.facts;
  const Facts near_zero = facts_of(f.lower   ? f.lower
                                   : f.upper ? narrow(Wide{*f.upper} - 64)
                                             : std::optional<int64_t>(0),
                                   f.upper, f.modulus, f.residue);
  const int64_t first = near_zero.lower.value_or(0);
  if (seed == 0 || near_zero.modulus == 0) return first;
  uint64_t h = seed * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(memory.index);
  for (const int64_t i : indices)
    h = (h ^ (h >> 29) ^ static_cast<uint64_t>(i)) * 0xbf58476d1ce4e5b9U;
  const auto step =
      narrow(Wide{first} + Wide{near_zero.modulus} * static_cast<int64_t>((h >> 33) % choices));
  return step && (!f.upper || *step <= *f.upper) ? *step : first;
}

Result<int64_t> evaluate(Term t, const Assignment& a, Assignment* used) {
  return Evaluator(a, used).of(t);
}

Status admissible(const std::vector<Term>& symbols, const Assignment& a) {
  Evaluator evaluator(a);
  for (Term t : symbols) {
    TESSERA_TRY(value, evaluator.of(t));
    TESSERA_CHECK(within(t->symbol->name, *t->symbol, value, evaluator));
  }
  if (symbols.empty()) return {};
  for (const auto& [place, value] : a.reads) {
    const Symbol* s = symbols[0].pool().find(place.first);
    if (s == nullptr) return error(fail(inadmissible, "there is no memory `{}`", place.first));
    TESSERA_CHECK(within(place.first, *s, value, evaluator));
  }
  return {};
}

std::string to_string(const Assignment& a, const Pool& pool) {
  std::vector<std::pair<int32_t, std::string>> parts;
  for (const auto& [name, value] : a.symbols) {
    const Symbol* s = pool.find(name);
    parts.emplace_back(s != nullptr ? s->index : 0, fmt::format("{} = {}", name, value));
  }
  for (const auto& [place, value] : a.reads) {
    const Symbol* s = pool.find(place.first);
    parts.emplace_back(
        s != nullptr ? s->index : 0,
        fmt::format("{}[{}] = {}", place.first, fmt::join(place.second, ", "), value));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> texts;
  for (const auto& [index, text] : parts) texts.push_back(text);
  return join(texts, ", ");
}

}  // namespace tessera::term
