#include "replay/launches.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/walk.h"
#include "term/evaluate.h"

namespace tessera::replay {
namespace {

using core::Term;
using term::Assignment;

constexpr int64_t most_blocks = 32;
constexpr int64_t most_elements = int64_t{1} << 22;

bool has(Term t, Term leaf) {
  return term::any_node(t, [&](Term n) { return n == leaf; });
}

/// What a term divides sums with `parameter` in them by: the sizes of tiles.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
void units(Term t, Term parameter, std::set<int64_t>& out) {
  if (t->op == term::Op::divide && t->args[1]->op == term::Op::constant &&
      has(t->args[0], parameter))
    out.insert(t->args[1]->value);
  for (Term a : t->args) units(a, parameter, out);
}

bool rounds_to_tf32(const core::Op& op) {
  const auto* const c = op.as<core::Compute>();
  return c != nullptr && std::any_of(c->dag->nodes.begin(), c->dag->nodes.end(), [](const auto& n) {
           return n.function != nullptr && n.function->name.starts_with("round_tf32");
         });
}

/// Whether threads round elements to tf32, which no load has rounded before.
bool takes_apart(const core::Kernel& kernel) {
  bool rounds = false;
  core::for_each_op(kernel.body, [&](const core::Op& op) { rounds |= rounds_to_tf32(op); });
  return rounds && std::none_of(kernel.maps.begin(), kernel.maps.end(),
                                [](const core::TensorMap& m) { return m.rounded; });
}

}  // namespace

/// Tries values of a kernel's parameters.
class Search {
 public:
  Search(const core::Kernel& kernel, const std::vector<Term>& sizes)
      : kernel_(kernel), sizes_(sizes) {
    for (const core::Barriers& b : kernel.barriers) slots_ = std::max(slots_, b.count);
    for (Term p : kernel.parameters) {
      bool extent = false, stride = false;
      for (const core::Tensor& t : kernel.tensors) {
        for (Term e : t.extents) extent |= has(e, p);
        for (Term s : t.strides) stride |= s == p;
      }
      if (extent || !stride)
        free_.emplace_back(p, candidates(p));
      else
        strides_.insert(p.node());
    }
  }

  void into(Launches& out) {
    Assignment at;
    values(0, at, out);
    for (const auto& [p, values] : free_)
      if (values.size() > 2) out.varied_.push_back(p->symbol->name);
  }

 private:
  /// The least value at least n that the parameter's modulus allows.
  static int64_t allowed(Term p, int64_t n) {
    const term::Facts& f = p->facts;
    n = std::max(n, f.lower.value_or(1));
    if (f.modulus == 0) return f.residue;
    return n + term::floor_remainder(f.residue - n, f.modulus);
  }

  [[nodiscard]] std::vector<int64_t> candidates(Term p) const {
    std::set<int64_t> tiles;
    for (Term s : sizes_) units(s, p, tiles);
    units(kernel_.grid, p, tiles);
    std::set<int64_t> out = {allowed(p, 1)};
    if (tiles.empty()) out.insert(allowed(p, 2));
    const int64_t most = has(kernel_.grid, p) ? 3 : std::min<int64_t>(2 * slots_ + 1, 9);
    for (const int64_t t : tiles)
      for (int64_t n = 1; n <= most; ++n) {
        out.insert(allowed(p, n * t));
        if (n < 3) out.insert(allowed(p, n * t - t / 4));
      }
    return {out.begin(), out.end()};
  }

  // NOLINTNEXTLINE(misc-no-recursion): a parameter after the other
  void values(std::size_t next, Assignment& at, Launches& out) {
    if (next == free_.size()) return add(at, out);
    for (const int64_t n : free_[next].second) {
      at.symbols[free_[next].first->symbol->name] = n;
      values(next + 1, at, out);
    }
  }

  /// Strides that are parameters, of the dimension that is nearest to contiguous first.
  bool set_strides(Assignment& at) const {
    for (const core::Tensor& t : kernel_.tensors) {
      std::vector<std::size_t> order;
      for (std::size_t d = t.extents.size(); d-- > 0;) order.push_back(d);
      std::stable_partition(order.begin(), order.end(), [&](std::size_t d) {
        return t.strides[d]->op == term::Op::constant && t.strides[d]->value == 1;
      });
      int64_t span = 1;
      for (const std::size_t d : order) {
        const Term s = t.strides[d];
        const Result<int64_t> extent = term::evaluate(t.extents[d], at);
        if (strides_.contains(s.node()) && !at.symbols.contains(s->symbol->name))
          at.symbols[s->symbol->name] = allowed(s, span);
        const Result<int64_t> stride = term::evaluate(s, at);
        if (!extent || !stride) return false;
        span = std::max(span, *extent * *stride);
      }
      if (span > most_elements) return false;
    }
    return true;
  }

  void add(Assignment at, Launches& out) const {
    if (!set_strides(at) || !term::admissible(kernel_.parameters, at)) return;
    Launches::Found f;
    f.launch.parameters = {at.symbols.begin(), at.symbols.end()};
    for (const auto& [p, values] : free_) {
      f.elements += at.symbols.at(p->symbol->name);
      f.several += at.symbols.at(p->symbol->name) > values.front() ? 1 : 0;
    }
    std::set<int64_t> grids;
    for (const int64_t clusters : {1, 2}) {
      f.launch.multiprocessors = clusters * kernel_.cluster;
      at.symbols[kernel_.at.multiprocessors->symbol->name] = f.launch.multiprocessors;
      const Result<int64_t> blocks = term::evaluate(kernel_.grid, at);
      if (!blocks || *blocks < 1 || *blocks > most_blocks || !grids.insert(*blocks).second)
        continue;
      Launches::Found one = f;
      if (count(one, at, *blocks)) out.found_.push_back(std::move(one));
    }
  }

  bool count(Launches::Found& f, Assignment& at, int64_t blocks) const {
    at.symbols[kernel_.at.blocks->symbol->name] = blocks;
    for (int64_t b = 0; b < blocks; ++b) {
      at.symbols[kernel_.at.block->symbol->name] = b;
      at.symbols[kernel_.at.rank->symbol->name] = b % kernel_.cluster;
      at.symbols["cluster"] = b / kernel_.cluster;  // check/sizes.h
      std::vector<int64_t> turns;
      int64_t work = 1;
      for (Term s : sizes_) {
        const Result<int64_t> n = term::evaluate(s, at);
        if (!n) return false;
        turns.push_back(std::max<int64_t>(*n, 0));
        work *= turns.back() + 1;
      }
      f.work += work;
      f.turns.push_back(std::move(turns));
    }
    return true;
  }

  const core::Kernel& kernel_;
  const std::vector<Term>& sizes_;
  int64_t slots_ = 1;
  std::vector<std::pair<Term, std::vector<int64_t>>> free_;  // with the values that are tried
  std::set<const term::Node*> strides_;
};

namespace {

/// 0: some block has these numbers of turns; 1: one has at least these; 2: none.
int rank_of(const std::vector<std::vector<int64_t>>& blocks, const std::vector<int64_t>& wanted) {
  int out = 2;
  for (const std::vector<int64_t>& turns : blocks) {
    if (wanted.empty() || turns == wanted) return 0;
    bool more = true;
    for (std::size_t i = 0; i < turns.size() && i < wanted.size(); ++i)
      more &= turns[i] >= wanted[i];
    if (more) out = 1;
  }
  return out;
}

/// The first `count` behind the others.
std::vector<Small> last_first(std::vector<Small> all, std::ptrdiff_t count) {
  std::rotate(all.begin(), all.begin() + count, all.end());
  return all;
}

}  // namespace

Launches::Launches(const core::Kernel& kernel, const std::vector<Term>& sizes)
    : kernel_(kernel), apart_(takes_apart(kernel)) {
  Search(kernel, sizes).into(*this);
  std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
    return std::pair(a.work, -a.elements) < std::pair(b.work, -b.elements);
  });
}

bool Launches::alike(const Found& a, const Found& b) const {
  return a.turns == b.turns &&
         std::any_of(varied_.begin(), varied_.end(), [&](const std::string& name) {
           return a.launch.parameters.at(name) == b.launch.parameters.at(name);
         });
}

std::vector<Small> Launches::near(const std::vector<int64_t>& turns, int most) const {
  constexpr int most_exact = 4;
  std::vector<Small> out;
  // Barriers that count too few drift apart over many turns.
  for (const Found* f : longest())
    if (!turns.empty() && most > 2 && static_cast<int>(out.size()) + 1 < most &&
        rank_of(f->turns, turns) < 2)
      out.push_back({filled(f->launch), false});
  const auto long_ones = static_cast<std::ptrdiff_t>(out.size());
  std::map<std::vector<std::vector<int64_t>>, std::vector<const Found*>> taken;
  for (int rank = 0; rank < 3; ++rank) {
    int with_rank = 0;
    for (const Found& f : found_) {
      if (static_cast<int>(out.size()) >= most) return last_first(std::move(out), long_ones);
      if (rank == 0 && !turns.empty() && with_rank >= most_exact) break;
      if (rank_of(f.turns, turns) != rank) continue;
      // Of the same numbers of turns two: whole tiles, and parts of tiles alone.
      std::vector<const Found*>& same = taken[f.turns];
      if (same.size() == 2 || (same.size() == 1 && alike(*same[0], f))) continue;
      same.push_back(&f);
      ++with_rank;
      out.push_back({filled(f.launch), rank == 0});
    }
  }
  return last_first(std::move(out), long_ones);
}

std::optional<Small> Launches::several() const {
  const Found* best = nullptr;
  for (const Found& f : found_)
    if (best == nullptr || f.several > best->several) best = &f;
  if (best == nullptr) return std::nullopt;
  return Small{filled(best->launch), false};
}

std::vector<const Launches::Found*> Launches::longest() const {
  std::vector<const Found*> out;
  const std::size_t sizes = found_.empty() ? 0 : found_.front().turns.front().size();
  for (std::size_t i = 0; i < sizes; ++i) {
    const Found* best = nullptr;
    int64_t most = 0;
    for (const Found& f : found_)
      for (const std::vector<int64_t>& block : f.turns)
        if (block[i] > most) most = block[i], best = &f;
    if (best != nullptr) out.push_back(best);
  }
  // And what takes many turns of one loop in many of another.
  if (!found_.empty() && std::count(out.begin(), out.end(), &found_.back()) == 0)
    out.push_back(&found_.back());
  return out;
}

simulate::Launch Launches::filled(simulate::Launch launch) const {
  std::mt19937_64 random(1);
  const auto some = [&] { return static_cast<double>(random() % 5) - 2; };
  for (const core::Tensor& t : kernel_.tensors) {
    const Result<Lie> lie = lie_of(t, launch);
    if (t.access != core::Access::input || !lie) continue;
    std::vector<double>& to = launch.inputs[t.name];
    const bool rest = apart_ && t.element == DType::float32;
    for (int64_t i = 0; i < lie->span(); ++i) {
      to.push_back(some());
      if (rest && to.back() != 0) to.back() += some() / 8192;
    }
  }
  return launch;
}

std::string to_string(const core::Kernel& kernel, const simulate::Launch& launch) {
  std::string out;
  for (Term p : kernel.parameters)
    out += fmt::format("{} = {}, ", p->symbol->name, launch.parameters.at(p->symbol->name));
  return out + fmt::format("multiprocessors = {}", launch.multiprocessors);
}

int64_t Lie::span() const {
  int64_t last = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  return last + 1;
}

Result<Lie> lie_of(const core::Tensor& tensor, const simulate::Launch& launch) {
  Assignment at;
  at.symbols.insert(launch.parameters.begin(), launch.parameters.end());
  Lie out;
  for (std::size_t d = 0; d < tensor.extents.size(); ++d) {
    TESSERA_TRY(extent, term::evaluate(tensor.extents[d], at));
    TESSERA_TRY(stride, term::evaluate(tensor.strides[d], at));
    out.extents.push_back(extent);
    out.strides.push_back(stride);
  }
  return out;
}

}  // namespace tessera::replay
