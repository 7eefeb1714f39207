#include "check/added.h"

#include "check/bounds.h"
#include "check/extents.h"
#include "check/place.h"
#include "check/raster.h"
#include "check/tile.h"
#include "term/query.h"

namespace tessera::check {
namespace {

class Adding {
 public:
  Adding(const core::Kernel& kernel, const Runs& runs, const Means& means)
      : kernel_(kernel), runs_(runs), means_(means), places_(places(kernel)) {}

  Flow go() {
    follow();
    return std::move(out_);
  }

 private:
  void follow() {
    const Place* access = means_.sums() ? the_load() : the_store();
    if (access == nullptr) return;
    if (std::string why = misfit(kernel_, means_); !why.empty()) return give_up("placement", why);
    if (stores_elsewhere(places_, {access->role}))
      return give_up("placement", "a store stands in another role than the others");
    Tile tile(kernel_, places_, *access, runs_, means_);
    tile.run();
    out_.violations = tile.violations;
    if (!tile.violations.empty()) return;
    if (!tile.why.empty()) return give_up(means_.sums() ? "reduction" : "placement", tile.why);
    if (means_.sums() && !reaches(*access, tile.per_turn())) return;
    if (std::string open = open_bound(kernel_, places_, tile.walked()); !open.empty())
      return give_up("placement", std::move(open));
    cover(*access, tile);
  }

  void give_up(std::string_view kind, std::string why) { out_.why.emplace(kind, std::move(why)); }
  bool refute(std::string_view kind, const Place& p, std::string message, std::string expected,
              std::string found, std::string help) {
    Violation v;
    v.kind = kind;
    v.op = p.op;
    v.warp = p.role == nullptr ? 0 : p.role->first_warp;
    v.lanes = "all lanes";
    v.message = std::move(message);
    v.expected = std::move(expected);
    v.found = std::move(found);
    v.help = std::move(help);
    out_.violations.push_back(std::move(v));
    return false;
  }

  /// One of those that load elements of the sum.
  const Place* the_load() {
    const Place* out = nullptr;
    const std::string& name = kernel_[means_.a.tensor].name;
    for (const Place& p : places_) {
      if (p.op->as<core::Issue>() == nullptr || !p.issue().form->name.starts_with("load")) continue;
      const auto* at = argument<core::GlobalAt>(p.issue(), "from");
      if (at == nullptr || at->tensor != means_.a.tensor) continue;
      if (p.loops.size() != 2)
        return give_up("reduction",
                       fmt::format("a load of `{}` does not stand in two loops", name)),
               nullptr;
      if (p.branches.size() != p.outside)
        return give_up("reduction", "elements are added under conditions"), nullptr;
      if (out != nullptr && (out->role != p.role || out->loops != p.loops))
        return give_up("reduction", fmt::format("`{}` is loaded in several loops", name)), nullptr;
      out = &p;
    }
    if (out == nullptr) give_up("reduction", fmt::format("`{}` is not loaded", name));
    return out;
  }

  /// The first that stores elements of the first output.
  const Place* the_store() {
    const core::TensorId to = means_.outputs.front().to.tensor;
    for (const Place& p : places_) {
      if (p.op->as<core::Issue>() == nullptr || !p.issue().form->name.starts_with("store"))
        continue;
      const auto* at = argument<core::GlobalAt>(p.issue(), "to");
      if (at == nullptr || at->tensor != to) continue;
      if (p.loops.size() < 2) return &p;
      give_up("placement",
              fmt::format("a store of `{}` stands in several loops", kernel_[to].name));
      return nullptr;
    }
    give_up("placement", fmt::format("`{}` is not stored from registers", kernel_[to].name));
    return nullptr;
  }

  /// The loop reaches the last element; beyond it, loads add zero (Tile::load).
  bool reaches(const Place& load, int64_t per_turn) {
    const core::For& loop = *load.loops.back();
    if (loop.lower->facts.constant() != 0 || loop.step->facts.constant() != 1) {
      give_up("reduction", "the loop that adds up does not count from 0 by one");
      return false;
    }
    const Term extent =
        kernel_[means_.a.tensor].extents[static_cast<std::size_t>(means_.a.place(Axis::k))];
    const term::Verdict v = term::always(term::less_equal(extent, loop.upper * per_turn));
    if (v.proved()) return true;
    if (!v.refuted()) {
      give_up("reduction", v.reason);
      return false;
    }
    return refute(
        "reduction", load, "the loop that adds up ends before the extent",
        fmt::format("{} <= {} * ({})", to_string(extent), per_turn, to_string(loop.upper)),
        "not at " + term::to_string(v.witness, *kernel_.pool), "round the number of turns up");
  }

  void cover(const Place& access, const Tile& tile) {
    const Raster raster{tile.row(),     tile.column(),
                        tile.batch(),   tile.rows(),
                        tile.columns(), access.loops.empty() ? nullptr : access.loops.front(),
                        tile.taken(),   runs_.steady};
    const Covering c = covering(kernel_, {raster}, means_.outputs.front().to);
    if (c.verdict == Covering::Verdict::refuted)
      refute("output_once", access, c.message, "each tile of the output once", c.found,
             "let turns and blocks count the tiles one by one");
    else if (c.verdict == Covering::Verdict::unknown)
      give_up("output_once", c.found);
  }

  const core::Kernel& kernel_;
  const Runs& runs_;
  const Means& means_;
  std::vector<Place> places_;
  Flow out_;
};

}  // namespace

Flow add_up(const core::Kernel& kernel, const Runs& runs, const Means& means) {
  return Adding(kernel, runs, means).go();
}

}  // namespace tessera::check
