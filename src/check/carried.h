// What elements carry under the names of tags, for all sizes: nothing, one value, several that met,
// or what could not be followed. A value is a term; all that one element carries is one number.
//
// Where elements are computed of others, what these carry is joined: a value that one has, or that
// all of them that carry any have, stays; different ones become several.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "check/expression.h"

namespace tessera::check {

class Carried {
 public:
  /// Under one name. From `values` on: a term, by number.
  using Scalar = int32_t;
  static constexpr Scalar none = 0, several = 1, unknown = 2, values = 3;
  /// Under all names; 0: nothing.
  using Id = int32_t;

  Carried(term::Pool& pool, std::size_t names);

  Scalar scalar(Term t);
  /// base + offset, where the base is in normal form without a constant, or null.
  Scalar scalar(Term base, int64_t offset);
  [[nodiscard]] Term term(Scalar s) const;
  /// Of a value: what is left without its constant; null: nothing. Many values share one.
  [[nodiscard]] Term base(Scalar s) const { return values_[index(s)].base; }
  /// The value `to` with the constant of `s` added.
  Scalar shifted(Scalar to, Scalar s);

  Id get(const std::vector<Scalar>& under);
  [[nodiscard]] Scalar under(Id id, int name) const {
    return all_[static_cast<std::size_t>(id)][static_cast<std::size_t>(name)];
  }
  Id with(Id id, int name, Scalar s);
  Id join(Id a, Id b);
  /// Either of the two: what they have in common, all else is unknown.
  Id either(Id a, Id b);
  Id all_unknown();
  /// With `f` of each value.
  Id mapped(Id id, const std::function<Scalar(Scalar)>& f);
  [[nodiscard]] std::size_t size() const { return all_.size(); }

  /// Whether two values are always equal, or never; unknown otherwise.
  enum class Relation : uint8_t { equal, different, undecided };
  Relation compare(Scalar a, Scalar b);

 private:
  struct Value {
    Term base;
    int64_t offset = 0;
    friend bool operator==(const Value&, const Value&) = default;
  };
  struct Hash {
    std::size_t operator()(const std::vector<Scalar>& v) const;
  };
  static std::size_t index(Scalar s) { return static_cast<std::size_t>(s - values); }
  Scalar join_scalars(Scalar a, Scalar b);

  term::Pool& pool_;
  std::size_t names_;
  std::vector<Value> values_;
  std::map<std::pair<const term::Node*, int64_t>, Scalar> known_values_;
  std::vector<std::vector<Scalar>> all_;
  std::unordered_map<std::vector<Scalar>, Id, Hash> known_;
  std::unordered_map<uint64_t, Id> joined_;
  std::map<std::pair<Scalar, Scalar>, Relation> compared_;
  int asked_ = 0;
};

/// A term in two parts: what depends on symbols that get numbers, and the rest. Evaluated for many
/// numbers, it is a value of Carried.
class Split {
 public:
  Split() = default;
  /// `known`: the symbols that get numbers.
  Split(Term t, const std::set<const term::Node*>& known);
  Carried::Scalar operator()(Carried& carried, const Values& numbers);
  /// Whether a number with this symbol's index changes it.
  [[nodiscard]] bool uses(Term symbol) const;

 private:
  Term whole_;                 // in normal form
  bool mixed_ = false;         // some part depends on both
  Term base_;                  // null: none
  Expression known_;           // of what gets numbers
  std::vector<Term> symbols_;  // of these, that occur
  std::map<std::vector<int64_t>, Carried::Scalar> seen_;
};

}  // namespace tessera::check
