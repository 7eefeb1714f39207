#include "check/carried.h"

#include <algorithm>

#include "check/place.h"
#include "term/query.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::check {
namespace {

constexpr term::Effort little = {.operations = 1 << 16};
constexpr int most_asked = 400;  // pairs of values for which more than their texts is compared

}  // namespace

Carried::Carried(term::Pool& pool, std::size_t names) : pool_(pool), names_(names) {
  get(std::vector<Scalar>(names, none));
}

Carried::Scalar Carried::scalar(Term base, int64_t offset) {
  const auto [place, is_new] = known_values_.try_emplace(
      {base.node(), offset}, static_cast<Scalar>(values + static_cast<int>(values_.size())));
  if (is_new) values_.push_back({base, offset});
  return place->second;
}

Carried::Scalar Carried::scalar(Term t) {
  term::Sum sum = term::sum_of(term::simplify(t));
  const int64_t constant = std::exchange(sum.constant, 0);
  return scalar(sum.parts.empty() ? Term() : term::term_of(pool_, sum), constant);
}

Term Carried::term(Scalar s) const {
  const Value& v = values_[index(s)];
  if (!v.base) return pool_.constant(v.offset);
  return v.offset == 0 ? v.base : v.base + v.offset;
}

Carried::Scalar Carried::shifted(Scalar to, Scalar s) {
  const Value v = values_[index(to)];
  return scalar(v.base, v.offset + values_[index(s)].offset);
}

std::size_t Carried::Hash::operator()(const std::vector<Scalar>& v) const {
  std::size_t h = v.size();
  for (const Scalar s : v) h = (h ^ static_cast<std::size_t>(s)) * 0x9e3779b97f4a7c15U;
  return h ^ h >> 32;
}

Carried::Id Carried::get(const std::vector<Scalar>& under) {
  const auto [place, is_new] = known_.try_emplace(under, static_cast<Id>(all_.size()));
  if (is_new) all_.push_back(under);
  return place->second;
}

Carried::Id Carried::with(Id id, int name, Scalar s) {
  std::vector<Scalar> under = all_[static_cast<std::size_t>(id)];
  under[static_cast<std::size_t>(name)] = s;
  return get(under);
}

Carried::Id Carried::all_unknown() {
  return get(std::vector<Scalar>(names_, unknown));
}

Carried::Relation Carried::compare(Scalar a, Scalar b) {
  if (a == b) return Relation::equal;
  const Value &x = values_[index(a)], &y = values_[index(b)];
  if (x.base == y.base) return Relation::different;
  const auto [place, is_new] = compared_.try_emplace(std::minmax(a, b), Relation::undecided);
  if (!is_new || ++asked_ > most_asked) return place->second;
  const Term left = term(a), right = term(b);
  if (term::equal(left, right, little).proved())
    place->second = Relation::equal;
  else if (term::always(term::logical_not(term::equals(left, right)), little).proved())
    place->second = Relation::different;
  return place->second;
}

Carried::Scalar Carried::join_scalars(Scalar a, Scalar b) {
  if (a == b || b == none) return a;
  if (a == none) return b;
  if (a == several || b == several) return several;
  if (a == unknown || b == unknown) return unknown;
  switch (compare(a, b)) {
    case Relation::equal:
      return std::min(a, b);
    case Relation::different:
      return several;
    case Relation::undecided:
      return unknown;
  }
  return unknown;
}

Carried::Id Carried::join(Id a, Id b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const auto [low, high] = std::minmax(a, b);
  const uint64_t key = static_cast<uint64_t>(low) << 32 | static_cast<uint64_t>(high);
  if (const auto found = joined_.find(key); found != joined_.end()) return found->second;
  std::vector<Scalar> out = all_[static_cast<std::size_t>(a)];
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = join_scalars(out[i], all_[static_cast<std::size_t>(b)][i]);
  return joined_[key] = get(out);
}

Carried::Id Carried::either(Id a, Id b) {
  if (a == b) return a;
  std::vector<Scalar> out = all_[static_cast<std::size_t>(a)];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Scalar other = all_[static_cast<std::size_t>(b)][i];
    if (out[i] == other) continue;
    const bool two = out[i] >= values && other >= values;
    if (!two || compare(out[i], other) != Relation::equal) out[i] = unknown;
  }
  return get(out);
}

Carried::Id Carried::mapped(Id id, const std::function<Scalar(Scalar)>& f) {
  std::vector<Scalar> out = all_[static_cast<std::size_t>(id)];
  for (Scalar& s : out)
    if (s >= values) s = f(s);
  return get(out);
}

Split::Split(Term t, const std::set<const term::Node*>& known) : whole_(term::simplify(t)) {
  term::Pool& pool = whole_.pool();
  term::Sum sum = term::sum_of(whole_), numbers, rest;
  numbers.constant = sum.constant;
  for (const term::Part& p : sum.parts) {
    bool has_known = false, has_other = false;
    term::any_node(p.atom, [&](Term n) {
      if (n->symbol != nullptr && n->leaf())
        (known.contains(n.node()) ? has_known : has_other) = true;
      return false;
    });
    mixed_ = mixed_ || (has_known && has_other);
    (has_other ? rest : numbers).parts.push_back(p);
  }
  term::any_node(whole_, [&](Term n) {
    if (n->symbol != nullptr && n->leaf() && known.contains(n.node()) &&
        std::find(symbols_.begin(), symbols_.end(), n) == symbols_.end())
      symbols_.push_back(n);
    return false;
  });
  if (mixed_) return;
  if (!rest.parts.empty()) base_ = term::term_of(pool, rest);
  known_ = Expression(term::term_of(pool, numbers));
}

Carried::Scalar Split::operator()(Carried& carried, const Values& numbers) {
  if (!mixed_) {
    const std::optional<int64_t> offset = known_(numbers);
    return offset ? carried.scalar(base_, *offset) : Carried::unknown;
  }
  std::vector<int64_t> key;
  for (const Term s : symbols_) key.push_back(numbers[static_cast<std::size_t>(s->symbol->index)]);
  const auto [place, is_new] = seen_.try_emplace(key, Carried::unknown);
  if (is_new) {
    Known at;
    for (std::size_t i = 0; i < symbols_.size(); ++i) at[symbols_[i].node()] = key[i];
    place->second = carried.scalar(with_values(whole_, at));
  }
  return place->second;
}

bool Split::uses(Term symbol) const {
  return std::find(symbols_.begin(), symbols_.end(), symbol) != symbols_.end();
}

}  // namespace tessera::check
