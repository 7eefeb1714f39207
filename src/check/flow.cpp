#include "check/flow.h"

#include <algorithm>

#include "arch/ldmatrix.h"

#include "check/launch.h"
#include "check/place.h"
#include "check/raster.h"
#include "check/tile.h"
#include "term/query.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::check {
namespace {

using core::SharedAt;

class Tracer {
 public:
  Tracer(const core::Kernel& kernel, const Runs& runs, const Means& means)
      : kernel_(kernel), runs_(runs), means_(means), places_(places(kernel)) {}

  Flow go() {
    for (const Place& p : places_)
      if (p.op->as<core::Issue>() != nullptr && wgmma_of(p.issue())) products_.push_back(p);
    if (products_.empty()) {
      give_up("k_agreement", "the kernel has no wgmma");
      return std::move(out_);
    }
    for (const Place& p : products_)
      if (!agree(p)) return std::move(out_);
    if (sums()) store();
    return std::move(out_);
  }

 private:
  bool give_up(std::string_view kind, std::string why) {
    out_.why.emplace(kind, std::move(why));
    return false;
  }
  bool refute(std::string_view kind, const Place& p, std::string message, std::string expected,
              std::string found, std::string help, int warp = 0, const core::Op* other = nullptr,
              std::string other_text = "") {
    Violation v;
    v.kind = kind;
    v.op = p.op;
    v.warp = warp;
    v.lanes = "all lanes";
    v.message = std::move(message);
    v.expected = std::move(expected);
    v.found = std::move(found);
    v.help = std::move(help);
    v.other = other;
    v.other_text = std::move(other_text);
    out_.violations.push_back(std::move(v));
    return false;
  }

  /// What the operand's matrix was copied from, for the warps of a warpgroup.
  std::optional<Operand> operand(const Place& p, std::string_view name, const Known& known) {
    const auto* at = argument<SharedAt>(p.issue(), name);
    const arch::Wgmma w = *wgmma_of(p.issue());
    if (at == nullptr)
      return give_up("k_agreement", "an operand comes from registers"), std::nullopt;
    const Place* writer = nullptr;
    for (const ReadsFrom& r : runs_.reads_from)
      for (const Place& q : places_)
        if (r.read == p.op && r.write == q.op && q.op->as<core::Issue>() != nullptr) {
          const auto* to = argument<SharedAt>(q.issue(), "to");
          if (to == nullptr || to->shared != at->shared) continue;
          if (r.turns != 0)
            return give_up("k_agreement", "a product reads what another turn copied"), std::nullopt;
          if (writer != nullptr && writer->op != q.op)
            return give_up("k_agreement", "an operand comes from several copies"), std::nullopt;
          writer = &q;
        }
    if (writer == nullptr)
      return give_up("k_agreement", "an operand comes from no copy"), std::nullopt;
    const bool is_a = name == "a";
    const auto* turned = argument<core::Integers>(p.issue(), is_a ? "transpose_a" : "transpose_b");
    if (turned != nullptr && value_of(turned->values[0], known).value_or(1) != 0)
      return give_up("k_agreement", "an operand is transposed"), std::nullopt;
    Operand out;
    const std::string why = out.trace(kernel_, p, *at, *writer, is_a ? arch::Wgmma::m : w.n, w.k(),
                                      known, is_a ? means_.a_k : means_.b_k);
    if (!why.empty()) return give_up("k_agreement", why), std::nullopt;
    if (kernel_[out.map].tensor != (is_a ? means_.a : means_.b))
      return give_up("k_agreement", "an operand is another tensor than the meaning has"),
             std::nullopt;
    return out;
  }

  bool agree(const Place& p) {
    if (p.role == nullptr) return give_up("k_agreement", "a wgmma stands outside of roles");
    for (int group = 0; 4 * group < p.role->warps; ++group) {
      const Known known = {{p.role->warp.node(), int64_t{4} * group}};
      const std::optional<Operand> a = operand(p, "a", known), b = operand(p, "b", known);
      if (!a || !b) return false;
      const int warp = p.role->first_warp + 4 * group;
      for (const Operand* o : {&*a, &*b})
        if (!o->fault.empty())
          return refute("k_agreement", p, o->fault, o->fault_expected, o->fault_found,
                        "let the tensor map, the shared memory and the descriptor have one layout",
                        warp, o->writer, "copied here");
      const std::optional<int64_t> apart = value_of(a->k_corner - b->k_corner, {});
      if (!apart) {
        if (const auto found = varies(kernel_, p.loops, a->k_corner - b->k_corner))
          return refute("k_agreement", p, "a product multiplies elements of different k",
                        "the copies of A and B are apart along k by one number",
                        fmt::format("apart by {}", *found), "load both operands at the same k",
                        warp, a->writer, "A is copied here");
        return give_up("k_agreement", "the corners of A and B along k are not comparable");
      }
      for (std::size_t k = 0; k < a->k.size(); ++k)
        if (a->k[k] + *apart != b->k[k])
          return refute(
              "k_agreement", p, "a product multiplies elements of different k",
              fmt::format("A[.., k] meets B[.., k] at step {} of the instruction", k),
              fmt::format("A has k = corner + {}, B has k = corner + {}", a->k[k] + *apart,
                          b->k[k]),
              "load both operands at the same k, and let both descriptors start at the same k",
              warp, a->writer, "A is copied here");
      traced_[{p.op, group}] = {*a, *b};
    }
    return true;
  }

  /// The sums that stand in the accumulators after the loop over k.
  bool sums() {
    const Place& first = products_.front();
    if (first.loops.empty()) return give_up("reduction", "products stand in no loop");
    const core::For& loop = *first.loops.back();
    const auto& [a, b] = traced_.at({first.op, 0});
    std::vector<int64_t> times;
    const term::Sum corner = term::sum_of(term::simplify(a.k_corner));
    if (corner.constant != 0 || corner.parts.size() != 1 || corner.parts[0].atom != loop.counter)
      return refute("reduction", first,
                    "a sum does not begin at k = 0, or does not go on where the last turn ended",
                    fmt::format("the corner is a multiple of `{}`", to_string(loop.counter)),
                    to_string(term::simplify(a.k_corner)), "copy the tile of k that the turn is of",
                    0, a.writer, "copied here");
    const int64_t per_turn = corner.parts[0].coefficient;
    times.assign(static_cast<std::size_t>(per_turn), 0);
    for (const Place& p : products_) {
      if (p.loops.empty() || p.loops.back() != &loop || !p.branches.empty() || !p.unrolled.empty())
        return give_up("reduction", "products stand in different loops, or under conditions");
      if (!same_accumulators(p))
        return give_up("reduction", "products have different accumulators");
      if (!starts(p, loop, &p == &products_.front())) return false;
      for (int64_t k : traced_.at({p.op, 0}).first.k) {
        if (k < 0 || k >= per_turn || times[static_cast<std::size_t>(k)]++ != 0)
          return refute("reduction", p,
                        "an element of k is summed twice, or belongs to another turn",
                        fmt::format("each k of the turn's {} once", per_turn),
                        fmt::format("k = corner + {}", k),
                        "let each step of the descriptor begin where the last one ended");
      }
    }
    if (const auto gap = std::find(times.begin(), times.end(), 0); gap != times.end())
      return refute("reduction", first, "an element of k is left out of the sum",
                    fmt::format("each k of the turn's {} once", per_turn),
                    fmt::format("k = corner + {} is missing", gap - times.begin()),
                    "let the steps of a turn cover the tile");
    return whole(first, loop, per_turn, a, b);
  }

  [[nodiscard]] bool same_accumulators(const Place& p) const {
    const auto* mine = argument<core::Slice>(p.issue(), "d");
    const auto* one = argument<core::Slice>(products_.front().issue(), "d");
    return mine->registers == one->registers && mine->first == one->first;
  }

  /// The first product of a tile overwrites, all others add.
  bool starts(const Place& p, const core::For& loop, bool is_first) {
    const auto* keeps = argument<core::Integers>(p.issue(), "accumulate");
    if (keeps == nullptr) return give_up("reduction", "a wgmma without an accumulate operand");
    term::Pool& pool = *kernel_.pool;
    const Term one = pool.constant(1);
    const Term wanted =
        is_first ? pool.must(term::Op::select,
                             {term::equals(loop.counter, loop.lower), pool.constant(0), one})
                 : one;
    const term::Verdict v = term::equal(keeps->values[0], wanted);
    if (v.proved()) return true;
    if (!v.refuted()) return give_up("reduction", v.reason);
    return refute("reduction", p,
                  is_first ? "the first product of a tile does not overwrite, or a later one does"
                           : "a product drops what has been summed before it",
                  fmt::format("accumulate = {}", to_string(wanted)), to_string(keeps->values[0]),
                  "overwrite in the first product of the first turn alone");
  }

  /// The loop reaches the end of k; what lies beyond is zero.
  bool whole(const Place& p, const core::For& loop, int64_t per_turn, const Operand& a,
             const Operand& b) {
    const Term extent = kernel_[means_.a].extents[static_cast<std::size_t>(means_.a_k)];
    const term::Verdict v = term::always(term::less_equal(extent, loop.upper * per_turn));
    if (v.refuted())
      return refute(
          "reduction", p, "the loop over k ends before the extent",
          fmt::format("{} <= {} * ({})", to_string(extent), per_turn, to_string(loop.upper)),
          "not at " + term::to_string(v.witness, *kernel_.pool), "round the number of turns up");
    if (!v.proved()) return give_up("reduction", v.reason);
    for (core::MapId m : {a.map, b.map})
      if (kernel_[m].fill != arch::OutOfBounds::zeros)
        return refute("reduction", p, "what lies beyond k is not zero",
                      "a tensor map that fills with zeros", "NaN", "fill with zeros");
    return true;
  }

  void store() {
    const Place& p = products_.front();
    Tile tile(kernel_, places_, *p.role, p.issue(), runs_.period);
    for (int group = 0; 4 * group < p.role->warps; ++group) {
      const auto& [a, b] = traced_.at({p.op, group});
      for (const Place& q : products_)
        if (traced_.at({q.op, group}).first.rows != a.rows ||
            traced_.at({q.op, group}).second.rows != b.rows)
          return void(give_up("placement", "products of a tile have different rows"));
      tile.add_group(a, b);
    }
    tile.run(means_);
    for (const Violation& v : tile.violations) out_.violations.push_back(v);
    if (!tile.why.empty()) return void(give_up("placement", tile.why));
    if (!tile.violations.empty()) return;
    const auto& [a, b] = traced_.at({p.op, 0});
    Raster raster{a.row_corner, b.row_corner, tile.rows(), tile.columns(), p.loops.front()};
    const Covering c = covering(kernel_, raster, means_);
    if (c.verdict == Covering::Verdict::refuted)
      refute("output_once", tile.last_store(), c.message, "each tile of the output once", c.found,
             "let turns and blocks count the tiles one by one");
    else if (c.verdict == Covering::Verdict::unknown)
      give_up("output_once", c.found);
  }

  const core::Kernel& kernel_;
  const Runs& runs_;
  const Means& means_;
  std::vector<Place> places_;
  std::vector<Place> products_;
  std::map<std::pair<const core::Op*, int>, std::pair<Operand, Operand>> traced_;
  Flow out_;
};

}  // namespace

Flow flow(const core::Kernel& kernel, const Runs& runs, const Means& means) {
  return Tracer(kernel, runs, means).go();
}

}  // namespace tessera::check
