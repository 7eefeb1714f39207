// What registers hold while a softmax is computed as keys come: scores, the greatest of some,
// powers of 2 of their differences, sums of powers, and of powers times values.
//
// A sum of powers is known by its keys, and by what its exponents have besides the score: the
// greatest score that was taken off, of which keys. A factor of 2^(m - n) changes m for n, if m is
// the greatest of all the sum's keys: where it is -inf, all the powers are 0, and so is the sum. So
// two sums may be added if they took off the same, and have no key in common. No rule knows how a
// kernel orders these steps.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/seen_keys.h"
#include "pointwise/pointwise.h"

namespace tessera::check {

/// Keys of a row: columns of the block of each turn.
struct Keys {
  static constexpr int turns = 5, columns = 256;
  std::array<std::bitset<columns>, turns> of{};
  [[nodiscard]] bool none() const;
  [[nodiscard]] bool has(const Keys& others) const;
  [[nodiscard]] bool meets(const Keys& others) const;
  void add(const Keys& others);
  friend bool operator==(const Keys&, const Keys&) = default;
};

class Online {
 public:
  using Id = int32_t;
  static constexpr Id none = -1;

  enum class Kind : uint8_t {
    number,
    score,      // of a row and a key, perhaps masked
    element,    // of the mask tensor: of a row and a key
    greatest,   // of a row's scores of `keys`
    condition,  // on parameters and places: a number of `seen`
    is_none,    // whether the greatest score `of` is -inf
    linear,     // a sum of scores and greatest scores with coefficients
    sum,        // number * sum of 2^(scale * score + linear) over keys, or times V[key, .]
    inverse,    // of a sum
    result,     // a sum over a sum: the softmax's mean of V[key, .] over `keys`
  };

  struct Value {
    Kind kind = Kind::number;
    double number = 0;     // of `sum`: what it is multiplied with
    double scale = 0;      // of `sum` and `result`
    double inner = 0;      // above 0: not of scores s, but of tanh(inner * s)
    double weight = 0;     // above 0: of weight * score + its element of the mask
    int row = -1;          // of the tile; of `element`: -1: of all rows
    int turn = -1;         // of `score` and `element`: of its block of keys
    int column = -1;       // of these: the key in its block; of `sum`: 0: times V[key, .], -1: not
    int mask = 0;          // of `score`: a number of SeenKeys
    bool shown = false;    // of `score`: it is -inf where its element of the mask is false
    bool or_zero = false;  // of `inverse` and `result`: 0 where a row sees no key
    int keys = -1;         // a number of sets
    int linear = -1;       // a number of linear forms: exponents of `sum` besides scores
    Id of = none;
    friend bool operator==(const Value&, const Value&) = default;
  };

  /// A greatest score in a linear form. `finite`: 0 in the place of -inf.
  struct Part {
    Id of = none;  // a score, or a greatest one
    bool finite = false;
    double by = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Linear {
    double constant = 0;
    std::vector<Part> parts;  // by `of`, then `finite`
    friend bool operator==(const Linear&, const Linear&) = default;
  };

  explicit Online(SeenKeys& seen) : seen_(seen) {}

  /// Relative: constants are written with as many digits as float32 has.
  static constexpr double tolerance = 1e-7;
  static bool same(double a, double b);

  Id number(double v);
  /// The product of a query and a key of a turn's block.
  Id score(int row, int turn, int column);
  Id condition(int number);
  /// An element of the mask tensor. Row -1: of all rows.
  Id element(int row, int turn, int column);
  /// The sum of powers, each times V[key, .]: which column, whoever holds it knows.
  Id times_values(Id power);
  [[nodiscard]] bool of_values(Id i) const {
    return i != none && ((*this)[i].kind == Kind::result ||
                         ((*this)[i].kind == Kind::sum && (*this)[i].column >= 0));
  }
  /// The sum of all.
  Id all_of(const std::vector<Id>& some);
  /// The power's one key, where it is a power of one score: turn and column.
  [[nodiscard]] bool one_key(Id power, int& turn, int& column) const;
  Id add(Id a, Id b);
  /// What was `before`, and is `now` where the guard holds: a score that is masked there. None
  /// where it is anything else.
  Id under(Id now, Id before, const Any& guard);
  /// The DAG's results with these operands; none where one is no form that is known.
  std::vector<Id> results(const pointwise::Dag& dag, const std::vector<Id>& operands);

  [[nodiscard]] const Value& operator[](Id i) const { return values_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Keys& keys(const Value& v) const {
    return sets_[static_cast<std::size_t>(v.keys)];
  }
  /// The same with all turns before the last one as one, so that states of different turns compare.
  Id as_of(Id value, int last_turn);
  bool irregular = false;  // as_of met turns before the last one whose keys differ
  /// The value of a score in words, for messages.
  [[nodiscard]] std::string text(Id i) const;

  /// What the meaning does with the mask tensor; each score has to have it done.
  enum class Tensor : uint8_t { none, shows, added } tensor = Tensor::none;

  /// Where it is known that every row has seen a key before a row's first power is taken.
  bool always_a_key = false;
  bool needs_a_key = false;  // a difference of greatest scores was taken that may be -inf - -inf

  /// What contradicts a law: set by the first operation that does.
  struct Fault {
    std::string_view kind;  // a kind's name: a literal, as in Violation
    std::string message, expected, found, help;
  } fault;
  Id masked_score = none;  // that a fault of kind `mask` speaks of
  std::string why;         // the first form that is not known

 private:
  Id intern(Value v);
  int set(const Keys& k);
  int form(Linear l);
  Id call(const pointwise::Function& f, const std::vector<Id>& of);
  Id multiply(Id a, Id b);
  Id divide(Id a, Id b);
  Id capped(Id score);
  Id capped_apart(Id a, Id b);
  Id power(Id exponent, double base_log2);
  Id bounded(Value out, Id score, Linear rest);
  Id greatest(Id a, Id b);
  Id least(Id a, Id b);
  Id choose(Id condition, Id yes, Id no);
  Id choose_none(const Value& none, Id yes, Id no);
  Id shown(Id element, Id yes, Id no);
  Id added(Id score, Id element);
  bool of_one_place(Id score, Id element);
  bool has_its_element(Id score);
  static bool alike(const Value& a, const Value& b) {
    return a.inner == b.inner && a.weight == b.weight;
  }
  Id add_sums(const Value& a, const Value& b);
  Id scaled(Id a, double by);
  bool linear_of(Id a, Linear& out) const;
  Id of_linear(Linear l);
  /// Greatest scores of all the sum's keys cancel.
  Linear settled(const Linear& l, const Keys& keys) const;
  bool score_is_seen(Id score);
  Id unknown(std::string what);
  Id wrong(std::string_view kind, std::string message, std::string expected, std::string found,
           std::string help);
  [[nodiscard]] std::string exponents(const Value& sum) const;
  [[nodiscard]] std::string exponents_of(const Linear& l) const;
  [[nodiscard]] std::string keys_text(const Value& v) const;
  [[nodiscard]] static bool same_forms(const Linear& a, const Linear& b);
  static void gather(std::vector<Part>& parts);

  SeenKeys& seen_;
  std::vector<Value> values_;
  std::vector<Keys> sets_;
  std::vector<Linear> forms_;
  struct Hash {
    std::size_t operator()(const Value& v) const;
    std::size_t operator()(const Keys& k) const;
    std::size_t operator()(const Linear& l) const;
  };
  std::unordered_map<Value, Id, Hash> known_;
  std::unordered_map<Keys, int, Hash> known_sets_;
  std::unordered_map<Linear, int, Hash> known_forms_;
  std::unordered_map<uint64_t, Id> sums_;  // of two values
  std::vector<bool> seen_rightly_;         // by score: its mask is right
  std::vector<Id> nodes_;                  // of the DAG under way
};

}  // namespace tessera::check
