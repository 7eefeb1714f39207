#include "check/slices.h"

#include <algorithm>
#include <array>
#include <map>

#include "term/evaluate.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using term::Op;

class Judge {
 public:
  explicit Judge(const Slices& s) : s_(s), pool_(*s.kernel.pool), loops_(s.product.loops) {}

  Sliced judge() {
    const core::For& loop = *loops_.back();
    const Term k = loop.counter, turns = loop.upper;
    const bool in_order = same(s_.k_corner, (s_.slice * turns + k) * s_.per_turn) ||
                          same(s_.k_corner, (k * s_.count + s_.slice) * s_.per_turn);
    const bool one_by_one =
        same(loop.lower, pool_.constant(0)) && same(loop.step, pool_.constant(1));
    if (in_order && one_by_one && reaches(turns)) return {};
    Sliced out = at_small_launches();
    if (out.fault.empty())
      out.why = in_order ? fmt::format(
                               "it is not known that `{}` turns of each slice reach the "
                               "end of k",
                               to_string(turns))
                         : fmt::format(
                               "the order of slices and turns is not known to take each "
                               "part of k once: `{}`",
                               to_string(term::simplify(s_.k_corner)));
    return out;
  }

 private:
  static bool same(Term a, Term b) { return term::simplify(a) == term::simplify(b); }

  [[nodiscard]] bool reaches(Term turns) const {
    const Term parts = term::floor_div(s_.extent + (s_.per_turn - 1), s_.per_turn);
    return same(turns, pool_.must(Op::divide, {parts - 1, s_.count}) + 1) ||
           same(turns, pool_.must(Op::divide, {parts + s_.count - 1, s_.count})) ||
           term::always(term::less_equal(s_.extent, s_.count * turns * s_.per_turn),
                        {.operations = 1 << 16})
               .proved();
  }

  /// Of a tile: how often each k is summed, and how often each slice is stored.
  struct Times {
    std::vector<int> k, slices;
  };

  /// Counts both for each tile of some launches.
  Sliced at_small_launches() {
    if (loops_.size() != 2 || !s_.product.branches.empty() || s_.extent->op != Op::parameter ||
        s_.count->op != Op::parameter)
      return {};
    for (const int64_t slices : {1, 2, 3})
      for (const int64_t parts : {1, 2, 3, 5, 8})
        for (const int64_t multiprocessors : {1, 3, 132})
          for (const bool more : {false, true}) {
            Sliced out = launch(slices, parts, more, multiprocessors);
            if (!out.fault.empty()) return out;
          }
    return {};
  }

  [[nodiscard]] int64_t value(Term t) const { return term::evaluate(t, at_).value_or(-1); }

  /// With so many parts of k; with `more`, some elements beyond them.
  Sliced launch(int64_t slices, int64_t parts, bool more, int64_t multiprocessors) {
    at_ = {};
    for (Term p : s_.kernel.parameters)
      at_.symbols[p->symbol->name] = p->symbol->facts.lower.value_or(1);
    const int64_t step = std::max<int64_t>(s_.extent->symbol->facts.modulus, 1);
    const int64_t depth = parts * s_.per_turn / step * step + (more ? step : 0);
    at_.symbols[s_.extent->symbol->name] = depth;
    at_.symbols[s_.count->symbol->name] = slices;
    at_.symbols[s_.kernel.at.multiprocessors->symbol->name] = multiprocessors;
    const int64_t blocks = value(s_.kernel.grid);
    if (depth < 1 || blocks < 1) return {};
    at_.symbols["blocks"] = blocks;
    const std::string at = fmt::format("at {} = {}, {} = {}", s_.extent->symbol->name, depth,
                                       s_.count->symbol->name, slices);
    const auto not_once = [](const std::vector<int>& times) {
      return std::find_if(times.begin(), times.end(), [](int n) { return n != 1; });
    };
    for (const auto& [tile, times] : taken(blocks, depth, slices)) {
      if (const auto bad = not_once(times.k); bad != times.k.end())
        return {
            "",
            *bad == 0 ? "an element of k is in no slice" : "an element of k is in several slices",
            "each element of k in one slice, once",
            fmt::format("k = {} {} times, {}", bad - times.k.begin(), *bad, at)};
      if (const auto bad = not_once(times.slices); bad != times.slices.end())
        return {"", *bad == 0 ? "a slice is not stored" : "a slice is stored twice",
                "each slice of a tile, once",
                fmt::format("slice {} {} times, {}", bad - times.slices.begin(), *bad, at)};
    }
    return {};
  }

  std::map<std::array<int64_t, 2>, Times> taken(int64_t blocks, int64_t depth, int64_t slices) {
    std::map<std::array<int64_t, 2>, Times> out;
    for (int64_t block = 0; block < blocks; ++block) {
      at_.symbols["block"] = block;
      at_.symbols["rank"] = block % s_.kernel.cluster;
      const core::For &tiles = *loops_[0], &steps = *loops_[1];
      const int64_t end = value(tiles.upper);
      for (int64_t turn = value(tiles.lower); turn < end; ++turn) {
        at_.symbols[tiles.counter->symbol->name] = turn;
        Times& times = out[{value(s_.row_corner), value(s_.column_corner)}];
        times.k.resize(static_cast<std::size_t>(depth), 0);
        times.slices.resize(static_cast<std::size_t>(slices), 0);
        if (const int64_t slice = value(s_.slice); slice >= 0 && slice < slices)
          ++times.slices[static_cast<std::size_t>(slice)];
        const int64_t last = value(steps.upper);
        for (int64_t k = value(steps.lower); k < last; ++k) {
          at_.symbols[steps.counter->symbol->name] = k;
          const int64_t from = value(s_.k_corner);
          for (int64_t i = std::max<int64_t>(from, 0); i < std::min(from + s_.per_turn, depth); ++i)
            ++times.k[static_cast<std::size_t>(i)];
        }
        at_.symbols.erase(steps.counter->symbol->name);
      }
    }
    return out;
  }

  const Slices& s_;
  term::Pool& pool_;
  const std::vector<const core::For*>& loops_;
  term::Assignment at_;
};

}  // namespace

Sliced judge_slices(const Slices& s) {
  return Judge(s).judge();
}

std::optional<Term> stored_slice(const core::Kernel& kernel, const std::vector<Place>& all,
                                 const ElementAt& to) {
  const int d = to.place(Axis::batch);
  for (const Place& p : all) {
    if (p.op->as<core::Issue>() == nullptr || d < 0) continue;
    if (const auto* at = argument<core::GlobalAt>(p.issue(), "to");
        at != nullptr && at->tensor == to.tensor)
      return at->at[static_cast<std::size_t>(d)];
    const auto* ref = argument<core::MapRef>(p.issue(), "map");
    const auto* at = argument<core::Integers>(p.issue(), "at");
    if (ref == nullptr || at == nullptr || kernel[ref->map].tensor != to.tensor) continue;
    const std::vector<int>& dims = kernel[ref->map].dims;
    const auto place = std::find(dims.begin(), dims.end(), d);
    if (place != dims.end()) return at->values[static_cast<std::size_t>(place - dims.begin())];
  }
  return std::nullopt;
}

}  // namespace tessera::check
