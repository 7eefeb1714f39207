// What ops do with tags: what is moved keeps them, what is computed joins them.
#include <algorithm>
#include <set>

#include "arch/ldmatrix.h"

#include "check/tag_walk.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

// NOLINTNEXTLINE(misc-no-recursion): functions nest
void made_of(const pointwise::Dag& dag, int node, std::set<int>& out) {
  const pointwise::Dag::Node& n = dag.nodes[static_cast<std::size_t>(node)];
  if (n.kind == pointwise::Dag::Node::Kind::operand) out.insert(n.operand);
  for (const int a : n.arguments) made_of(dag, a, out);
}

/// All at once: what comes in may name a symbol that is exchanged.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term exchanged(Term t, const std::map<const term::Node*, Term>& by) {
  if (const auto found = by.find(t.node()); found != by.end()) return found->second;
  if (t->args.empty() || t->op == term::Op::read) return t;
  std::vector<Term> args;
  for (const Term a : t->args) args.push_back(exchanged(a, by));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

}  // namespace

void TagWalk::declare(const core::Declare& d, const std::vector<int>& warps) {
  for (const int w : warps)
    for (int64_t s = 0; s < kernel_[d.registers].slots(); ++s)
      for (int lane = 0; lane < 32; ++lane) slot(w, d.registers, s, lane) = 0;
}

void TagWalk::compute(const core::Op& op, const std::vector<int>& warps) {
  const auto& c = *op.as<core::Compute>();
  if (one_lane_) return lose({op});
  std::vector<std::vector<int>> inputs;
  for (const int result : c.dag->results) {
    std::set<int> all;
    made_of(*c.dag, result, all);
    inputs.emplace_back();
    for (const int i : all)
      if (std::holds_alternative<core::Run>(c.inputs[static_cast<std::size_t>(i)]))
        inputs.back().push_back(i);
  }
  const auto first_of = [&](const core::Run& r) { return value(r.first).value_or(0); };
  std::vector<int64_t> from, to;
  for (const auto& in : c.inputs)
    from.push_back(std::holds_alternative<core::Run>(in) ? first_of(std::get<core::Run>(in)) : 0);
  for (const core::Run& r : c.results) {
    to.push_back(first_of(r));
    all_of(r.registers);
    auto& by = writers_[static_cast<int>(r.registers.index)];
    by.resize(static_cast<std::size_t>(warps_ * kernel_[r.registers].slots()));
    for (const int w : warps)
      for (int64_t e = 0; e < c.count; ++e)
        by[static_cast<std::size_t>(w * kernel_[r.registers].slots() + to.back() + r.steps(e))] =
            &op;
  }
  std::vector<Id> made(c.results.size());
  for (const int w : warps)
    for (int64_t e = 0; e < c.count; ++e)
      for (int lane = 0; lane < 32; ++lane) {
        for (std::size_t r = 0; r < c.results.size(); ++r) {
          made[r] = 0;
          for (const int i : inputs[r]) {
            const auto& run = std::get<core::Run>(c.inputs[static_cast<std::size_t>(i)]);
            made[r] = tagging_.carried.join(
                made[r],
                slot(w, run.registers, from[static_cast<std::size_t>(i)] + run.steps(e), lane));
          }
        }
        for (std::size_t r = 0; r < c.results.size(); ++r)
          slot(w, c.results[r].registers, to[r] + c.results[r].steps(e), lane) = made[r];
      }
}

void TagWalk::unknown_results(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const Id lost = tagging_.carried.all_unknown();
  for (std::size_t n = 0; n < issue.arguments.size() && n < issue.form->operands.size(); ++n) {
    const auto* s = std::get_if<core::Slice>(&issue.arguments[n]);
    if (s == nullptr || issue.form->operands[n].direction == arch::Direction::in) continue;
    for (const int w : warps)
      for (int64_t i = 0; i < kernel_[s->registers].slots(); ++i)
        for (int lane = 0; lane < 32; ++lane) slot(w, s->registers, i, lane) = lost;
  }
}

void TagWalk::issue(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const std::string& name = issue.form->name;
  const bool registers =
      std::any_of(issue.arguments.begin(), issue.arguments.end(),
                  [](const core::Argument& a) { return std::get_if<core::Slice>(&a) != nullptr; });
  if (!registers && !wgmma_of(issue)) return;
  if (one_lane_) return unknown_results(op, warps);
  for (std::size_t n = 0; n < issue.arguments.size() && n < issue.form->operands.size(); ++n)
    if (const auto* s = std::get_if<core::Slice>(&issue.arguments[n]);
        s != nullptr && issue.form->operands[n].direction != arch::Direction::in) {
      auto& by = writers_[static_cast<int>(s->registers.index)];
      by.resize(static_cast<std::size_t>(warps_ * kernel_[s->registers].slots()));
      for (const int w : warps)
        std::fill_n(by.begin() + w * kernel_[s->registers].slots(), kernel_[s->registers].slots(),
                    &op);
    }
  if (wgmma_of(issue)) {
    if (static_cast<int>(warps.size()) % 4 != 0) return unknown_results(op, warps);
    for (std::size_t w = 0; w < warps.size(); w += 4) {
      number(warp_) = warps[w];
      product(op, {warps.begin() + static_cast<std::ptrdiff_t>(w),
                   warps.begin() + static_cast<std::ptrdiff_t>(w + 4)});
    }
    return;
  }
  for (const int w : warps) {
    number(warp_) = w;
    if (name.starts_with("stmatrix"))
      store_matrices(op, w);
    else if (name.starts_with("load.global") || name.starts_with("load.constant"))
      load_global(op, w);
    else if (name.starts_with("load.shared"))
      load_shared(op, w);
    else if (name == "shuffle")
      shuffle(op, w);
    else
      unknown_results(op, {w});
  }
}

const Origins& TagWalk::origins_of(const core::Op& op, core::SharedId shared) {
  const std::string always = fmt::format("{} {}", static_cast<const void*>(&op), shared.index);
  if (const auto found = seen_.find(always); found != seen_.end()) return found->second;
  std::string key = always;
  for (const core::For* l : later()) key += fmt::format(" {}", static_cast<const void*>(l));
  if (const auto found = seen_.find(key); found != seen_.end()) return found->second;
  Origins made = origins(kernel_, tagging_.runs, tagging_.places, place(op), shared, later());
  return seen_.emplace(made.by_turn ? key : always, std::move(made)).first->second;
}

std::optional<int64_t> TagWalk::byte_at(const Origins& o, const core::SharedAt& at, int64_t row,
                                        int64_t column) {
  const core::Shared& s = kernel_[at.shared];
  std::vector<int64_t> place;
  for (std::size_t i = 0; i < at.at.size(); ++i) {
    const std::optional<int64_t> v = value(at.at[i]);
    if (!v && (i >= o.ring.size() || !o.ring[i])) return std::nullopt;
    place.push_back(o.ring.empty() || !o.ring[i] ? v.value_or(0) : 0);
  }
  place[place.size() - 1] += column;
  if (place.size() > 1) place[place.size() - 2] += row;
  return byte_of(s, place);
}

/// A tag of the element at corner + at of a tensor, under all names.
TagWalk::Id TagWalk::of_tensor(core::TensorId t, const std::vector<Term>& corner,
                               const std::vector<int64_t>& at, const void* key) {
  const auto tags = tagging_.tensors.find(t.index);
  if (tags == tagging_.tensors.end()) return 0;
  Id out = 0;
  std::vector<Term> offsets;
  for (std::size_t d = 0; d < corner.size(); ++d) {
    const Term offset = tagging_.offsets.at(fmt::format("u{}", d));
    number(offset) = at[d];
    offsets.push_back(offset);
  }
  for (const TagOfTensor& tag : tags->second) {
    auto found = box_tags_.find({key, tag.name});
    if (found == box_tags_.end()) {
      std::map<const term::Node*, Term> at_element;
      for (std::size_t d = 0; d < corner.size(); ++d)
        at_element[tag.indices[d].node()] = corner[d] + offsets[d];
      const Term value = exchanged(tag.value, at_element);
      found = box_tags_.emplace(std::pair(key, tag.name), Split(value, tagging_.numbered)).first;
    }
    out = tagging_.carried.with(out, tag.name, found->second(tagging_.carried, numbers_));
  }
  return out;
}

TagWalk::Id TagWalk::of_box(const CopiedBox& box, const BoxIndex& at) {
  std::vector<int64_t> index(box.corner.size(), 0);
  for (std::size_t m = 0; m < box.map->dims.size(); ++m)
    index[static_cast<std::size_t>(box.map->dims[m])] = at[m];
  return of_tensor(box.map->tensor, box.corner, index, &box);
}

TagWalk::Id TagWalk::of_byte(const Origins& o, core::SharedId shared, int64_t byte) {
  const Id lost = tagging_.carried.all_unknown();
  if (!o.why.empty() || tagging_.retagged.contains(shared.index)) return lost;
  if (!o.stores.empty()) {
    const auto stored = state_.stored.find(byte);
    return o.boxes.empty() && stored != state_.stored.end() ? stored->second : lost;
  }
  int times = 0;
  Id out = 0;
  for (const CopiedBox& box : o.boxes)
    if (const auto e = box_element(kernel_, *box.map, box.start, byte)) {
      out = of_box(box, *e);
      ++times;
    }
  return times == 1 ? out : lost;
}

/// By row of A or of B, what its elements along k carry together.
std::vector<TagWalk::Id> TagWalk::side(const core::Op& op, std::string_view operand, int64_t rows,
                                       int64_t steps, std::string& key) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::SharedAt>(issue, operand);
  const Origins& o = origins_of(op, at->shared);
  key = o.stores.empty() ? fmt::format("{} {}", static_cast<const void*>(&o), operand) : "";
  for (std::size_t i = 0; i < at->at.size() && !key.empty(); ++i)
    key += fmt::format(" {}", value(at->at[i]).value_or(-1));
  if (const auto found = sides_.find(key); found != sides_.end()) return found->second;
  std::vector<Id> out(static_cast<std::size_t>(rows), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < steps; ++k) {
      const std::optional<int64_t> byte = byte_at(o, *at, i, k);
      Id& to = out[static_cast<std::size_t>(i)];
      to = tagging_.carried.join(
          to, byte ? of_byte(o, at->shared, *byte) : tagging_.carried.all_unknown());
    }
  if (!key.empty()) sides_[key] = out;
  return out;
}

const std::vector<int64_t>& TagWalk::places_of_sums(const arch::Wgmma& w) {
  std::vector<int64_t>& out = places_of_sums_[w.n];
  if (!out.empty()) return out;
  const Layout c = w.c_layout();
  for (int64_t i = 0; i < c.size(); ++i) out.push_back(c(i));
  return out;
}

void TagWalk::product(const core::Op& op, const std::vector<int>& warps) {
  const auto& issue = *op.as<core::Issue>();
  const arch::Wgmma w = *wgmma_of(issue);
  Carried& carried = tagging_.carried;
  const auto* d = argument<core::Slice>(issue, "d");
  const auto* keeps = argument<core::Integers>(issue, "accumulate");
  const int64_t m = arch::Wgmma::m, n = w.n;
  std::string key, key_of_a;
  const std::vector<Id> columns = side(op, "b", n, w.k(), key);
  std::vector<Id> rows(static_cast<std::size_t>(m), 0);
  if (argument<core::SharedAt>(issue, "a") != nullptr) {
    rows = side(op, "a", m, w.k(), key_of_a);
    key = key.empty() || key_of_a.empty() ? "" : key + " " + key_of_a;
  } else {
    key.clear();
    const auto* a = argument<core::Slice>(issue, "a");
    const Layout layout = w.a_layout();
    const int64_t first = value(a->first).value_or(0);
    for (std::size_t i = 0; i < warps.size(); ++i)
      for (int lane = 0; lane < 32; ++lane)
        for (int64_t e = 0; e < 4 * w.a_per_register(); ++e) {
          const int64_t at = layout(32 * static_cast<int64_t>(i) + lane + 128 * e);
          Id& to = rows[static_cast<std::size_t>(at % m)];
          to = carried.join(to, slot(warps[i], a->registers, first + e, lane));
        }
  }
  std::vector<Id>& made = products_[key];
  if (key.empty() || made.empty()) {
    made.clear();
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i)
        made.push_back(
            carried.join(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]));
  }
  std::optional<bool> adds = true;
  if (keeps != nullptr)
    adds = decide(
        kernel_.pool->must(term::Op::not_equal, {keeps->values[0], kernel_.pool->constant(0)}),
        warps.front());
  const std::vector<int64_t>& places = places_of_sums(w);
  const int64_t slots = static_cast<int64_t>(places.size()) / arch::Wgmma::threads;
  const int64_t first = value(d->first).value_or(0);
  if (first < 0 || first + slots > kernel_[d->registers].slots()) return unknown_results(op, warps);
  for (std::size_t i = 0; i < warps.size(); ++i)
    for (int64_t s = 0; s < slots; ++s) {
      Id* const to = &slot(warps[i], d->registers, first + s, 0);
      const auto from = static_cast<std::size_t>(s * arch::Wgmma::threads) + 32 * i;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const Id sum = made[static_cast<std::size_t>(places[from + lane])];
        if (to[lane] == sum) continue;
        if (adds && !*adds)
          to[lane] = sum;
        else if (adds)
          to[lane] = carried.join(to[lane], sum);
        else
          to[lane] = carried.either(sum, carried.join(to[lane], sum));
      }
    }
}

void TagWalk::load_global(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::GlobalAt>(issue, "from");
  const auto* to = argument<core::Slice>(issue, "to");
  if (at == nullptr || to == nullptr) return unknown_results(op, {warp});
  const core::Tensor& tensor = kernel_[at->tensor];
  if (tensor.access != core::Access::input || tensor.element != kernel_[to->registers].element)
    return unknown_results(op, {warp});
  std::size_t along = 0;
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) along = d;
  const int64_t elements =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0) /
      size_of(tensor.element);
  const int64_t first = value(to->first).value_or(0);
  std::vector<int64_t> index(at->at.size(), 0);
  for (int lane = 0; lane < 32; ++lane) {
    number(kernel_.at.lane) = lane;
    for (int64_t e = 0; e < elements; ++e) {
      index[along] = e;
      slot(warp, to->registers, first + e, lane) = of_tensor(at->tensor, at->at, index, &op);
    }
  }
  number(kernel_.at.lane) = 0;
}

void TagWalk::load_shared(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::SharedAt>(issue, "from");
  const auto* to = argument<core::Slice>(issue, "to");
  if (at == nullptr || to == nullptr ||
      kernel_[at->shared].element != kernel_[to->registers].element)
    return unknown_results(op, {warp});
  const int64_t size = size_of(kernel_[at->shared].element);
  const int64_t elements =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0) / size;
  const Origins& o = origins_of(op, at->shared);
  const int64_t first = value(to->first).value_or(0);
  for (int lane = 0; lane < 32; ++lane) {
    number(kernel_.at.lane) = lane;
    const std::optional<int64_t> byte = byte_at(o, *at);
    for (int64_t e = 0; e < elements; ++e)
      slot(warp, to->registers, first + e, lane) =
          byte ? of_byte(o, at->shared, *byte + e * size) : tagging_.carried.all_unknown();
  }
  number(kernel_.at.lane) = 0;
}

void TagWalk::store_matrices(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* to = argument<core::SharedAt>(issue, "to");
  const auto* from = argument<core::Slice>(issue, "from");
  const core::Shared& s = kernel_[to->shared];
  if (size_of(kernel_[from->registers].element) != 2 || size_of(s.element) != 2) return;
  arch::MatrixMove move{
      .matrices = 1, .transposed = issue.form->name.ends_with(".trans"), .stores = true};
  for (const auto& [name, value] : issue.choices)
    if (name == "matrices") move.matrices = std::stoi(value);
  const Layout elements = move.elements(), lanes = move.lane_of_row();
  Origins any;  // slots of a ring lie alike
  any.ring.assign(to->at.size(), true);
  for (std::size_t i = 0; i < to->at.size(); ++i) {
    number(kernel_.at.lane) = 0;
    any.ring[i] = !value(to->at[i]).has_value();
  }
  const int64_t first = value(from->first).value_or(0);
  std::vector<std::optional<int64_t>> start;
  for (int64_t r = 0; r < int64_t{8} * move.matrices; ++r) {
    number(kernel_.at.lane) = lanes(r);
    start.push_back(byte_at(any, *to));
  }
  number(kernel_.at.lane) = 0;
  for (int64_t e = 0; e < int64_t{2} * move.matrices; ++e)
    for (int lane = 0; lane < 32; ++lane) {
      const int64_t at = elements(lane + 32 * e);
      if (const auto& byte = start[static_cast<std::size_t>(at / 8)])
        state_.stored[*byte + 2 * (at % 8)] = slot(warp, from->registers, first + e, lane);
    }
}

/// Of those that exchange by twos, fours, ...; others are not followed.
void TagWalk::shuffle(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* from = argument<core::Slice>(issue, "from");
  const auto* to = argument<core::Slice>(issue, "to");
  const auto* by = argument<core::Integers>(issue, "by");
  const auto* clamp = argument<core::Integers>(issue, "clamp");
  const bool exchanges = std::any_of(issue.choices.begin(), issue.choices.end(),
                                     [](const auto& c) { return c.second == "bfly"; });
  const auto distance = by != nullptr ? value(by->values[0]) : std::nullopt;
  if (!exchanges || !distance || clamp == nullptr || value(clamp->values[0]) != 31)
    return unknown_results(op, {warp});
  const int64_t source = value(from->first).value_or(0), target = value(to->first).value_or(0);
  std::vector<Id> had(32);
  for (int lane = 0; lane < 32; ++lane)
    had[static_cast<std::size_t>(lane)] = slot(warp, from->registers, source, lane);
  for (int lane = 0; lane < 32; ++lane)
    slot(warp, to->registers, target, lane) =
        had[static_cast<std::size_t>(lane ^ static_cast<int>(*distance))];
}

}  // namespace tessera::check
