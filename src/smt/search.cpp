#include "smt/search.h"

#include <algorithm>

#include "smt/shrink.h"

namespace tessera::smt {
namespace {

using term::Assignment;
using term::Op;
using term::Term;

// Beyond it a symbol is taken to be only where nothing else is found.
constexpr int64_t everyday = int64_t{1} << 31;

bool has(const std::vector<Term>& terms, bool (*test)(Term)) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](Term t) { return term::any_node(t, [&](Term n) { return test(n); }); });
}

bool is_bitwise(Term n) {
  return n->op >= Op::bit_xor && n->op <= Op::shift_right;
}

bool is_product(Term n) {
  const auto constant = [](Term t) { return t->facts.constant().has_value(); };
  if (n->op == Op::multiply) return !constant(n->args[0]) && !constant(n->args[1]);
  return (n->op == Op::divide || n->op == Op::remainder) && !constant(n->args[1]);
}

bool is_read(Term n) {
  return n->op == Op::read;
}

std::vector<Term> symbols_with(std::vector<Term> terms, const std::vector<Term>& coordinates) {
  terms.insert(terms.end(), coordinates.begin(), coordinates.end());
  return symbols_of(terms);
}

class Attempt {
 public:
  // `whole`: with the bounds of all that the original has. Leaving those of what the normal form
  // no longer has out asks for less, so that there being no assignment stays right.
  Attempt(const Library& library, const Problem& problem, std::optional<unsigned> width, bool whole)
      : problem_(problem),
        session_(library),
        numbers_(width ? bit_vectors(session_, *width) : integers(session_)),
        first_(session_, *numbers_) {
    out_.by = width ? Tier::bit_vectors : Tier::integers;
    conditions_.push_back(sides(first_, whole));
    // Shares what the first has by now: all symbols.
    if (!problem.coordinates.empty()) second_.emplace(first_, problem.coordinates);
    if (second_) conditions_.push_back(sides(*second_, whole));
    conditions_.push_back(claim());
  }

  Found run(const Limits& limits) {
    if (!check(limits, conditions_)) return std::move(out_);
    if (take_model()) return std::move(out_);
    // Of the same, values that can be computed.
    std::vector<Expr> more = conditions_;
    const auto limit = [&](Expr value) {
      more.push_back(numbers_->less(numbers_->constant(-everyday), value));
      more.push_back(numbers_->less(value, numbers_->constant(everyday)));
    };
    for (const Encoding* e : encodings()) {
      for (const auto& [leaf, value] : e->leaves()) limit(value);
      for (const auto& [read, value] : e->reads()) limit(value);
    }
    if (out_.by == Tier::bit_vectors || !check(limits, more)) {
      out_.answer = Answer::unknown;
      out_.reason = "Z3 has a counterexample that cannot be evaluated in 64 bits";
    } else if (!take_model()) {
      out_.answer = Answer::unknown;
      out_.reason = numbers_->abstract
                        ? "Z3 takes a bitwise operator for any function where both operands have "
                          "more than 32 bits, and nothing else forbids that the claim fails"
                        : "Z3 has a counterexample that cannot be evaluated";
    }
    return std::move(out_);
  }

 private:
  std::vector<const Encoding*> encodings() const {
    std::vector<const Encoding*> out{&first_};
    if (second_) out.push_back(&*second_);
    return out;
  }
  // What surrounds the claim: bounds of symbols, and of what is read.
  Expr sides(Encoding& e, bool whole) {
    std::vector<Expr> all{e.admissible(
        symbols_with(whole ? problem_.original : problem_.normal, problem_.coordinates))};
    if (whole)
      for (Term t : problem_.original) all.push_back(e.defined(t));
    return session_.all(all);
  }
  Expr claim() {
    std::vector<Expr> all;
    if (!second_) {
      for (Term t : problem_.normal) all.push_back(first_.of(t));
      return session_.all(all);
    }
    std::vector<Expr> differ;
    for (Term c : problem_.coordinates) {
      Expr a = first_.of(c), b = second_->of(c);
      differ.push_back(session_.negation(session_.equal(a, b)));
    }
    Expr a = first_.of(problem_.normal[0]), b = second_->of(problem_.normal[0]);
    return session_.all({session_.any(differ), session_.equal(a, b)});
  }

  bool check(const Limits& limits, std::vector<Expr> conditions) {
    conditions.insert(conditions.end(), numbers_->conditions.begin(), numbers_->conditions.end());
    const bool reads = !first_.reads().empty() || numbers_->abstract;
    const char* logic = numbers_->logic(reads);
    out_.answer = session_.check(logic, conditions, limits.work);
    out_.work = session_.work();
    out_.reason =
        out_.answer == Answer::unknown ? session_.reason() : std::string("Z3, in ") + logic;
    return out_.answer == Answer::satisfiable;
  }

  // The model of the last check, replayed and made smaller.
  bool take_model() {
    Assignment model, other;
    if (!values(first_, model) || (second_ && !values(*second_, other))) return false;
    for (const auto& [place, value] : other.reads) model.reads.emplace(place, value);
    auto pair = replayed(problem_, model, other);
    if (!pair) return false;
    make_smaller(*pair);
    out_.model = std::move(pair->first);
    out_.other = std::move(pair->second);
    return true;
  }

  bool values(const Encoding& e, Assignment& a) {
    for (const auto& [leaf, expr] : e.leaves()) {
      const auto v = numbers_->value(expr);
      if (!v) return false;
      a.symbols[leaf->symbol->name] = *v;
    }
    a.seed = 0;
    for (const auto& [read, expr] : e.reads()) {
      std::vector<int64_t> at;
      for (Term index : read->args)
        if (const Result<int64_t> i = evaluate(index, a)) at.push_back(*i);
      // Where it does not fit 64 bits, the read may still be one that evaluation does not reach.
      const auto v = numbers_->value(expr);
      if (at.size() == read->args.size() && v) a.reads[{read->symbol->name, at}] = *v;
    }
    return true;
  }

  void make_smaller(std::pair<Assignment, Assignment>& found) {
    std::vector<std::pair<Assignment*, std::string>> places;
    std::vector<Shrinkable> point;
    Assignment a = found.first, b = found.second;
    const auto offer = [&](Assignment& in, Term s) {
      const term::Facts& f = s->symbol->facts;
      if (f.modulus == 0) return;
      const int64_t target = f.lower ? *f.lower : f.upper && *f.upper < 0 ? *f.upper : f.residue;
      places.emplace_back(&in, s->symbol->name);
      point.push_back({in.symbols.at(s->symbol->name), target, f.modulus});
    };
    for (Term s : symbols_with(problem_.original, problem_.coordinates)) offer(a, s);
    for (Term c : problem_.coordinates) offer(b, c);
    shrink(point, [&] {
      for (std::size_t i = 0; i < point.size(); ++i)
        places[i].first->symbols[places[i].second] = point[i].value;
      auto again = replayed(problem_, a, b);
      if (!again) return false;
      found = *std::move(again);
      return true;
    });
  }

  const Problem& problem_;
  Session session_;
  std::unique_ptr<Numbers> numbers_;
  Encoding first_;
  std::optional<Encoding> second_;
  std::vector<Expr> conditions_;
  Found out_;
};

struct Way {
  std::optional<unsigned> width;  // of bit vectors; without: integers
  bool whole = true;
};

// In the order in which they are tried.
std::vector<Way> ways_of(const Problem& problem) {
  std::vector<Way> out{{}};
  std::vector<Term> normal = symbols_with(problem.normal, problem.coordinates);
  normal.insert(normal.end(), problem.normal.begin(), problem.normal.end());
  std::vector<Term> all = symbols_with(problem.original, problem.coordinates);
  all.insert(all.end(), normal.begin(), normal.end());
  if (has(problem.original, is_read))
    all.insert(all.end(), problem.original.begin(), problem.original.end());
  const auto of_all = common_width(all), of_normal = common_width(normal);
  if (!of_all && !of_normal) return out;
  // Products of unknowns are where bits cost most, and bits where integers do.
  const bool late = has(problem.normal, is_product) && !has(problem.normal, is_bitwise);
  out.insert(late ? out.end() : out.begin(), {of_all ? of_all : of_normal, of_all.has_value()});
  return out;
}

}  // namespace

Found search(const Library& library, const Problem& problem, const Limits& limits,
             std::optional<Tier> only) {
  Found out;
  std::string why;
  int64_t work = 0;
  for (const Way& way : ways_of(problem)) {
    if (only && *only != (way.width ? Tier::bit_vectors : Tier::integers)) continue;
    out = Attempt(library, problem, way.width, way.whole).run(limits);
    work += out.work;
    out.work = work;
    if (out.answer != Answer::unknown) return out;
    why += (why.empty() ? "" : "; ") + out.reason;
  }
  out.answer = Answer::unknown;
  out.reason = why.empty() ? "some number has no bounds within 64 bits" : why;
  out.by = Tier::none;
  return out;
}

}  // namespace tessera::smt
