#include "term/term.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

namespace tessera::term {
namespace {

constexpr int32_t largest_size = 1 << 30;

bool is_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const std::string_view word :
       {"and", "or", "not", "if", "else", "True", "False", "min", "max", "select"})
    if (name == word) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

Facts facts_of_node(const Node& n) {
  const auto at = [&](int i) -> const Facts& { return n.args[i]->facts; };
  switch (n.op) {
    case Op::constant:
      return facts_constant(n.value);
    case Op::coordinate:
    case Op::counter:
    case Op::parameter:
    case Op::read:
      return n.symbol->facts;
    case Op::add:
      return facts_add(at(0), at(1));
    case Op::subtract:
      return facts_subtract(at(0), at(1));
    case Op::multiply:
      return facts_multiply(at(0), at(1));
    case Op::divide:
      return facts_divide(at(0), at(1));
    case Op::remainder:
      return facts_remainder(at(0), at(1));
    case Op::bit_xor:
      return facts_xor(at(0), at(1));
    case Op::bit_and:
      return facts_and(at(0), at(1));
    case Op::bit_or:
      return facts_or(at(0), at(1));
    case Op::shift_left:
      return facts_shift_left(at(0), at(1));
    case Op::shift_right:
      return facts_shift_right(at(0), at(1));
    case Op::min:
      return facts_min(at(0), at(1));
    case Op::max:
      return facts_max(at(0), at(1));
    case Op::select:
      return facts_join(at(1), at(2));
    default:
      return {};
  }
}

std::size_t arity(Op op) {
  return op == Op::select ? 3 : op == Op::logical_not ? 1 : 2;
}

// Whether the argument at `i` has to be a predicate.
bool wants_predicate(Op op, std::size_t i) {
  return op >= Op::logical_and || (op == Op::select && i == 0);
}

// The constant part of the bounds. A counter's range may be empty: then every fact is true of it.
Facts facts_of_bounds(const Bounds& b) {
  std::optional<int64_t> lower, upper;
  if (b.lower) lower = b.lower->facts.lower;
  if (b.upper && b.upper->facts.upper) upper = narrow(Wide{*b.upper->facts.upper} - 1);
  if (lower && upper && *upper < *lower) upper = lower;
  return facts_of(lower, upper, b.modulus, b.residue);
}

bool same_declaration(const Symbol& a, const Symbol& b) {
  return a.kind == b.kind && a.arity == b.arity && a.derived == b.derived &&
         a.bounds.lower == b.bounds.lower && a.bounds.upper == b.bounds.upper &&
         a.bounds.modulus == b.bounds.modulus && a.bounds.residue == b.bounds.residue;
}

void collect(Term t, std::set<const Node*>& seen, std::map<int32_t, Term>& out) {
  if (!t || !seen.insert(t.node()).second) return;
  if (t->symbol != nullptr) {
    if (t->leaf()) out[t->symbol->index] = t;
    collect(t->symbol->bounds.lower, seen, out);
    collect(t->symbol->bounds.upper, seen, out);
  }
  for (Term a : t->args) collect(a, seen, out);
}

}  // namespace

std::size_t Pool::Hash::operator()(const Node* n) const {
  std::size_t h =
      static_cast<std::size_t>(n->op) * 0x9e3779b97f4a7c15U + static_cast<std::size_t>(n->value);
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9U + reinterpret_cast<std::size_t>(n->symbol);
  for (Term a : n->args)
    h = (h ^ (h >> 31)) * 0x94d049bb133111ebU + static_cast<std::size_t>(a->id);
  return h ^ (h >> 32);
}

bool Pool::Same::operator()(const Node* a, const Node* b) const {
  return a->op == b->op && a->value == b->value && a->symbol == b->symbol && a->args == b->args;
}

Pool::Pool() = default;

Pool& Term::pool() const {
  return *node_->pool;
}

Pool::Step& Pool::step(Term t) {
  if (steps_.size() < nodes_.size()) steps_.resize(nodes_.size());
  return steps_[t->id];
}

Term Pool::intern(Node node) {
  if (const auto it = known_.find(&node); it != known_.end()) return Term(*it);
  node.id = static_cast<int32_t>(nodes_.size());
  node.pool = this;
  node.facts = facts_of_node(node);
  int64_t size = 1;
  for (Term a : node.args) size += a->size;
  node.size = static_cast<int32_t>(std::min<int64_t>(size, largest_size));
  nodes_.push_back(std::move(node));
  known_.insert(&nodes_.back());
  return Term(&nodes_.back());
}

Result<const Symbol*> Pool::declare(Symbol symbol) {
  if (!is_name(symbol.name)) {
    return error(fail(bad_symbol, "`{}` cannot name a symbol", symbol.name)
                     .expect("letters, digits, `_` and `.`, not beginning with a digit, no word of "
                             "the grammar"));
  }
  if (symbol.bounds.modulus < 1) {
    return error(fail(bad_symbol, "`{}` is declared modulo {}", symbol.name, symbol.bounds.modulus)
                     .expect("a modulus of at least 1"));
  }
  symbol.bounds.residue = floor_remainder(symbol.bounds.residue, symbol.bounds.modulus);
  for (Term b : {symbol.bounds.lower, symbol.bounds.upper}) {
    if (b && b->predicate())
      return error(
          fail(bad_symbol, "a bound of `{}` is the predicate `{}`", symbol.name, to_string(b)));
  }
  if (const auto it = names_.find(symbol.name); it != names_.end()) {
    if (same_declaration(*it->second, symbol)) return it->second;
    return error(
        fail(bad_symbol, "`{}` is declared twice, with different kinds or bounds", symbol.name)
            .help("give the second one another name"));
  }
  symbol.facts = facts_of_bounds(symbol.bounds);
  symbol.index = static_cast<int32_t>(symbols_.size());
  symbols_.push_back(std::move(symbol));
  names_.emplace(symbols_.back().name, &symbols_.back());
  return &symbols_.back();
}

Term Pool::symbol(const Symbol* s) {
  Node n;
  n.op = s->kind;
  n.symbol = s;
  return intern(std::move(n));
}

Result<Term> Pool::coordinate(std::string_view name, int64_t extent) {
  if (extent < 1)
    return error(fail(bad_symbol, "coordinate `{}` has extent {}", name, extent)
                     .expect("an extent of at least 1"));
  TESSERA_TRY(s, declare({std::string(name), Op::coordinate, {constant(0), constant(extent)}}));
  return symbol(s);
}

Result<Term> Pool::counter(std::string_view name, Term lower, Term upper) {
  TESSERA_TRY(s, declare({std::string(name), Op::counter, {lower, upper}}));
  return symbol(s);
}

Result<Term> Pool::parameter(std::string_view name, const Bounds& bounds) {
  TESSERA_TRY(s, declare({std::string(name), Op::parameter, bounds}));
  return symbol(s);
}

Result<Term> Pool::derive(std::string_view name, Op kind, const Bounds& bounds) {
  Symbol s{std::string(name), kind, bounds};
  s.derived = true;
  TESSERA_TRY(declared, declare(std::move(s)));
  return symbol(declared);
}

Result<const Symbol*> Pool::memory(std::string_view name, int arity, const Bounds& bounds) {
  if (arity < 1)
    return error(fail(bad_symbol, "memory `{}` has {} indices", name, arity).expect("at least 1"));
  Symbol s{std::string(name), Op::read, bounds};
  s.arity = arity;
  return declare(std::move(s));
}

const Symbol* Pool::find(std::string_view name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}

Term Pool::constant(int64_t value) {
  Node n;
  n.value = value;
  return intern(std::move(n));
}

Term Pool::truth(bool value) {
  Node n;
  n.op = Op::truth;
  n.value = value ? 1 : 0;
  return intern(std::move(n));
}

Result<Term> Pool::make(Op op, std::vector<Term> args) {
  if (op <= Op::read || args.size() != arity(op))
    return error(
        fail(bad_operand, "an operator with {} operands", args.size()).expect("{}", arity(op)));
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i]->predicate() != wants_predicate(op, i)) {
      return error(fail(bad_operand, "`{}` stands where a {} is needed", to_string(args[i]),
                        wants_predicate(op, i) ? "predicate" : "number"));
    }
  }
  const bool divides = op == Op::divide || op == Op::remainder;
  const bool shifts = op == Op::shift_left || op == Op::shift_right;
  if (divides && !args[1]->facts.at_least(1)) {
    return error(fail(bad_operand, "the divisor `{}` may be below 1", to_string(args[1]))
                     .expect("a divisor that is at least 1")
                     .but_found("{}", to_string(args[1]->facts))
                     .help("declare a lower bound of the parameter, or divide by max(1, ...)"));
  }
  if (shifts && !args[1]->facts.within(0, 62)) {
    return error(fail(bad_operand, "the shift by `{}` may be out of range", to_string(args[1]))
                     .expect("an amount in [0, 62]")
                     .but_found("{}", to_string(args[1]->facts)));
  }
  Node n;
  n.op = op;
  n.args = std::move(args);
  return intern(std::move(n));
}

Result<Term> Pool::read(const Symbol* memory, std::vector<Term> args) {
  if (memory->kind != Op::read || static_cast<std::size_t>(memory->arity) != args.size()) {
    return error(fail(bad_operand, "`{}` is read with {} indices", memory->name, args.size())
                     .expect("a memory with as many"));
  }
  for (Term a : args)
    if (a->predicate())
      return error(fail(bad_operand, "an index of `{}` is a predicate", memory->name));
  Node n;
  n.op = Op::read;
  n.symbol = memory;
  n.args = std::move(args);
  return intern(std::move(n));
}

Term Pool::must(Op op, std::vector<Term> args) {
  Result<Term> made = make(op, std::move(args));
  if (!made) throw std::logic_error("term: " + made.error().message);
  return *made;
}

Term operator+(Term a, Term b) {
  return a.pool().must(Op::add, {a, b});
}
Term operator-(Term a, Term b) {
  return a.pool().must(Op::subtract, {a, b});
}
Term operator*(Term a, Term b) {
  return a.pool().must(Op::multiply, {a, b});
}
Term operator+(Term a, int64_t b) {
  return a + a.pool().constant(b);
}
Term operator-(Term a, int64_t b) {
  return a - a.pool().constant(b);
}
Term operator*(Term a, int64_t b) {
  return a * a.pool().constant(b);
}
Term floor_div(Term a, Term b) {
  return a.pool().must(Op::divide, {a, b});
}
Term floor_div(Term a, int64_t b) {
  return floor_div(a, a.pool().constant(b));
}
Term floor_mod(Term a, Term b) {
  return a.pool().must(Op::remainder, {a, b});
}
Term floor_mod(Term a, int64_t b) {
  return floor_mod(a, a.pool().constant(b));
}
Term bit_xor(Term a, Term b) {
  return a.pool().must(Op::bit_xor, {a, b});
}
Term less(Term a, Term b) {
  return a.pool().must(Op::less, {a, b});
}
Term less_equal(Term a, Term b) {
  return a.pool().must(Op::less_equal, {a, b});
}
Term equals(Term a, Term b) {
  return a.pool().must(Op::equal, {a, b});
}
Term logical_and(Term a, Term b) {
  return a.pool().must(Op::logical_and, {a, b});
}
Term logical_or(Term a, Term b) {
  return a.pool().must(Op::logical_or, {a, b});
}
Term logical_not(Term a) {
  return a.pool().must(Op::logical_not, {a});
}

std::vector<Term> symbols_of(const std::vector<Term>& terms) {
  std::set<const Node*> seen;
  std::map<int32_t, Term> found;
  for (Term t : terms) collect(t, seen, found);
  std::vector<Term> out;
  out.reserve(found.size());
  for (const auto& [index, t] : found) out.push_back(t);
  return out;
}

}  // namespace tessera::term
