#include "check/attend_products.h"

#include <algorithm>
#include <set>

#include "check/footprint.h"
#include "check/launch.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using core::SharedAt;

ElementAt as_factor(const IndexedBy& of, std::string_view row, std::string_view k) {
  ElementAt out{of.tensor, {}};
  for (int d = 0; d < static_cast<int>(of.at.size()); ++d)
    out.at.push_back({d == of.place(row) ? Axis::row : d == of.place(k) ? Axis::k : Axis::free, 0});
  return out;
}

/// Loops of two roles over the same turns.
bool same_turns(const core::For& a, const core::For& b) {
  const auto same = [](Term x, Term y) { return term::simplify(x) == term::simplify(y); };
  return a.counter == b.counter && same(a.lower, b.lower) && same(a.upper, b.upper) &&
         same(a.step, b.step);
}

}  // namespace

AttendProducts::AttendProducts(const core::Kernel& kernel, const Runs& runs, const Attention& means)
    : kernel_(kernel), runs_(runs), means_(means), places_(check::places(kernel)) {}

bool AttendProducts::give_up(std::string_view kind, std::string why) {
  out_->why.emplace(kind, std::move(why));
  return false;
}

bool AttendProducts::refute(std::string_view kind, const core::Op* op, int warp,
                            std::string message, std::string expected, std::string found,
                            std::string help, const core::Op* other, std::string other_text) {
  Violation v;
  v.kind = kind;
  v.op = op;
  v.warp = warp;
  v.lanes = "all lanes";
  v.message = std::move(message);
  v.expected = std::move(expected);
  v.found = std::move(found);
  v.help = std::move(help);
  v.other = other;
  v.other_text = std::move(other_text);
  out_->violations.push_back(std::move(v));
  return false;
}

bool AttendProducts::is_zero(Term t, const Place& p, std::string_view kind,
                             const std::string& message, const std::string& expected,
                             const std::string& help) {
  const Term rest = term::simplify(t);
  const std::optional<int64_t> number = value_of(rest, {});
  if (number == 0) return true;
  const auto found =
      number ? std::optional(fmt::format("apart by {}", *number)) : varies(kernel_, loops(), rest);
  if (found) return refute(kind, p.op, p.role->first_warp, message, expected, *found, help);
  return give_up(kind, fmt::format("it is not known that `{}` is 0", to_string(rest)));
}

Names AttendProducts::names() const {
  Names out;
  for (std::size_t d = 0; d < batches.size(); ++d)
    if (batches[d]) out.emplace(means_.o.at[d].as<syntax::Name>()->id, batches[d]);
  return out;
}

bool AttendProducts::trace(Flow& out) {
  out_ = &out;
  depth = -1;
  const int d = means_.q.place(means_.depth);
  const Term extent = kernel_[means_.q.tensor].extents[static_cast<std::size_t>(d)];
  const std::optional<int64_t> number = value_of(extent, {});
  if (!number || *number % 16 != 0 || *number > 1024)
    return give_up("k_agreement", "the depth is no constant multiple of 16");
  depth = *number;
  if (!find_loop() || !stores()) return false;
  // Scores first: values are held to the keys' blocks.
  for (const bool scores_first : {true, false})
    for (const Place& p : places_) {
      if (p.op->as<core::Issue>() == nullptr || !wgmma_of(p.issue())) continue;
      const bool is_scores = argument<SharedAt>(p.issue(), "a") != nullptr;
      if (is_scores == scores_first && !product(p)) return false;
    }
  const bool both =
      std::any_of(products.begin(), products.end(), [](const auto& p) { return !p.second.scores; });
  return (both && key_corner) || give_up("k_agreement", "there are no products of both kinds");
}

/// The one loop that products stand in, of one role.
bool AttendProducts::find_loop() {
  std::vector<const core::For*> deepest;
  for (const Place& p : places_) {
    if (p.op->as<core::Issue>() == nullptr || !wgmma_of(p.issue())) continue;
    if (p.role == nullptr) return give_up("k_agreement", "a wgmma stands outside of roles");
    if (role != nullptr && role != p.role)
      return give_up("k_agreement", "products of attention stand in two roles");
    role = p.role;
    if (p.loops.size() > deepest.size()) deepest = p.loops;
  }
  if (deepest.empty()) return give_up("k_agreement", "the kernel has no wgmma in a loop");
  if (deepest.size() > 2) return give_up("k_agreement", "products stand in three loops");
  loop = deepest.back();
  if (deepest.size() == 2) tiles = deepest.front();
  for (const Place& p : places_) {
    if (p.op->as<core::Issue>() == nullptr || !wgmma_of(p.issue())) continue;
    const auto inner = within(p);
    if (!inner || (!inner->empty() && inner->front() != loop))
      return give_up("k_agreement", "products of attention stand in two loops");
  }
  const auto directly = [](const core::Body& b, const core::For* f) {
    return std::any_of(b.begin(), b.end(),
                       [&](const core::Op& op) { return op.as<core::For>() == f; });
  };
  if (!directly(body(), loop) || (tiles != nullptr && !directly(role->body, tiles)))
    return give_up("k_agreement", "the loop over keys stands in another op");
  for (const core::For* f : loops())
    if (value_of(f->lower, {}) != 0 || value_of(f->step, {}) != 1)
      return give_up("k_agreement", "a loop over tiles or keys does not count from 0 by 1");
  return true;
}

std::optional<std::vector<const core::For*>> AttendProducts::within(const Place& p) const {
  if (tiles == nullptr) return p.loops;
  if (p.loops.empty() || !same_turns(*p.loops[0], *tiles)) return std::nullopt;
  return std::vector(p.loops.begin() + 1, p.loops.end());
}

bool AttendProducts::sees(const core::Op* read, const core::Op* write) const {
  return std::any_of(runs_.reads_from.begin(), runs_.reads_from.end(),
                     [&](const ReadsFrom& r) { return r.read == read && r.write == write; });
}

/// What a store takes to the output, the role wrote for the same tile.
bool AttendProducts::only_results(const Place& p) {
  bool any = false;
  for (const ReadsFrom& r : runs_.reads_from) {
    if (r.read != p.op) continue;
    any = true;
    const auto q = std::find_if(places_.begin(), places_.end(),
                                [&](const Place& x) { return x.op == r.write; });
    const auto inner = q == places_.end() ? std::nullopt : within(*q);
    if (!inner || !inner->empty() || q->role != role || r.turns != 0 || r.reader != r.writer)
      return give_up("placement", "a store takes what was not written for its tile");
  }
  return any || give_up("placement", "a store takes what nothing wrote");
}

/// The batches that the tile is stored to.
bool AttendProducts::stores() {
  const std::size_t rank = means_.o.at.size();
  for (const Place& p : places_) {
    if (p.op->as<core::Issue>() == nullptr) continue;
    const core::Issue& issue = p.issue();
    const bool writes =
        std::any_of(issue.form->effects.accesses.begin(), issue.form->effects.accesses.end(),
                    [](const arch::Access& a) {
                      return a.space == arch::Space::global && a.action != arch::Action::read;
                    });
    if (!writes) continue;
    const auto* ref = argument<core::MapRef>(issue, "map");
    const auto* at = argument<core::Integers>(issue, "at");
    const auto inner = within(p);
    if (p.role != role || ref == nullptr || at == nullptr || !inner || !inner->empty() ||
        !issue.form->name.starts_with("tma.store"))
      return give_up("placement", "a store is no copy by TMA behind the loop over keys");
    if (!only_results(p)) return false;
    const core::TensorMap& map = kernel_[ref->map];
    if (map.tensor != means_.o.tensor)
      return give_up("placement", "a store goes to another tensor than the meaning has");
    std::vector<Term> here(rank);
    for (std::size_t m = 0; m < map.dims.size(); ++m) {
      const int d = map.dims[m];
      if (d == means_.o.place(means_.row) || d == means_.o.place(means_.column)) continue;
      here[static_cast<std::size_t>(d)] = term::simplify(at->values[m]);
      if (map.box[m] != 1) return give_up("placement", "a store is of several batches");
    }
    if (batches.empty()) batches = here;
    if (batches != here) return give_up("placement", "stores go to different batches");
  }
  return !batches.empty() || give_up("placement", "nothing is stored");
}

bool AttendProducts::product(const Place& p) {
  Product out;
  out.scores = argument<SharedAt>(p.issue(), "a") != nullptr;
  for (const char* scale : {"scale_a", "scale_b"})
    if (const auto* by = argument<core::Integers>(p.issue(), scale);
        by != nullptr && value_of(by->values[0], {}) != 1)
      return give_up("k_agreement", "a product negates an operand");
  if (!(out.scores ? scores(p, out) : values(p, out))) return false;
  products.emplace(p.op, std::move(out));
  return true;
}

bool AttendProducts::copies(const Place& p, core::SharedId shared, Copies& out) {
  std::set<const core::Op*> ops;
  std::set<int64_t> lags;
  const auto* a = argument<SharedAt>(p.issue(), "a");
  const auto* b = argument<SharedAt>(p.issue(), "b");
  for (const ReadsFrom& r : runs_.reads_from) {
    if (r.read != p.op) continue;
    const auto q = std::find_if(places_.begin(), places_.end(),
                                [&](const Place& x) { return x.op == r.write; });
    const bool issued = q != places_.end() && q->op->as<core::Issue>() != nullptr;
    const auto* to = issued ? argument<SharedAt>(q->issue(), "to") : nullptr;
    const bool other =
        to != nullptr && to->shared != shared &&
        ((a != nullptr && to->shared == a->shared) || (b != nullptr && to->shared == b->shared));
    if (other) continue;
    if (to == nullptr || to->shared != shared)
      return give_up("k_agreement", "an operand comes from what is no copy to its place");
    if (r.reader != r.writer)
      return give_up("k_agreement", "a product reads what another block copied");
    if (ops.insert(r.write).second) out.ops.push_back(&*q);
    lags.insert(r.turns);
  }
  if (ops.empty()) return give_up("k_agreement", "an operand comes from no copy");
  if (lags.size() != 1) {
    if (tiles == nullptr && p.loops.empty() && *lags.begin() >= 0)
      return refute("k_agreement", p.op, p.role->first_warp,
                    "a product reads copies of different turns", "of one turn",
                    fmt::format("{} and {} turns before", *lags.begin(), *lags.rbegin()),
                    "wait for the copy of the turn whose values are multiplied");
    return give_up("k_agreement", "a product reads copies of different turns");
  }
  out.lag = *lags.begin();
  return true;
}

bool AttendProducts::operand(const Place& p, std::string_view name, const IndexedBy& factor,
                             std::string_view row, std::string_view k, int group, Operand& out,
                             int64_t& lag) {
  const auto* at = argument<SharedAt>(p.issue(), name);
  if (at == nullptr) return give_up("k_agreement", "an operand of a product is in registers");
  const arch::Wgmma w = *wgmma_of(p.issue());
  const Known known = {{p.role->warp.node(), int64_t{4} * group}};
  const auto* turned =
      argument<core::Integers>(p.issue(), name == "a" ? "transpose_a" : "transpose_b");
  const auto says = turned == nullptr ? 0 : value_of(turned->values[0], known);
  const Layout& layout = kernel_[at->shared].layout;
  const Layout lines = layout.mode(layout.rank() - 2);
  const int64_t lies = lines.size() > 1 && lines(1) - lines(0) == 1 ? 1 : 0;
  const int warp = p.role->first_warp + 4 * group;
  if (says != lies)
    return refute("k_agreement", p.op, warp, "an operand is read along another axis than it lies",
                  fmt::format("transposed = {}", lies),
                  says ? std::to_string(*says) : "no constant",
                  "transpose an operand exactly if its rows are contiguous");
  Copies from;
  if (!copies(p, at->shared, from)) return false;
  std::size_t depth_of_loops = 0;
  for (const Place* c : from.ops) {
    const auto around = within(*c);
    if (c == from.ops.front() && around) depth_of_loops = around->size();
    if (!around || around->size() != depth_of_loops || depth_of_loops > 1 ||
        (depth_of_loops == 1 && !same_turns(*around->front(), *loop)))
      return give_up("k_agreement", "a copy and its product stand in different loops");
  }
  if (tiles != nullptr && depth_of_loops == 0 && from.lag != 0)
    return give_up("k_agreement", "a product reads the queries of another tile");
  lag = depth_of_loops == 1 ? from.lag : 0;
  const ElementAt one = as_factor(factor, row, k);
  // Another tensor than the factor is refuted, also where the meaning has it elsewhere.
  Reading reading{kernel_, p,     *at, from.ops, name == "a" ? arch::Wgmma::m : w.n,
                  w.k(),   known, one, one,      Axis::row};
  reading.other_loops = true;
  if (depth_of_loops == 1) {
    reading.counter = loop->counter;
    reading.as = (within(p)->empty() ? loop->upper : loop->counter) - lag;
  }
  const std::string why = check::trace(reading, out);
  if (!why.empty()) return give_up("k_agreement", why);
  if (out.fault.empty()) return batches_agree(p, factor, out);
  return refute(out.fault_kind, p.op, warp, out.fault, out.fault_expected, out.fault_found,
                out.fault_help, out.writer, "copied here");
}

/// The indices that are neither rows nor k are those that the meaning has for the stored tile.
bool AttendProducts::batches_agree(const Place& p, const IndexedBy& factor, const Operand& o) {
  for (std::size_t d = 0; d < o.free.size(); ++d) {
    if (!o.free[d]) continue;
    const Term expected = term_of(kernel_, factor.at[d], names());
    if (!expected) return give_up("k_agreement", "an index of the meaning is no term");
    if (!is_zero(o.free[d] - expected, p, "k_agreement",
                 fmt::format("`{}` is taken at another index than the meaning has for the tile",
                             kernel_[factor.tensor].name),
                 fmt::format("`{}`", to_string(term::simplify(expected))),
                 "load the batch and the head that belong to the tile which is stored"))
      return false;
  }
  return true;
}

bool AttendProducts::scores(const Place& p, Product& out) {
  if (within(p)->empty()) return give_up("k_agreement", "scores are computed outside of the loop");
  for (int group = 0; 4 * group < role->warps; ++group) {
    Operand a, b;
    int64_t lag = 0;
    if (!operand(p, "a", means_.q, means_.row, means_.depth, group, a, lag) ||
        !operand(p, "b", means_.k, means_.key, means_.depth, group, b, out.lag))
      return false;
    const std::optional<int64_t> ka = value_of(a.k_corner, {}), kb = value_of(b.k_corner, {});
    if (!ka || !kb) return give_up("k_agreement", "the corners of Q and K along d are no numbers");
    const int warp = role->first_warp + 4 * group;
    for (std::size_t k = 0; k < a.k.size(); ++k)
      if (a.k[k] + *ka != b.k[k] + *kb)
        return refute("k_agreement", p.op, warp, "a product multiplies elements of different d",
                      fmt::format("Q[.., d] meets K[.., d] at step {} of the instruction", k),
                      fmt::format("d = {} and {}", a.k[k] + *ka, b.k[k] + *kb),
                      "let both descriptors start at the same d", a.writer, "Q is copied here");
    const int64_t first = a.k.front() + *ka;
    for (std::size_t k = 0; k < a.k.size(); ++k)
      if (first % 16 != 0 || a.k.size() != 16 || a.k[k] + *ka != first + static_cast<int64_t>(k) ||
          first < 0 || first + 16 > depth)
        return give_up("k_agreement", "a step of the depth is no sixteen in order");
    out.depth.push_back(uint64_t{1} << (first / 16));
    if (!row_corner) row_corner = term::simplify(a.row_corner);
    if (!key_corner) key_corner = term::simplify(b.row_corner);
    if (row_corner != term::simplify(a.row_corner))
      return give_up("k_agreement", "products have queries of different tiles");
    if (!blocks_agree(p, b.row_corner)) return false;
    rows = std::max(rows, 1 + *std::max_element(a.rows.begin(), a.rows.end()));
    keys = std::max(keys, 1 + *std::max_element(b.rows.begin(), b.rows.end()));
    out.a.push_back(std::move(a));
    out.b.push_back(std::move(b));
  }
  return keys <= Keys::columns || give_up("k_agreement", "a block has too many keys");
}

/// Copies of one turn are of one block of keys.
bool AttendProducts::blocks_agree(const Place& p, Term corner) {
  return is_zero(
      corner - key_corner, p, "k_agreement", "keys and values of a turn are of different blocks",
      "copies of K and of V at the same key", "load keys and values of a turn at the same key");
}

bool AttendProducts::values(const Place& p, Product& out) {
  if (!key_corner) return give_up("k_agreement", "the kernel has no products of Q and K");
  for (int group = 0; 4 * group < role->warps; ++group) {
    Operand b;
    if (!operand(p, "b", means_.v, means_.column, means_.key, group, b, out.lag)) return false;
    if (!blocks_agree(p, b.k_corner)) return false;
    const std::optional<int64_t> corner = value_of(b.row_corner, {});
    if (!corner) return give_up("k_agreement", "the corner of V along its columns is no number");
    for (int64_t& n : b.rows) n += *corner;
    if (!b.zeros)
      return refute("mask", p.op, role->first_warp,
                    "what lies beyond the last value is not zero, and is multiplied by 0",
                    "a tensor map that fills with zeros", "NaN", "fill with zeros", b.writer,
                    "copied here");
    columns = std::max(columns, 1 + *std::max_element(b.rows.begin(), b.rows.end()));
    out.b.push_back(std::move(b));
  }
  return true;
}

}  // namespace tessera::check
