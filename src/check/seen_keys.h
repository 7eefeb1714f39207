// Which keys a row sees, and which a kernel hides from it, as conditions on the launch.
//
// A condition on one row and one key is a bound on a term: TK - first_key >= 5. The term is the
// same for all rows and keys of a tile, the number is theirs. So conditions are compared by
// numbers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/place.h"
#include "term/sum.h"

namespace tessera::check {

/// term >= number, or term <= number.
struct Bound {
  int term = -1;  // a number of SeenKeys::terms; -1: always true
  bool at_least = true;
  int64_t number = 0;
  friend auto operator<=>(const Bound&, const Bound&) = default;
  /// Whether this one holds wherever `other` does.
  [[nodiscard]] bool follows(const Bound& other) const {
    if (term < 0) return true;
    return term == other.term && at_least == other.at_least &&
           (at_least ? number <= other.number : number >= other.number);
  }
};
/// True where one of them is.
using Any = std::vector<Bound>;

/// A condition of the text, for all places of a tile: a tree of comparisons.
class Condition {
 public:
  struct Node {
    enum class Kind : uint8_t { both, either, bound, truth } kind = Kind::truth;
    int left = -1, right = -1;
    int term = -1;
    int64_t sign = 1;   // scale * sign * term + rest + off >= 0
    int64_t scale = 1;  // above 0
    int64_t rest = 0;
    Expression off = {};  // of lanes, warps and elements
    bool linear = true;   // `off` is a sum of these, times numbers
    bool value = true;    // of truth
  };
  std::vector<Node> nodes;
  std::vector<Node> negated;  // the same tree of the contrary
};

class SeenKeys {
 public:
  /// `places`: symbols of which a row and a key are made, lane and warp among them. `corner`: the
  /// first key of a turn's block, by the loop's counter, which is known to be at least 0 in each
  /// turn; conditions are asked in these turns.
  SeenKeys(const core::Kernel& kernel, std::vector<Term> places, Term corner);

  /// Nothing where a comparison mixes places with other symbols by products, or divides.
  std::optional<Condition> compile(Term predicate);
  /// The condition at a place, as bounds of which one holds; nothing where some have to hold
  /// together. `contrary`: of the contrary.
  std::optional<Any> at(const Condition& c, bool contrary, const Values& values) const;

  /// The keys that are not seen by the meaning: bounds for a row and a column of the tile, each
  /// linear in both; a column may lie outside of the block, where its key is 0 or more.
  struct Hidden {
    int term = -1;
    bool at_least = true;
    int64_t number = 0, by_row = 0, by_column = 0;
    [[nodiscard]] Bound at(int row, int column) const {
      return {term, at_least, number + by_row * row + by_column * column};
    }
    friend bool operator==(const Hidden&, const Hidden&) = default;
  };
  /// `seen`: the meaning's predicate on a row of the tile, of `rows`, and a key. Nothing where its
  /// contrary is no such bounds, for all rows of the tile and all keys from 0 on.
  std::optional<std::vector<Hidden>> hidden(int64_t rows,
                                            const std::function<Term(Term, Term)>& seen);
  void means(std::vector<Hidden> hidden) { hidden_ = std::move(hidden); }
  /// That key `key` of the row is hidden by this bound.
  [[nodiscard]] Term hides(const Hidden& h, int64_t row, Term key) const;

  /// A condition at a place: its number, and back.
  struct Place {
    std::optional<Any> yes, no;  // the condition, its contrary
  };
  int condition(Place p);
  [[nodiscard]] const Place& condition(int number) const {
    return conditions_[static_cast<std::size_t>(number)];
  }

  // Masks: conditions under which a score became -inf. 0: none.
  /// Also under `more`, in a branch that is taken under `guard` (empty: always).
  int masked(int mask, const Any& more, const Any& guard);
  /// All that the mask has beyond another one is under the guard.
  int guarded(int mask, int before, const Any& guard);

  /// Whether a mask hides exactly what is hidden, by its text.
  bool right(int mask, int row, int column);
  /// That it does, as a predicate of the launch.
  [[nodiscard]] Term claim(int mask, int row, int column) const;
  /// What the mask hides, and what is hidden, in words.
  [[nodiscard]] std::string text(int mask) const;
  [[nodiscard]] std::string text(int row, int column) const;

 private:
  struct Entry {
    Any any, guard;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  using Mask = std::vector<Entry>;
  std::optional<Hidden> hidden_by(const Condition::Node& n, Term row, Term key);
  int intern(Mask m);
  int term_number(Term t);
  int bound(Term difference, int64_t rest, std::vector<Condition::Node>& out);
  int compile(Term p, bool contrary, std::vector<Condition::Node>& out);
  int ordered(Term difference, int64_t rest, std::vector<Condition::Node>& out);
  Term without_quotient(Term difference, int64_t rest);
  [[nodiscard]] bool in_corner(Term atom) const;
  bool impossible(const Bound& b);
  [[nodiscard]] Term term(const Bound& b) const;
  [[nodiscard]] Term term(const Any& any) const;
  [[nodiscard]] Any hidden_at(int row, int column) const;

  const core::Kernel& kernel_;
  std::vector<Term> places_;
  Term corner_;
  std::vector<Term> of_corner_;  // what the corner is a sum of
  std::vector<Term> terms_;
  std::map<const term::Node*, int> known_terms_;
  std::vector<Mask> masks_;
  std::map<Mask, int> known_masks_;
  std::vector<Place> conditions_;
  std::vector<Hidden> hidden_;
  std::map<Bound, bool> impossible_;
};

}  // namespace tessera::check
