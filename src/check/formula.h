// What registers hold, as functions of sums and of elements of tensors. Equal functions of equal
// elements are one number, so that comparing what is stored with what is meant is comparing two
// numbers.
//
// A formula stands for the 32 lanes of a warp at once: its elements have an index a lane. Sums and
// products are of any number of operands, in one order, with their numbers put together; so they
// compare as real numbers do, and roundings are not seen.
#pragma once

#include <bit>
#include <string>
#include <unordered_map>
#include <vector>

#include "pointwise/pointwise.h"

namespace tessera::check {

/// For each lane an element of a tensor, or the sum of a row and a column, or what the accumulators
/// have of that sum when they begin anew on the way, or what registers have at the beginning of a
/// turn that adds to them.
struct Elements {
  static constexpr int of_sum = -1, of_last_sum = -2, of_before = -3;
  static constexpr int lanes = 32;
  int tensor = of_sum;      // its number; or of_sum, of_last_sum: with a row and a column;
                            // of_before: with a number of the registers and a slot
  std::vector<int> bases;   // by dimension: what the index is counted from (Formulas' owner knows)
  std::vector<int64_t> at;  // lane + 32 * dimension: the index from there
  int factor = 0;           // of a sum: which of the right factors it has
  friend bool operator==(const Elements&, const Elements&) = default;
};

class Formulas {
 public:
  /// A number of a formula; `none` is what holds no value.
  using Id = int32_t;
  static constexpr Id none = -1;

  Id number(double value);
  Id elements(Elements e);
  Id call(const pointwise::Function& f, std::vector<Id> arguments);
  /// before + whole - last; none where `before` is.
  Id added(Id before, Id whole, Id last);
  /// The DAG's result with these operands; none where an operand that it needs is.
  std::vector<Id> results(const pointwise::Dag& dag, const std::vector<Id>& operands);

  /// The sums that the formula is a function of, each once.
  [[nodiscard]] const std::vector<Id>& sums_of(Id f) const;
  [[nodiscard]] const Elements& elements_of(Id f) const;
  /// All elements that it is a function of, sums among them.
  [[nodiscard]] std::vector<Id> leaves(Id f) const;
  /// True where the two are known to differ at a lane: at some values of their elements, which are
  /// the same for both, they do. Elements of different indices are taken to be different.
  [[nodiscard]] bool differ(Id a, Id b, int lane) const;

  /// At a lane, with `name` for its elements.
  template <class Name>
  [[nodiscard]] std::string text(Id f, Name&& name) const;

 private:
  struct Node {
    enum class Kind : uint8_t { number, elements, call, sum, product } kind = Kind::number;
    const pointwise::Function* function = nullptr;
    double number = 0;
    std::vector<Id> arguments;
    int elements = -1;
    std::vector<Id> sums;
    friend bool operator==(const Node& a, const Node& b) {
      return a.kind == b.kind && a.function == b.function &&
             std::bit_cast<uint64_t>(a.number) == std::bit_cast<uint64_t>(b.number) &&
             a.elements == b.elements && a.arguments == b.arguments;
    }
  };
  struct Hash {
    std::size_t operator()(const Node& n) const;
    std::size_t operator()(const Elements& e) const;
  };
  Id intern(Node n);
  Id many(Node::Kind kind, const std::vector<Id>& of);
  void cancel(std::vector<Id>& of) const;
  [[nodiscard]] double value(Id f, int lane, uint64_t seed) const;
  [[nodiscard]] const Node& at(Id f) const { return nodes_[static_cast<std::size_t>(f)]; }

  std::vector<Node> nodes_;
  std::vector<Elements> elements_;
  std::unordered_map<Node, Id, Hash> known_;
  std::unordered_map<Elements, int, Hash> known_elements_;
};

template <class Name>
// NOLINTNEXTLINE(misc-no-recursion): formulas nest
std::string Formulas::text(Id f, Name&& name) const {
  if (f == none) return "nothing";
  const Node& n = at(f);
  std::string out;
  const auto joined = [&](const char* between) {
    for (Id a : n.arguments) out += (out.empty() ? "" : between) + text(a, name);
    return out;
  };
  const auto plain = [](double v) {
    std::string digits = std::to_string(v);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits;
  };
  switch (n.kind) {
    case Node::Kind::number:
      return plain(n.number);
    case Node::Kind::elements:
      return name(elements_[static_cast<std::size_t>(n.elements)]);
    case Node::Kind::call:
      return std::string(n.function->name) + "(" + joined(", ") + ")";
    case Node::Kind::sum:
      return "(" + joined(" + ") + ")";
    case Node::Kind::product:
      return joined(" * ");
  }
  return out;
}

}  // namespace tessera::check
