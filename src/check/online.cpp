#include "check/online.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace tessera::check {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

uint64_t mixed(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}
uint64_t bits(double d) {
  return std::bit_cast<uint64_t>(d == 0 ? 0.0 : d);
}

}  // namespace

bool Online::same(double a, double b) {
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool Keys::none() const {
  return std::all_of(of.begin(), of.end(), [](const auto& b) { return b.none(); });
}
bool Keys::has(const Keys& others) const {
  for (std::size_t t = 0; t < of.size(); ++t)
    if ((others.of[t] & ~of[t]).any()) return false;
  return true;
}
bool Keys::meets(const Keys& others) const {
  for (std::size_t t = 0; t < of.size(); ++t)
    if ((others.of[t] & of[t]).any()) return true;
  return false;
}
void Keys::add(const Keys& others) {
  for (std::size_t t = 0; t < of.size(); ++t) of[t] |= others.of[t];
}

std::size_t Online::Hash::operator()(const Value& v) const {
  uint64_t h = mixed(static_cast<uint64_t>(v.kind), bits(v.number));
  h = mixed(mixed(mixed(h, bits(v.scale)), bits(v.inner)), bits(v.weight));
  h = mixed(h, (v.shown ? 2 : 0) + (v.or_zero ? 1 : 0));
  for (int x : {v.row, v.turn, v.column, v.mask, v.keys, v.linear, v.of})
    h = mixed(h, static_cast<uint64_t>(x));
  return h;
}
std::size_t Online::Hash::operator()(const Keys& k) const {
  uint64_t h = 0;
  for (const auto& b : k.of) h = mixed(h, std::hash<std::bitset<Keys::columns>>()(b));
  return h;
}
std::size_t Online::Hash::operator()(const Linear& l) const {
  uint64_t h = bits(l.constant);
  for (const Part& p : l.parts)
    h = mixed(mixed(h, bits(p.by)), 2 * static_cast<uint64_t>(p.of) + (p.finite ? 1 : 0));
  return h;
}

Online::Id Online::intern(Value v) {
  const auto [found, is_new] = known_.try_emplace(v, static_cast<Id>(values_.size()));
  if (is_new) values_.push_back(v);
  return found->second;
}
int Online::set(const Keys& k) {
  const auto [found, is_new] = known_sets_.try_emplace(k, static_cast<int>(sets_.size()));
  if (is_new) sets_.push_back(k);
  return found->second;
}
int Online::form(Linear l) {
  const auto [found, is_new] = known_forms_.try_emplace(l, static_cast<int>(forms_.size()));
  if (is_new) forms_.push_back(std::move(l));
  return found->second;
}

Online::Id Online::number(double v) {
  return intern({.kind = Kind::number, .number = v == 0 ? 0 : v});
}
Online::Id Online::condition(int number) {
  return intern({.kind = Kind::condition, .mask = number});
}

Online::Id Online::unknown(std::string what) {
  if (why.empty()) why = std::move(what);
  return none;
}

Online::Id Online::wrong(std::string_view kind, std::string message, std::string expected,
                         std::string found, std::string help) {
  if (fault.kind.empty())
    fault = {kind, std::move(message), std::move(expected), std::move(found), std::move(help)};
  return none;
}

Online::Id Online::score(int row, int turn, int column) {
  return intern({.kind = Kind::score, .row = row, .turn = turn, .column = column});
}

bool Online::one_key(Id power, int& turn, int& column) const {
  if (power == none || (*this)[power].kind != Kind::sum) return false;
  const Value& v = (*this)[power];
  if (v.keys < 0 || v.column >= 0) return false;
  const Keys& k = keys(v);
  int found = 0;
  for (std::size_t t = 0; t < k.of.size(); ++t)
    for (std::size_t c = k.of[t]._Find_first(); c < k.of[t].size(); c = k.of[t]._Find_next(c)) {
      turn = static_cast<int>(t);
      column = static_cast<int>(c);
      if (++found > 1) return false;
    }
  return found == 1;
}

Online::Id Online::times_values(Id power) {
  if (power == none) return none;
  Value v = (*this)[power];
  if (v.kind == Kind::number && v.number == 0) return power;
  if (v.kind != Kind::sum || v.column >= 0 || v.keys < 0)
    return unknown("what is multiplied with values is no power of a score");
  v.column = 0;
  return intern(v);
}

Online::Id Online::all_of(const std::vector<Id>& some) {
  Id out = number(0);
  Value all;
  Keys of;
  for (Id i : some) {
    if (i == none) return none;
    const Value& v = (*this)[i];
    const bool of_keys = v.kind == Kind::sum && v.keys >= 0;
    if (of_keys && all.kind != Kind::sum) {
      all = v;
      of = keys(v);
    } else if (of_keys && v.linear == all.linear && v.row == all.row && v.column == all.column &&
               v.scale == all.scale && alike(v, all) && v.number == all.number &&
               !of.meets(keys(v))) {
      of.add(keys(v));
    } else {
      out = add(out, i);  // which tells what is wrong, where it is a sum of keys
    }
    if (out == none) return none;
  }
  if (all.kind != Kind::sum) return out;
  all.keys = set(of);
  return add(out, intern(all));
}

Online::Linear Online::settled(const Linear& l, const Keys& of) const {
  Linear out{l.constant, {}};
  std::map<Id, double> greatest;
  for (const Part& p : l.parts) {
    const Value& v = (*this)[p.of];
    if (v.kind == Kind::greatest && keys(v).has(of))
      greatest[p.of] += p.by;
    else
      out.parts.push_back(p);
  }
  for (const auto& [id, by] : greatest) {
    double most = 0;
    for (const Part& p : l.parts)
      if (p.of == id) most = std::max(most, std::abs(p.by));
    if (std::abs(by) > tolerance * most) out.parts.push_back({id, true, by});
  }
  std::sort(out.parts.begin(), out.parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.of, a.finite) < std::pair(b.of, b.finite);
  });
  return out;
}

bool Online::same_forms(const Linear& a, const Linear& b) {
  return same(a.constant, b.constant) &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const Part& x, const Part& y) {
                      return x.of == y.of && x.finite == y.finite && same(x.by, y.by);
                    });
}

/// Parts of one score put together, in one order.
void Online::gather(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.of, a.finite) < std::pair(b.of, b.finite);
  });
  std::vector<Part> out;
  for (const Part& p : parts)
    if (!out.empty() && out.back().of == p.of && out.back().finite == p.finite)
      out.back().by = same(out.back().by, -p.by) ? 0 : out.back().by + p.by;
    else
      out.push_back(p);
  std::erase_if(out, [](const Part& p) { return p.by == 0; });
  parts = std::move(out);
}

Online::Id Online::add_sums(const Value& a, const Value& b) {
  if (a.keys < 0 || b.keys < 0 || a.row != b.row || a.column != b.column || !same(a.scale, b.scale))
    return wrong("reduction", "sums of different rows or columns are added",
                 "powers of one row's scores, times one column of the values",
                 text(intern(a)) + " and " + text(intern(b)),
                 "add what belongs to one element of the output");
  if (!alike(a, b)) return capped_apart(intern(a), intern(b));
  if (keys(a).meets(keys(b)))
    return wrong("reduction", "a key is summed twice", "each key once",
                 text(intern(a)) + " and " + text(intern(b)),
                 "take each block of keys in once, and each lane's part once");
  if (!same(a.number, b.number) || !same_forms(forms_[static_cast<std::size_t>(a.linear)],
                                               forms_[static_cast<std::size_t>(b.linear)]))
    return wrong("rescale", "sums are added that differ in the score which was taken off",
                 "both with the same greatest score taken off",
                 exponents(a) + " and " + exponents(b),
                 "multiply what was summed before by 2^(greatest before - greatest now), once");
  Keys all = keys(a);
  all.add(keys(b));
  Value out = a;
  out.keys = set(all);
  return intern(out);
}

Online::Id Online::add(Id a, Id b) {
  if (a == none || b == none) return none;
  const Value x = (*this)[a], y = (*this)[b];
  if (x.kind == Kind::number && y.kind == Kind::number) return number(x.number + y.number);
  if (x.kind == Kind::number && x.number == 0) return b;
  if (y.kind == Kind::number && y.number == 0) return a;
  if (x.kind == Kind::sum && y.kind == Kind::sum) {
    const uint64_t pair = static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b);
    if (const auto found = sums_.find(pair); found != sums_.end()) return found->second;
    const Id out = add_sums(x, y);
    if (out != none) sums_.emplace(pair, out);
    return out;
  }
  if (x.kind == Kind::element) return added(b, a);
  if (y.kind == Kind::element) return added(a, b);
  Linear l, m;
  if (!linear_of(a, l) || !linear_of(b, m)) return unknown("a sum of unlike values");
  l.constant += m.constant;
  l.parts.insert(l.parts.end(), m.parts.begin(), m.parts.end());
  return of_linear(std::move(l));
}

bool Online::linear_of(Id a, Linear& out) const {
  const Value& v = (*this)[a];
  if (v.kind == Kind::number) out.constant = v.number;
  if (v.kind == Kind::score || v.kind == Kind::greatest) out.parts = {{a, false, 1}};
  if (v.kind == Kind::linear) out = forms_[static_cast<std::size_t>(v.linear)];
  return v.kind == Kind::number || v.kind == Kind::score || v.kind == Kind::greatest ||
         v.kind == Kind::linear;
}

Online::Id Online::of_linear(Linear l) {
  // x - x is 0 of finite values alone.
  for (const Part& p : l.parts)
    for (const Part& q : l.parts)
      if (p.of == q.of && p.by > 0 && q.by < 0 && !q.finite &&
          (*this)[p.of].kind == Kind::greatest && !always_a_key)
        needs_a_key = true;
  gather(l.parts);
  if (l.parts.empty()) return number(l.constant);
  return intern({.kind = Kind::linear, .linear = form(std::move(l))});
}

Online::Id Online::scaled(Id a, double by) {
  const Value& v = (*this)[a];
  if (v.kind == Kind::number) return number(v.number * by);
  if (v.kind == Kind::sum) {
    Value out = v;
    out.number *= by;
    return by == 0 ? number(0) : intern(out);
  }
  Linear l;
  if (!linear_of(a, l) || by == 0 || !std::isfinite(by))
    return unknown(fmt::format("{} times {} is not followed", text(a), by));
  l.constant *= by;
  for (Part& p : l.parts) p.by *= by;
  return of_linear(std::move(l));
}

bool Online::score_is_seen(Id id) {
  const Value& s = (*this)[id];
  const auto place = static_cast<std::size_t>(id);
  if (place < seen_rightly_.size() && seen_rightly_[place]) return true;
  if (!has_its_element(id)) return false;
  if (seen_.right(s.mask, s.row, s.column)) {
    seen_rightly_.resize(std::max(seen_rightly_.size(), place + 1));
    return seen_rightly_[place] = true;
  }
  wrong("mask", "a mask hides other keys than the meaning",
        fmt::format("{} is -inf where {}", text(id), seen_.text(s.row, s.column)),
        seen_.text(s.mask), "compare the key's place with the end, and with what the query sees");
  masked_score = id;
  return false;
}

Online::Id Online::greatest(Id a, Id b) {
  Value out{.kind = Kind::greatest};
  Keys all;
  for (Id i : {a, b}) {
    const Value v = (*this)[i];
    if (v.kind == Kind::number && v.number == -infinity) continue;
    if (v.kind != Kind::score && v.kind != Kind::greatest)
      return unknown("a maximum of what are no scores");
    if (out.row >= 0 && out.row != v.row)
      return wrong("dominance", "the greatest score is taken over several rows",
                   fmt::format("scores of row {}", out.row), fmt::format("one of row {}", v.row),
                   "take the greatest score along the keys");
    if (out.row >= 0 && !alike(out, v)) return capped_apart(a, b);
    out.row = v.row;
    out.inner = v.inner;
    out.weight = v.weight;
    if (v.kind == Kind::greatest) {
      all.add(keys(v));
    } else {
      if (!score_is_seen(i)) return none;
      all.of[static_cast<std::size_t>(v.turn)].set(static_cast<std::size_t>(v.column));
    }
  }
  if (out.row < 0) return number(-infinity);
  out.keys = set(all);
  return intern(out);
}

/// No softmax needs the least of scores: it bounds no power.
Online::Id Online::least(Id a, Id b) {
  for (Id i : {a, b}) {
    const Kind kind = (*this)[i].kind;
    if (kind == Kind::score || kind == Kind::greatest)
      return wrong("dominance", "the least of a row's scores is taken",
                   "the greatest, from which no power overflows", text(i) + " among them",
                   "take `max`, not `min`");
  }
  if ((*this)[a].kind != Kind::number || (*this)[b].kind != Kind::number)
    return unknown("the least of what are no scores");
  return number(std::min((*this)[a].number, (*this)[b].number));
}

}  // namespace tessera::check
