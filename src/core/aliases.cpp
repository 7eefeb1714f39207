#include "core/aliases.h"

#include <algorithm>

namespace tessera::core {
namespace {

constexpr int least_size = 5;  // nodes

bool has_read(Term t) {
  return any_node(t, [](Term n) { return n->op == term::Op::read; });
}

/// The same order in every pool: what a term is made of comes before it.
struct Smaller {
  bool operator()(Term a, Term b) const {
    if (a == b || a->size != b->size) return a->size < b->size;
    return term::to_string(a) < term::to_string(b);
  }
};

/// Where the kernel's text writes terms, and which symbols are known in which body.
struct Uses {
  std::map<Term, std::vector<Path>, Smaller> of;
  std::map<Path, std::vector<Term>> symbols;  // that a body, by the path to it, brings
  std::set<std::string> names;                // that stand for something else

  void term(Term t, const Path& at) {
    if (t && !t->args.empty()) of[t].push_back(at);
  }
  void argument(const Argument& a, const Path& at) {
    std::vector<Term> terms;
    if (const auto* s = std::get_if<SharedAt>(&a)) terms = s->at;
    if (const auto* b = std::get_if<BarrierAt>(&a)) terms = {b->slot};
    if (const auto* g = std::get_if<GlobalAt>(&a)) terms = g->at;
    if (const auto* s = std::get_if<Slice>(&a)) terms = {s->first};
    if (const auto* n = std::get_if<Integers>(&a)) terms = n->values;
    for (const Term t : terms) term(t, at);
  }
  void compute(const Compute& c, const Path& at) {
    for (const auto& input : c.inputs) {
      const auto* run = std::get_if<Run>(&input);
      term(run != nullptr ? run->first : std::get<Term>(input), at);
    }
    for (const Run& r : c.results) term(r.first, at);
    if (c.element && c.element->symbol != nullptr) names.insert(c.element->symbol->name);
  }
  void tagged(const Tagged& where, const std::vector<Term>& over, const Path& at) {
    std::visit([&](const auto& a) { argument(a, at); }, where);
    for (const Term s : over) names.insert(s->symbol->name);
  }
  void tags(const Op& op, const Path& at) {
    if (const auto* t = op.as<Tag>()) {
      tagged(t->at, t->over, at);
      term(t->value, at);
    }
    const auto* a = op.as<AssertTag>();
    if (a == nullptr) return;
    tagged(a->at, a->over, at);
    if (const auto* other = std::get_if<Tagged>(&a->to))
      tagged(*other, {}, at);
    else
      term(std::get<Term>(a->to), at);
  }
  void name(Term symbol, const Path& body) {
    if (!symbol || symbol->symbol == nullptr) return;
    symbols[body].push_back(symbol);
    names.insert(symbol->symbol->name);
  }

  void body(const Kernel& k, const Body& ops, const Path& around, int from = 0) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Path at = around;
      at.push_back(from + static_cast<int>(i));
      if (const auto* s = ops[i].as<Issue>())
        for (const Argument& a : s->arguments) argument(a, at);
      if (const auto* c = ops[i].as<Compute>()) compute(*c, at);
      tags(ops[i], at);
      if (const auto* d = ops[i].as<Declare>()) names.insert(k[d->registers].name);
      if (const auto* e = ops[i].as<Elected>()) body(k, e->body, at);
      if (const auto* f = ops[i].as<For>()) {
        for (const Term t : {f->lower, f->upper, f->step}) term(t, at);
        name(f->counter, at);
        for (const Carried& c : f->carried) name(c.symbol, at);
        body(k, f->body, at);
      }
      if (const auto* b = ops[i].as<If>()) {
        term(b->condition, at);
        body(k, b->body, at);
        body(k, b->otherwise, at, otherwise_from);
      }
      if (const auto* r = ops[i].as<Role>()) {
        name(r->warp, at);
        body(k, r->body, at);
      }
    }
  }
};

/// Picks the names of one term.
struct Placement {
  const Kernel& kernel;
  const Uses& uses;
  Term term;
  std::vector<Path>& written;  // where its own text is written in the end
  std::map<Path, std::vector<Term>>& before;

  [[nodiscard]] bool is_known(Term symbol, const Path& body) const {
    const auto& p = kernel.parameters;
    if (std::find(p.begin(), p.end(), symbol) != p.end()) return true;
    const Coordinates& at = kernel.at;
    for (const Term t : {at.lane, at.warp, at.block, at.blocks, at.rank})
      if (t == symbol) return true;
    for (std::size_t n = 1; n <= body.size(); ++n)
      if (const auto found = uses.symbols.find(Path(body.begin(), body.begin() + n));
          found != uses.symbols.end() &&
          std::find(found->second.begin(), found->second.end(), symbol) != found->second.end())
        return true;
    return false;
  }

  /// `all` lie in `body`, a path of `depth` numbers that they begin with.
  void place(const std::vector<Path>& all, std::size_t depth) {
    const Path body(all[0].begin(), all[0].begin() + depth);
    std::map<int, std::vector<Path>> by_op;
    for (const Path& p : all) by_op[p[depth]].push_back(p);
    const bool in_one = by_op.size() == 1;
    const bool whole =
        std::any_of(all.begin(), all.end(), [&](const Path& p) { return p.size() == depth + 1; });
    const auto otherwise = [&](const Path& p) { return p[depth + 1] >= otherwise_from; };
    const bool in_both = !whole && in_one && !std::all_of(all.begin(), all.end(), otherwise) &&
                         std::any_of(all.begin(), all.end(), otherwise);
    const bool known = !any_node(
        term, [&](Term n) { return n->symbol != nullptr && n->leaf() && !is_known(n, body); });
    if (known && all.size() > 1 && (!in_one || whole || in_both)) {
      Path at = body;
      at.push_back(by_op.begin()->first);
      before[at].push_back(term);
      written.push_back(std::move(at));
      return;
    }
    for (const auto& [number, inside] : by_op) {
      if (inside.size() > 1 && inside[0].size() > depth + 1 &&
          std::all_of(inside.begin(), inside.end(),
                      [&](const Path& p) { return p.size() > depth + 1; }))
        place(inside, depth + 1);
      else
        written.insert(written.end(), inside.begin(), inside.end());
    }
  }
};

/// The term over symbols of another pool, with names in the place of terms that have them.
struct Copy {
  term::Pool pool = {};
  std::map<const term::Node*, Term> known = {};

  Term symbol(const std::string& name, const term::Facts& f) {
    term::Bounds b{.modulus = std::max<int64_t>(f.modulus, 1), .residue = f.residue};
    if (f.modulus == 0) b.residue = 0;
    if (f.lower) b.lower = pool.constant(*f.lower);
    if (f.upper && *f.upper < INT64_MAX) b.upper = pool.constant(*f.upper + 1);
    return *pool.parameter(name, b);
  }
  Term operator()(Term t) {
    if (const auto found = known.find(t.node()); found != known.end()) return found->second;
    Term out;
    if (t->symbol != nullptr) {
      out = symbol(t->symbol->name, t->facts);
    } else if (t->op == term::Op::constant) {
      out = pool.constant(t->value);
    } else if (t->op == term::Op::truth) {
      out = pool.truth(t->value != 0);
    } else {
      std::vector<Term> args;
      for (const Term a : t->args) args.push_back((*this)(a));
      out = pool.must(t->op, std::move(args));
    }
    known[t.node()] = out;
    return out;
  }
};

std::string text_by(Term t, const std::vector<std::pair<Term, std::string>>& names,
                    std::size_t count) {
  if (count == 0 || has_read(t)) return term::to_string(t);
  Copy copy;
  for (std::size_t i = 0; i < count; ++i)
    copy.known[names[i].first.node()] = copy.symbol(names[i].second, names[i].first->facts);
  return term::to_string(copy(t));
}

}  // namespace

Aliases::Aliases(const Kernel& k) {
  Uses uses;
  uses.body(k, k.body, {});
  // A term is seen after all that are made of it, when all its uses are known.
  while (!uses.of.empty()) {
    const auto largest = std::prev(uses.of.end());
    const Term t = largest->first;
    const std::vector<Path> all = std::move(largest->second);
    uses.of.erase(largest);
    std::vector<Path> written;
    if (all.size() > 1 && t->size >= least_size && !t->predicate() && !has_read(t))
      Placement{k, uses, t, written, before_}.place(all, 0);
    else
      written = all;
    for (const Path& at : written)
      for (const Term a : t->args) uses.term(a, at);
  }
  for (auto& [path, terms] : before_) std::sort(terms.begin(), terms.end(), Smaller());
  taken_ = uses.names;
  for (const Term p : k.parameters) taken_.insert(p->symbol->name);
  for (const auto& [name, value] : k.constants) taken_.insert(name);
  for (const Tensor& t : k.tensors) taken_.insert(t.name);
  for (const TensorMap& m : k.maps) taken_.insert(m.name);
  for (const Shared& s : k.shared) taken_.insert(s.name);
  for (const Barriers& b : k.barriers) taken_.insert(b.name);
}

const std::vector<Term>& Aliases::before(const Path& op) const {
  static const std::vector<Term> none;
  const auto found = before_.find(op);
  return found == before_.end() ? none : found->second;
}

std::pair<std::string, std::string> Aliases::begin(Term t) {
  std::string name;
  do name = fmt::format("i{}", next_++);
  while (taken_.count(name) > 0);
  std::string definition = text(t);
  used_.emplace_back(t, name);
  return {std::move(name), std::move(definition)};
}

void Aliases::end(std::size_t count) {
  used_.resize(used_.size() - count);
}

std::string Aliases::text(Term t) const {
  return t ? text_by(t, used_, used_.size()) : "None";
}

}  // namespace tessera::core
