#include "check/flow.h"

#include <algorithm>
#include <set>

#include "check/added.h"
#include "check/attend.h"
#include "check/bounds.h"
#include "check/brought.h"
#include "check/extents.h"
#include "check/footprint.h"
#include "check/launch.h"
#include "check/made.h"
#include "check/operand.h"
#include "check/place.h"
#include "check/products.h"
#include "check/promoted.h"
#include "check/raster.h"
#include "check/reading.h"
#include "check/slices.h"
#include "check/tile.h"
#include "check/turn_sum.h"
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
    for (const Place& p : products_)
      if (std::string open = add_product(p, roles_); !open.empty())
        return give_up("reduction", std::move(open)), std::move(out_);
    for (const std::vector<Products>& role : roles_)
      for (const Products& p : role)
        if (!sums(p)) return std::move(out_);
    store();
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

  /// The copies that fill what an op reads of a storage.
  std::vector<const Place*> copies(const Place& p, core::SharedId shared) {
    std::set<const core::Op*> ops;
    for (const ReadsFrom& r : runs_.reads_from) {
      if (r.read != p.op) continue;
      const Place* const q = place_of(places_, r.write);
      if (q == nullptr || q->op->as<core::Issue>() == nullptr) continue;
      const auto* to = argument<SharedAt>(q->issue(), "to");
      if (to == nullptr)
        give_up("k_agreement", "an operand comes from what is no copy to its place");
      if (to == nullptr || to->shared != shared) continue;  // the other operand's
      if (r.turns != 0) give_up("k_agreement", "a product reads what another turn copied");
      if (r.reader != r.writer && argument<core::Integers>(q->issue(), "blocks") == nullptr)
        give_up("k_agreement", "a product reads what another block copied");
      ops.insert(r.write);
    }
    std::vector<const Place*> out;
    for (const Place& q : places_)
      if (ops.contains(q.op)) out.push_back(&q);
    if (out.empty()) give_up("k_agreement", "an operand comes from no copy");
    return out;
  }

  /// A descriptor says which axis is contiguous; the shared memory has to lie so.
  bool lies_as_read(const Place& p, const SharedAt& at, std::string_view transpose,
                    const Known& known) {
    const auto* turned = argument<core::Integers>(p.issue(), transpose);
    const auto says = turned == nullptr ? 0 : value_of(turned->values[0], known);
    const Layout& layout = kernel_[at.shared].layout;
    const Layout rows = layout.mode(layout.rank() - 2);
    const int64_t lies = rows.size() > 1 && rows(1) - rows(0) == 1 ? 1 : 0;
    if (says == lies) return true;
    return refute("k_agreement", p, "an operand is read along another axis than it lies",
                  fmt::format("{} = {}", transpose, lies),
                  says ? std::to_string(*says) : "no constant",
                  "transpose an operand exactly if its rows are contiguous");
  }

  /// What the operand's matrix was copied from, or made of, for the warps of a warpgroup.
  std::optional<Operand> operand(const Place& p, std::string_view name, const Known& known) {
    const auto* at = argument<SharedAt>(p.issue(), name);
    const arch::Wgmma w = *wgmma_of(p.issue());
    const bool is_a = name == "a";
    for (const char* scale : {"scale_a", "scale_b"})
      if (const auto* by = argument<core::Integers>(p.issue(), scale);
          by != nullptr && value_of(by->values[0], known) != 1)
        return give_up("k_agreement", "a product negates an operand"), std::nullopt;
    if (at != nullptr && !lies_as_read(p, *at, is_a ? "transpose_a" : "transpose_b", known))
      return std::nullopt;
    Operand out;
    if (at == nullptr || (stored_by_threads(runs_, places_, p, at->shared) &&
                          !brought_by_other_roles(runs_, places_, p, at->shared))) {
      const auto group = static_cast<int>(known.at(p.role->warp.node()) / 4);
      if (const std::string why = made_.operand(p, name, group, out); !why.empty())
        return give_up("k_agreement", why), std::nullopt;
      return out;
    }
    const std::vector<const Place*> writers = copies(p, at->shared);
    if (!out_.why.empty()) return std::nullopt;
    Reading reading = reading_of(kernel_, means_, is_a, p, *at, writers);
    reading.rows = is_a ? arch::Wgmma::m : w.n;
    reading.steps = w.k();
    reading.known = known;
    const std::string why = trace(reading, out);
    if (!why.empty()) return give_up("k_agreement", why), std::nullopt;
    return out;
  }

  /// Both of one batch, where both have one.
  bool same_batch(const Place& p, const Operand& a, const Operand& b, int warp) {
    if (!a.batch || !b.batch) return true;
    const Term off = term::simplify(a.batch - b.batch);
    const std::optional<int64_t> number = value_of(off, {});
    if (number == 0) return true;
    const auto found =
        number ? std::optional(std::to_string(*number)) : varies(kernel_, p.loops, off);
    if (!found) return give_up("k_agreement", "the batches of A and B are not comparable");
    return refute("k_agreement", p, "a product multiplies elements of different batches",
                  "A and B of one batch", fmt::format("apart by {}", *found),
                  "load both operands of the same batch", warp, a.writer, "A is copied here");
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
          return refute(o->fault_kind, p, o->fault, o->fault_expected, o->fault_found,
                        o->fault_help, warp, o->writer, "copied here");
      if (!same_batch(p, *a, *b, warp)) return false;
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

  /// The sums that stand in accumulators of a role after the loop over k.
  bool sums(const Products& products) {
    const Place& first = products.front();
    if (first.loops.empty()) return give_up("reduction", "products stand in no loop");
    const core::For& loop = *first.loops.back();
    const auto& [a, b] = traced_.at({first.op, 0});
    if (loop.step->facts.constant() != 1 || loop.lower->facts.constant() != 0)
      return give_up("reduction", "the loop over k leaves out turns");
    const std::optional<int64_t> per_turn = per_turn_of(products, loop);
    if (!per_turn) return false;
    for (const Place& p : products) {
      if (p.loops.empty() || p.loops.back() != &loop || p.branches.size() != p.outside ||
          !p.unrolled.empty())
        return give_up("reduction", "products stand in different loops, or under conditions");
      if (!starts(p, loop, &p == &products.front())) return false;
    }
    const Term corner = means_.slices ? a.k_corner : loop.counter * *per_turn;
    for (int group = 0; 4 * group < first.role->warps; ++group)
      if (!turn_is_whole(products, group, corner, *per_turn)) return false;
    return whole(products, loop, *per_turn, a, b);
  }

  /// The products of a warpgroup sum each element of a turn once.
  bool turn_is_whole(const Products& products, int group, Term corner, int64_t per_turn) {
    TurnSum turn(per_turn);
    const auto wrong = [&](const Place& p, const TurnSum::Wrong& w) {
      return refute("reduction", p, w.message, w.expected, w.found, w.help,
                    p.role->first_warp + 4 * group);
    };
    for (const Place& p : products) {
      const auto& [x, y] = traced_.at({p.op, group});
      const std::optional<int64_t> from = value_of(x.k_corner - corner, {});
      if (!from) return give_up("reduction", "the products of a turn are of different tiles of k");
      if (const auto w = turn.add(x, y, *from)) return wrong(p, *w);
    }
    if (const auto w = turn.missing()) return wrong(products.front(), *w);
    if (turn.lacks_low()) out_.left_out = "products of low parts";
    return true;
  }

  /// Elements of k of a turn. Of slices the corner is looked into later.
  std::optional<int64_t> per_turn_of(const Products& products, const core::For& loop) {
    if (means_.slices) {
      int64_t steps = 0;
      for (const Place& p : products)
        steps += static_cast<int64_t>(traced_.at({p.op, 0}).first.k.size());
      return steps;
    }
    // Several copies may bring a turn's elements: one of them begins where the turn does.
    const auto begins = [&](const Place& p) {
      const term::Sum corner = term::sum_of(term::simplify(traced_.at({p.op, 0}).first.k_corner));
      const bool is =
          corner.constant == 0 && corner.parts.size() == 1 && corner.parts[0].atom == loop.counter;
      return is ? std::optional(corner.parts[0].coefficient) : std::nullopt;
    };
    for (const Place& p : products)
      if (const std::optional<int64_t> per_turn = begins(p)) return per_turn;
    const Operand& a = traced_.at({products.front().op, 0}).first;
    refute("reduction", products.front(),
           "a sum does not begin at k = 0, or does not go on where the last turn ended",
           fmt::format("the corner is a multiple of `{}`", to_string(loop.counter)),
           to_string(term::simplify(a.k_corner)), "copy the tile of k that the turn is of", 0,
           a.writer, "copied here");
    return std::nullopt;
  }

  /// The first product of a tile overwrites, all others add; or sums are added up on the way.
  bool starts(const Place& p, const core::For& loop, bool is_first) {
    const Begins b = is_first ? first_begins(kernel_, places_, p, loop) : goes_on(kernel_, p);
    if (!b.why.empty()) return give_up("reduction", b.why);
    if (b.to) promotions_.emplace(p.op, *b.to);
    return b.fault.empty() || refute("reduction", p, b.fault, b.expected, b.found, b.help, 0,
                                     b.addition, b.addition != nullptr ? "added up here" : "");
  }

  /// The loop reaches the end of k; what lies beyond is zero.
  bool whole(const Products& products, const core::For& loop, int64_t per_turn, const Operand& a,
             const Operand& b) {
    const Place& p = products.front();
    const Term extent =
        kernel_[means_.a.tensor].extents[static_cast<std::size_t>(means_.a.place(Axis::k))];
    if (means_.slices) return sliced(p, extent, per_turn, a, b) && beyond_is_zero(products);
    const term::Verdict v = term::always(term::less_equal(extent, loop.upper * per_turn));
    if (v.refuted())
      return refute(
          "reduction", p, "the loop over k ends before the extent",
          fmt::format("{} <= {} * ({})", to_string(extent), per_turn, to_string(loop.upper)),
          "not at " + term::to_string(v.witness, *kernel_.pool), "round the number of turns up");
    if (!v.proved()) return give_up("reduction", v.reason);
    return beyond_is_zero(products);
  }

  /// Each element of k is in one slice (slices.h).
  bool sliced(const Place& p, Term extent, int64_t per_turn, const Operand& a, const Operand& b) {
    const ElementAt& to = means_.outputs.front().to;
    slice_ = stored_slice(kernel_, places_, to);
    if (!slice_) return give_up("reduction", "no slice is stored");
    const Term count = kernel_[to.tensor].extents[static_cast<std::size_t>(to.place(Axis::batch))];
    const Sliced s = judge_slices(
        {kernel_, p, a.k_corner, a.row_corner, b.row_corner, *slice_, count, extent, per_turn});
    if (!s.why.empty()) return give_up("reduction", s.why);
    return s.fault.empty() ||
           refute("reduction", p, s.fault, s.expected, s.found,
                  "let turn k of slice s copy part s * turns + k, or k * slices + s", 0, a.writer,
                  "copied here");
  }

  bool beyond_is_zero(const Products& products) {
    for (const Place& p : products)
      for (int group = 0; 4 * group < p.role->warps; ++group) {
        const auto& [a, b] = traced_.at({p.op, group});
        if (!a.zeros || !b.zeros)
          return refute("reduction", p, "what lies beyond k is not zero",
                        "a tensor map that fills with zeros", "NaN", "fill with zeros");
      }
    return true;
  }

  /// The tiles that a role makes.
  std::optional<Raster> made(const std::vector<Products>& role, Place& last_store) {
    const Place& p = role.front().front();
    Tile tile(kernel_, places_, p, runs_, means_);
    const auto& [first_a, first_b] = traced_.at({p.op, 0});
    for (const Products& products : role) {
      const auto to = promotions_.find(products.front().op);
      tile.add_sums(products.front().issue(), to == promotions_.end() ? nullptr : &to->second);
      for (int group = 0; 4 * group < p.role->warps; ++group) {
        const auto& [a, b] = traced_.at({products.front().op, group});
        for (const Place& q : products) {
          const auto& [c, d] = traced_.at({q.op, group});
          if (c.rows != a.rows || d.rows != b.rows || d.factors != b.factors ||
              !same_corner(c, first_a) || !same_corner(d, first_b)) {
            give_up("placement", "products of a tile have different rows");
            return std::nullopt;
          }
        }
        tile.add_group(a, b);
      }
    }
    if (slice_) tile.set_batch(*slice_);
    tile.run();
    for (const Violation& v : tile.violations) out_.violations.push_back(v);
    if (!tile.violations.empty()) return std::nullopt;
    if (!tile.why.empty()) give_up("placement", tile.why);
    if (!tile.why.empty()) return std::nullopt;
    if (!tile.copies_its_own(runs_)) {
      give_up("placement", "a copy to the output reads what another turn or role wrote");
      return std::nullopt;
    }
    if (tile.last_store().op != nullptr) last_store = tile.last_store();
    followed_.insert(tile.walked().begin(), tile.walked().end());
    return Raster{first_a.row_corner, first_b.row_corner - means_.column_shift(),
                  tile.batch(),       tile.rows(),
                  tile.columns(),     p.loops.front(),
                  tile.taken(),       runs_.steady};
  }

  void store() {
    std::set<const core::Role*> multiply;
    for (const std::vector<Products>& role : roles_) multiply.insert(role.front().front().role);
    std::string why = misfit(kernel_, means_);
    if (why.empty() && stores_elsewhere(places_, multiply))
      why = "a store stands in a role without products";
    if (!why.empty()) return void(give_up("placement", std::move(why)));
    std::vector<Raster> rasters;
    Place last_store = roles_.front().front().front();
    for (const std::vector<Products>& role : roles_) {
      std::optional<Raster> r = made(role, last_store);
      if (!r) return;
      rasters.push_back(std::move(*r));
    }
    std::string open = open_bound(kernel_, places_, followed_);
    if (open.empty() && means_.multiplies()) open = misfit_of_factors(kernel_, means_);
    if (!open.empty()) give_up("placement", std::move(open));
    const Covering c = covering(kernel_, rasters, means_.outputs.front().to);
    if (c.verdict == Covering::Verdict::refuted)
      refute("output_once", last_store, c.message, "each tile of the output once", c.found,
             "let turns and blocks count the tiles one by one");
    else if (c.verdict == Covering::Verdict::unknown)
      give_up("output_once", c.found);
  }

  const core::Kernel& kernel_;
  const Runs& runs_;
  const Means& means_;
  std::vector<Place> places_;
  MadeOperands made_{kernel_, runs_, places_, means_};
  std::vector<Place> products_;
  std::vector<std::vector<Products>> roles_;  // of each role that multiplies
  std::map<std::pair<const core::Op*, int>, std::pair<Operand, Operand>> traced_;
  std::map<const core::Op*, Promotion> promotions_;  // by the first product of a turn
  std::set<const core::Op*> followed_;               // by the walk of a tile
  std::optional<Term> slice_;                        // the index of its output, where it has slices
  Flow out_;
};

}  // namespace

Flow flow(const core::Kernel& kernel, const Runs& runs, const Means& means) {
  if (means.attention) return attend(kernel, runs, *means.attention);
  if (!means.multiplies()) return add_up(kernel, runs, means);
  return Tracer(kernel, runs, means).go();
}

}  // namespace tessera::check
