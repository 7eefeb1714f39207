// Instructions that a role of attention issues: products, shuffles, results to shared memory.
#include <algorithm>

#include "arch/ldmatrix.h"

#include "check/attend_walk.h"
#include "check/footprint.h"
#include "check/launch.h"
#include "core/walk.h"
#include "term/rules.h"

namespace tessera::check {

bool AttendWalk::issue(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  if (wgmma_of(issue)) {
    if (one_lane_ || masking_) return give_up("a product stands where it is not followed");
    product(op, warps);
    return !failed_;
  }
  const bool moves =
      std::any_of(issue.arguments.begin(), issue.arguments.end(),
                  [](const core::Argument& a) { return std::get_if<core::Slice>(&a) != nullptr; });
  if (moves && (one_lane_ || masking_))
    return give_up(fmt::format("`{}` is done by some lanes alone", name));
  for (int w : warps) {
    value_of_symbol(products_.role->warp) = w;
    if (name.starts_with("stmatrix"))
      matrices(op, w);
    else if (name.starts_with("tma.store"))
      copy_out(op, w);
    else if (name == "shuffle")
      shuffle(issue, w);
    else if (name.starts_with("load.global"))
      load(op, w);
    else if (moves && leaves_results(issue))
      forget(issue, w);
    else if (moves)
      give_up(fmt::format("`{}` writes where results lie, or where it is not followed", name));
    else if (std::any_of(issue.form->effects.accesses.begin(), issue.form->effects.accesses.end(),
                         [](const arch::Access& a) { return a.action != arch::Action::read; }) &&
             !name.starts_with("mbarrier"))
      give_up(fmt::format("`{}` is not followed", name));
    if (failed_ || !told(op, w, 0)) return false;
  }
  return true;
}

/// Whether nothing that is followed changes by the ops: they wait, and tell others.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool AttendWalk::leaves_alone(const core::Body& b) {
  return std::all_of(b.begin(), b.end(), [](const core::Op& op) {
    if (const auto* branch = op.as<core::If>())
      return leaves_alone(branch->body) && leaves_alone(branch->otherwise);
    if (const auto* elected = op.as<core::Elected>()) return leaves_alone(elected->body);
    if (core::is_tags(op)) return true;
    const auto* issue = op.as<core::Issue>();
    if (issue == nullptr) return false;
    const bool moves = std::any_of(
        issue->arguments.begin(), issue->arguments.end(),
        [](const core::Argument& a) { return std::get_if<core::Slice>(&a) != nullptr; });
    const std::string& name = issue->form->name;
    return !moves && (name.starts_with("mbarrier") || name == "bulk.wait_read");
  });
}

/// Coordinates of a place of results. An index that the tile's turn gives, not the place in the
/// tile, is the same wherever results are written and read: it counts as 0.
bool AttendWalk::coordinates(const core::SharedAt& at, std::vector<int64_t>& out) {
  const core::Shared& s = kernel_[at.shared];
  if (products_.tiles == nullptr) {
    for (Term t : at.at) out.push_back(eval(t).value_or(-1));
    return true;
  }
  if (!results_.valid()) results_ = at.shared;
  if (results_ != at.shared) return give_up("results lie in two shared memories");
  for (std::size_t i = 0; i < at.at.size(); ++i) {
    const std::optional<int64_t> known = eval(at.at[i]);
    out.push_back(known.value_or(0));
    const Term t = known ? Term() : term::simplify(at.at[i]);
    const auto [slot, is_new] = slot_.try_emplace(i, t);
    if (slot->second != t) return give_up("results of a tile lie in several slots");
    if (!t) continue;
    if (term::any_node(t, [&](Term n) { return n->symbol && n != products_.tiles->counter; }))
      return give_up("the slot of a tile's results is not known by its turn");
    const int64_t stride = size_of(s.element) * s.layout.stride().mode(static_cast<int>(i)).value;
    if (i + 2 >= at.at.size() || stride % arch::alignment_of(s.swizzle) != 0)
      return give_up("slots of results do not lie apart as their swizzle repeats");
  }
  return true;
}

/// Registers that something else writes.
void AttendWalk::forget(const core::Issue& issue, int warp) {
  for (std::size_t i = 0; i < issue.arguments.size(); ++i)
    if (const auto* slice = std::get_if<core::Slice>(&issue.arguments[i]);
        slice != nullptr && issue.form->operands[i].direction != arch::Direction::in)
      std::fill(slots(warp, slice->registers).begin(), slots(warp, slice->registers).end(), Cell{});
}

void AttendWalk::product(const core::Op& op, const std::vector<int>& warps) {
  if (static_cast<int>(warps.size()) % 4 != 0) {
    give_up("a product stands under a condition on the warp");
    return;
  }
  const auto& p = products_.products.at(&op);
  const auto& issue = *op.as<core::Issue>();
  for (std::size_t i = 0; i < warps.size() && !failed_; i += 4) {
    const int group = warps[i] / 4;
    for (int w = 0; w < 4; ++w)
      if (warps[i + static_cast<std::size_t>(w)] != 4 * group + w) {
        give_up("a product stands under a condition on the warp");
        return;
      }
    p.scores ? scores(issue, p, group) : values(issue, p, group);
    if (!told(op, 4 * group, 0)) return;
  }
}

void AttendWalk::scores(const core::Issue& issue, const AttendProducts::Product& p, int group) {
  const auto* d = argument<core::Slice>(issue, "d");
  const auto* keeps = argument<core::Integers>(issue, "accumulate");
  const arch::Wgmma w = *wgmma_of(issue);
  const Layout c = w.c_layout();
  const auto g = static_cast<std::size_t>(group);
  const std::optional<int64_t> first = eval(d->first),
                               adds = keeps == nullptr ? 1 : eval(keeps->values[0]);
  if (!first || !adds || c.mode(1).size() * arch::Wgmma::threads != arch::Wgmma::m * w.n) {
    give_up("a product whose accumulators are not followed");
    return;
  }
  if (p.lag != 0) {
    online_.fault = {"k_agreement", "scores are of keys of another turn",
                     "the keys that the turn is of", fmt::format("{} turns before", p.lag),
                     "read the slot that the turn's copy fills"};
    return;
  }
  for (int64_t s = 0; s < c.mode(1).size(); ++s)
    for (int thread = 0; thread < arch::Wgmma::threads; ++thread) {
      const int64_t at = c(thread + arch::Wgmma::threads * s);
      Cell& to = slot(4 * group + thread / lanes, thread % lanes, d->registers, *first + s);
      const Id score =
          online_.score(static_cast<int>(p.a[g].rows[static_cast<std::size_t>(at % 64)]), turn_,
                        static_cast<int>(p.b[g].rows[static_cast<std::size_t>(at / 64)]));
      if (*adds == 0) to = {score, -1, 0};
      if (to.value != score)
        online_.fault = {"reduction", "a score is added to what is no part of it",
                         "a sum over d of one query and one key", online_.text(to.value),
                         "overwrite in the first product of a block of keys alone"};
      else if ((to.depth & p.depth[g]) != 0)
        online_.fault = {"reduction", "an element of the depth is summed twice in a score",
                         "each d once", online_.text(score),
                         "let each step of the descriptor begin where the last one ended"};
      to.depth |= p.depth[g];
      if (failed_ || !online_.fault.kind.empty()) return;
    }
}

/// The weights of each row, with the values that they meet, summed; nothing where one meets the
/// value of another key, or is not followed.
std::vector<Online::Id> AttendWalk::weights(const core::Issue& issue, int64_t first,
                                            const AttendProducts::Product& p, int group) {
  const auto* from = argument<core::Slice>(issue, "a");
  const Layout a = wgmma_of(issue)->a_layout();
  const auto& b = p.b[static_cast<std::size_t>(group)];
  std::vector<std::vector<Id>> of_rows(64);
  for (int64_t s = 0; s < a.mode(1).size(); ++s)
    for (int thread = 0; thread < arch::Wgmma::threads; ++thread) {
      const int64_t at = a(thread + arch::Wgmma::threads * s);
      const Id power =
          slot(4 * group + thread / lanes, thread % lanes, from->registers, first + s).value;
      if (power == Online::none) {
        give_up(online_.why.empty() ? "weights whose values are not followed" : online_.why);
        return {};
      }
      int turn = -1, column = -1;
      const int64_t meets = b.k[static_cast<std::size_t>(at / 64)], of = turn_ - p.lag;
      const bool nothing =
          online_[power].kind == Online::Kind::number && online_[power].number == 0;
      if (!nothing && !online_.one_key(power, turn, column)) {
        online_.fault = {"reduction", "what is multiplied with a value is no weight of a key",
                         "a power of the score of one query and one key", online_.text(power),
                         "let the registers of the product hold the powers of the scores"};
        return {};
      }
      if (!nothing && (turn != of || column != meets)) {
        online_.fault = {
            "k_agreement", "the weight of a key is multiplied with the value of another",
            fmt::format("the weight of key {} of turn {}", meets, of),
            fmt::format("that of key {} of turn {}", column, turn),
            "let the weights in registers and the values in shared memory be of the same keys"};
        return {};
      }
      of_rows[static_cast<std::size_t>(at % 64)].push_back(power);
    }
  std::vector<Id> rows;
  for (const std::vector<Id>& of_row : of_rows) {
    rows.push_back(online_.times_values(online_.all_of(of_row)));
    if (rows.back() != Online::none) continue;
    if (online_.fault.kind.empty()) give_up("weights that are not of one row");
    return {};
  }
  return rows;
}

void AttendWalk::values(const core::Issue& issue, const AttendProducts::Product& p, int group) {
  const auto* d = argument<core::Slice>(issue, "d");
  const auto* from = argument<core::Slice>(issue, "a");
  const auto* keeps = argument<core::Integers>(issue, "accumulate");
  const arch::Wgmma w = *wgmma_of(issue);
  const Layout c = w.c_layout();
  const auto& b = p.b[static_cast<std::size_t>(group)];
  const std::optional<int64_t> to = d == nullptr ? std::nullopt : eval(d->first),
                               first = from == nullptr ? std::nullopt : eval(from->first),
                               adds = keeps == nullptr ? 1 : eval(keeps->values[0]);
  if (!to || !first || !adds) {
    give_up("a product whose registers are not followed");
    return;
  }
  if (products_.tiles != nullptr && turn_ < p.lag) {
    give_up("values of the tile before are read");
    return;
  }
  const std::vector<Id> rows = weights(issue, *first, p, group);
  if (rows.empty()) return;
  for (int64_t s = 0; s < c.mode(1).size(); ++s)
    for (int thread = 0; thread < arch::Wgmma::threads; ++thread) {
      const int64_t at = c(thread + arch::Wgmma::threads * s);
      const int column = static_cast<int>(b.rows[static_cast<std::size_t>(at / 64)]);
      Cell& sum = slot(4 * group + thread / lanes, thread % lanes, d->registers, *to + s);
      const Id more = rows[static_cast<std::size_t>(at % 64)];
      if (*adds != 0 && sum.column >= 0 && sum.column != column) {
        give_up("a product adds another column of the values");
        return;
      }
      sum = {*adds != 0 ? online_.add(sum.value, more) : more, column};
      if (sum.value == Online::none || failed_) {
        if (online_.fault.kind.empty()) give_up("a product adds to what is not followed");
        return;
      }
    }
}

void AttendWalk::shuffle(const core::Issue& issue, int warp) {
  const auto* to = argument<core::Slice>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  const auto number = [&](std::string_view name) -> std::optional<int64_t> {
    const auto* i = argument<core::Integers>(issue, name);
    return i == nullptr ? std::nullopt : eval(i->values[0]);
  };
  const std::optional<int64_t> by = number("by"), clamp = number("clamp"), all = number("lanes");
  std::string mode;
  for (const auto& [name, value] : issue.choices)
    if (name == "mode") mode = value;
  if (mode != "bfly" || !by || *by < 0 || *by >= lanes || clamp != 31 || all != 4294967295) {
    forget(issue, warp);
    return;
  }
  const int64_t first = eval(to->first).value_or(-1), source = eval(from->first).value_or(-1);
  std::vector<Cell> moved;
  for (int lane = 0; lane < lanes; ++lane)
    moved.push_back(slot(warp, lane ^ static_cast<int>(*by), from->registers, source));
  for (int lane = 0; lane < lanes; ++lane)
    slot(warp, lane, to->registers, first) = moved[static_cast<std::size_t>(lane)];
}

void AttendWalk::matrices(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<core::SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  if (size_of(kernel_[from->registers].element) != 2) {
    give_up("stmatrix moves elements that have not 16 bits");
    return;
  }
  arch::MatrixMove move{
      .matrices = 1, .transposed = issue.form->name.ends_with(".trans"), .stores = true};
  for (const auto& [name, value] : issue.choices)
    if (name == "matrices") move.matrices = std::stoi(value);
  const Layout elements = move.elements(), of_row = move.lane_of_row();
  const int64_t first = eval(from->first).value_or(-1);
  std::vector<int64_t> start;  // the byte of a row, by row and matrix
  for (int64_t r = 0; r < int64_t{8} * move.matrices; ++r) {
    value_of_symbol(kernel_.at.lane) = of_row(r);
    std::vector<int64_t> at;
    if (!coordinates(*to, at)) return;
    const std::optional<int64_t> byte = byte_of(kernel_[to->shared], at);
    if (!byte) give_up("stmatrix leaves its shared memory, or its place is not known");
    start.push_back(byte.value_or(0));
  }
  value_of_symbol(kernel_.at.lane) = -1;
  for (int64_t e = 0; e < int64_t{2} * move.matrices && !failed_; ++e)
    for (int lane = 0; lane < lanes; ++lane) {
      const int64_t at = elements(lane + lanes * e);  // column + 8 row + 64 matrix
      const int64_t byte = start[static_cast<std::size_t>(at / 8)] + 2 * (at % 8);
      keep(op, warp, byte, slot(warp, lane, from->registers, first + e));
    }
}

}  // namespace tessera::check
