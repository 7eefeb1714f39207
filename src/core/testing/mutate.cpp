#include "core/testing/mutate.h"

#include <functional>

#include "core/walk.h"

namespace tessera::core::testing {
namespace {

/// An op's place: the body that has it, and the role around it.
struct Site {
  Body* body = nullptr;
  std::size_t index = 0;
  std::string role;
  [[nodiscard]] Op& op() const { return (*body)[index]; }
  [[nodiscard]] Issue* issue() const { return std::get_if<Issue>(&op().node); }
  [[nodiscard]] bool is(std::string_view form) const {
    return issue() != nullptr && issue()->form->name == form;
  }
  [[nodiscard]] bool starts(std::string_view prefix) const {
    return issue() != nullptr && issue()->form->name.starts_with(prefix);
  }
};

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void collect(Body& body, const std::string& role, std::vector<Site>& out) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    out.push_back({&body, i, role});
    Op& op = body[i];
    if (auto* loop = std::get_if<For>(&op.node)) collect(loop->body, role, out);
    if (auto* branch = std::get_if<If>(&op.node)) {
      collect(branch->body, role, out);
      collect(branch->otherwise, role, out);
    }
    if (auto* elected = std::get_if<Elected>(&op.node)) collect(elected->body, role, out);
    if (auto* within = std::get_if<Role>(&op.node)) collect(within->body, within->name, out);
  }
}

std::string what(const Site& s) {
  const std::string name = s.issue() != nullptr ? "`" + s.issue()->form->name + "`" : "an op";
  return name + (s.role.empty() ? "" : " in role `" + s.role + "`");
}

Term plus(Term t, int64_t n) {
  return t + n;
}

/// Argument `i` of an instruction, where it has this type.
template <class T>
T* argument(const Site& s, std::size_t i) {
  Issue* issue = s.issue();
  return issue != nullptr && i < issue->arguments.size() ? std::get_if<T>(&issue->arguments[i])
                                                         : nullptr;
}

/// Tries one place of a copy; what was done there, or nothing.
using Edit = std::function<std::optional<std::string>(Kernel& k, const Site& s)>;

struct Operator {
  std::string name;
  Breaks breaks;
  Edit edit;
};

std::optional<std::string> erase(const Site& s) {
  std::string text = what(s) + " is gone";
  s.body->erase(s.body->begin() + static_cast<int64_t>(s.index));
  return text;
}
std::optional<std::string> twice(const Site& s) {
  std::string text = what(s) + " stands twice";
  Op copy = s.op();
  s.body->insert(s.body->begin() + static_cast<int64_t>(s.index), std::move(copy));
  return text;
}
std::optional<std::string> exchange(const Site& s) {
  std::string text = what(s) + " stands after the op that follows it";
  std::swap((*s.body)[s.index], (*s.body)[s.index + 1]);
  return text;
}
/// After all that follows it.
std::optional<std::string> last(const Site& s) {
  std::string text = what(s) + " stands at the end";
  const auto at = s.body->begin() + static_cast<int64_t>(s.index);
  std::rotate(at, at + 1, s.body->end());
  return text;
}
std::optional<std::string> changed(const Site& s, const std::string& how) {
  return what(s) + ": " + how;
}

bool waits(const Site& s) {
  return s.is("mbarrier.wait") || s.is("wgmma.wait") || s.starts("bulk.wait");
}
bool arrives(const Site& s) {
  return s.starts("mbarrier.arrive");
}
bool fences(const Site& s) {
  return s.starts("fence.") || s.is("wgmma.fence");
}

Operator integer(const std::string& name, std::string_view form, std::size_t at, int64_t by,
                 Breaks breaks = Breaks::synchronization) {
  return {name, breaks, [=](Kernel&, const Site& s) -> std::optional<std::string> {
            auto* n = s.is(form) ? argument<Integers>(s, at) : nullptr;
            if (n == nullptr || n->values.empty()) return std::nullopt;
            if (n->values[0]->op == term::Op::constant && n->values[0]->value + by < 0)
              return std::nullopt;
            n->values[0] = plus(n->values[0], by);
            return changed(s, fmt::format("an integer changed by {}", by));
          }};
}

std::vector<Operator> of_waits() {
  const auto where = [](bool (*test)(const Site&),
                        std::optional<std::string> (*edit)(const Site&)) {
    return [=](Kernel&, const Site& s) { return test(s) ? edit(s) : std::nullopt; };
  };
  std::vector<Operator> out = {
      {"drop_wait", Breaks::synchronization, where(waits, erase)},
      {"duplicate_wait", Breaks::nothing, where(waits, twice)},
      {"drop_arrive", Breaks::synchronization, where(arrives, erase)},
      {"duplicate_arrive", Breaks::synchronization, where(arrives, twice)},
      {"drop_fence", Breaks::synchronization, where(fences, erase)},
      {"drop_commit", Breaks::synchronization,
       where([](const Site& s) { return s.is("wgmma.commit") || s.is("bulk.commit"); }, erase)},
      {"drop_barrier", Breaks::synchronization,
       where([](const Site& s) { return s.is("barrier.sync"); }, erase)},
      {"drop_init", Breaks::synchronization,
       where([](const Site& s) { return s.is("mbarrier.init"); }, erase)},
      {"fence_after_barrier", Breaks::synchronization,
       where(
           [](const Site& s) {
             return s.is("fence.async.shared::cta") && s.index + 1 < s.body->size();
           },
           exchange)},
      {"late_grid_wait", Breaks::synchronization,
       where([](const Site& s) { return s.is("grid.wait"); }, last)},
      {"early_release", Breaks::synchronization,
       where(
           [](const Site& s) {
             return s.is("wgmma.wait") && s.index + 1 < s.body->size() &&
                    (*s.body)[s.index + 1].as<Issue>() == nullptr &&
                    !is_tags((*s.body)[s.index + 1]);
           },
           exchange)},
  };
  out.push_back(integer("wait_deeper", "wgmma.wait", 0, 1));
  out.push_back(integer("wait_deeper", "bulk.wait_read", 0, 1));
  out.push_back(integer("count_more", "mbarrier.init", 1, 1));
  out.push_back(integer("count_less", "mbarrier.init", 1, -1));
  out.push_back(integer("bytes_more", "mbarrier.arrive_expect_tx", 1, 16));
  out.push_back(integer("bytes_less", "mbarrier.arrive_expect_tx", 1, -16));
  out.push_back(integer("threads_more", "barrier.sync", 1, 32));
  out.push_back(integer("threads_less", "barrier.sync", 1, -32));
  return out;
}

std::optional<std::string> other_barriers(Kernel& k, const Site& s) {
  for (std::size_t i = 0; s.issue() != nullptr && i < s.issue()->arguments.size(); ++i)
    if (auto* b = argument<BarrierAt>(s, i); b != nullptr && k.barriers.size() > 1) {
      b->barriers =
          BarriersId((static_cast<std::size_t>(b->barriers.index) + 1) % k.barriers.size());
      return changed(s, "the other barriers");
    }
  return std::nullopt;
}
std::optional<std::string> next_slot(Kernel& k, const Site& s) {
  for (std::size_t i = 0; s.issue() != nullptr && i < s.issue()->arguments.size(); ++i)
    if (auto* b = argument<BarrierAt>(s, i); b != nullptr && !s.is("mbarrier.init")) {
      b->slot = term::floor_mod(b->slot + 1, k[b->barriers].count);
      return changed(s, "the barrier of the next slot");
    }
  return std::nullopt;
}
std::optional<std::string> flip(Kernel& k, const Site& s) {
  auto* n = s.is("mbarrier.wait") ? argument<Integers>(s, 1) : nullptr;
  if (n == nullptr) return std::nullopt;
  n->values[0] = k.pool->constant(1) - n->values[0];
  return changed(s, "the other parity");
}
std::optional<std::string> stale(Kernel& k, const Site& s) {
  for (std::size_t i = 0; s.issue() != nullptr && i < s.issue()->arguments.size(); ++i)
    if (auto* at = argument<SharedAt>(s, i); at != nullptr && at->at.size() == 3) {
      const int64_t slots = product(k[at->shared].layout.shape().mode(0));
      at->at[0] = term::floor_mod(at->at[0] + (slots - 1), slots);
      return changed(s, "the slot before");
    }
  return std::nullopt;
}
std::optional<std::string> all_lanes(Kernel&, const Site& s) {
  auto* elected = std::get_if<Elected>(&s.op().node);
  if (elected == nullptr) return std::nullopt;
  Body inside = std::move(elected->body);
  s.body->erase(s.body->begin() + static_cast<int64_t>(s.index));
  s.body->insert(s.body->begin() + static_cast<int64_t>(s.index), inside.begin(), inside.end());
  return "all lanes do what one did, in role `" + s.role + "`";
}
/// Loops whose counters have one name have the same bounds, so the last turn stays and does
/// nothing.
std::optional<std::string> shorter(Kernel&, const Site& s) {
  auto* loop = std::get_if<For>(&s.op().node);
  if (loop == nullptr || loop->unroll) return std::nullopt;
  const Term goes_on = term::less(loop->counter + loop->step, loop->upper);
  Body inside = std::move(loop->body);
  loop->body.clear();
  loop->body.push_back({If{goes_on, std::move(inside), {}}, s.op().span});
  return fmt::format("the loop over `{}` in role `{}` does nothing in its last turn",
                     to_string(loop->counter), s.role);
}
std::optional<std::string> unguarded(Kernel& k, const Site& s) {
  auto* branch = std::get_if<If>(&s.op().node);
  if (branch == nullptr) return std::nullopt;
  std::string text =
      fmt::format("`{}` is taken to hold, in role `{}`", to_string(branch->condition), s.role);
  branch->condition = k.pool->truth(true);
  return text;
}

std::vector<Operator> of_places() {
  std::vector<Operator> out = {
      {"wrong_barrier", Breaks::synchronization, other_barriers},
      {"next_slot", Breaks::synchronization, next_slot},
      {"flip_parity", Breaks::synchronization, flip},
      {"stale_slot", Breaks::synchronization, stale},
      {"all_lanes", Breaks::synchronization, all_lanes},
      {"shorter_loop", Breaks::synchronization, shorter},
      {"drop_guard", Breaks::synchronization, unguarded},
  };
  return out;
}

/// Coordinate `at` of a TMA's box, moved.
Operator coordinate(const std::string& name, std::string_view form, std::size_t operand,
                    std::size_t at, int64_t by) {
  return {name, Breaks::data, [=](Kernel&, const Site& s) -> std::optional<std::string> {
            auto* n = s.is(form) ? argument<Integers>(s, operand) : nullptr;
            if (n == nullptr || at >= n->values.size()) return std::nullopt;
            n->values[at] = plus(n->values[at], by);
            return changed(s, fmt::format("coordinate {} moved by {}", at, by));
          }};
}
Operator element(const std::string& name, std::string_view prefix, std::size_t operand,
                 std::size_t mode_from_end, int64_t by) {
  return {name, Breaks::data, [=](Kernel&, const Site& s) -> std::optional<std::string> {
            auto* at = s.starts(prefix) ? argument<SharedAt>(s, operand) : nullptr;
            if (at == nullptr || at->at.size() < mode_from_end) return std::nullopt;
            Term& t = at->at[at->at.size() - mode_from_end];
            t = t->op == term::Op::constant && t->value > 0 ? plus(t, -by) : plus(t, by);
            return changed(s, fmt::format("a coordinate in shared memory moved by {}", by));
          }};
}
std::optional<std::string> swapped(Kernel&, const Site& s) {
  for (std::size_t i = 0; s.starts("tma.") && i < s.issue()->arguments.size(); ++i)
    if (auto* n = argument<Integers>(s, i); n != nullptr && n->values.size() == 2) {
      std::swap(n->values[0], n->values[1]);
      return changed(s, "its coordinates are exchanged");
    }
  return std::nullopt;
}
std::optional<std::string> accumulates(Kernel& k, const Site& s, int64_t value) {
  if (!s.starts("wgmma.f")) return std::nullopt;
  for (std::size_t i = 0; i < s.issue()->form->operands.size(); ++i)
    if (s.issue()->form->operands[i].name == "accumulate") {
      auto* n = argument<Integers>(s, i);
      if (n == nullptr || n->values[0] == k.pool->constant(value)) return std::nullopt;
      n->values[0] = k.pool->constant(value);
      return changed(s, fmt::format("accumulate is {}", value));
    }
  return std::nullopt;
}
std::optional<std::string> first_slot(Kernel&, const Site& s) {
  auto* slice = s.is("stmatrix") ? argument<Slice>(s, 1) : nullptr;
  if (slice == nullptr) return std::nullopt;
  slice->first = slice->first * 0;
  return changed(s, "always the first registers");
}

std::vector<Operator> of_data() {
  return {
      coordinate("next_k", "tma.load", 2, 0, 64),
      coordinate("next_row", "tma.load", 2, 1, 8),
      coordinate("moved_store", "tma.store", 1, 0, 8),
      coordinate("moved_store", "tma.store", 1, 1, 8),
      element("moved_a", "wgmma.f32", 1, 1, 16),
      element("moved_b", "wgmma.f32", 2, 1, 16),
      {"swap_coordinates", Breaks::data, swapped},
      {"drop_accumulate", Breaks::data,
       [](Kernel& k, const Site& s) { return accumulates(k, s, 0); }},
      {"always_accumulate", Breaks::data,
       [](Kernel& k, const Site& s) { return accumulates(k, s, 1); }},
      {"first_registers", Breaks::data, first_slot},
  };
}

/// Edits of storages, which have no site among the ops.
void storages(const Kernel& kernel, std::vector<Mutant>& out) {
  for (std::size_t i = 0; i < kernel.shared.size(); ++i) {
    Mutant m{"other_swizzle", Breaks::data, static_cast<int>(i), "", kernel};
    m.kernel.shared[i].swizzle = arch::SwizzleMode::bytes_64;
    m.edit = "`" + m.kernel.shared[i].name + "` has a swizzle of 64 bytes";
    out.push_back(std::move(m));
  }
  for (std::size_t i = 0; i < kernel.maps.size(); ++i) {
    Mutant m{"other_map_swizzle", Breaks::data, static_cast<int>(i), "", kernel};
    m.kernel.maps[i].swizzle = arch::SwizzleMode::none;
    m.edit = "`" + m.kernel.maps[i].name + "` has no swizzle";
    out.push_back(std::move(m));
  }
}

}  // namespace

std::vector<Mutant> mutants(const Kernel& kernel) {
  std::vector<Operator> operators = of_waits();
  for (auto&& more : {of_places(), of_data()})
    operators.insert(operators.end(), more.begin(), more.end());
  std::vector<Mutant> out;
  Kernel original = kernel;
  std::vector<Site> sites;
  collect(original.body, "", sites);
  for (const Operator& o : operators) {
    int found = 0;
    for (std::size_t i = 0; i < sites.size(); ++i) {
      Kernel copy = kernel;
      std::vector<Site> places;
      collect(copy.body, "", places);
      if (std::optional<std::string> edit = o.edit(copy, places[i]))
        out.push_back({o.name, o.breaks, found++, *edit, std::move(copy)});
    }
  }
  storages(kernel, out);
  return out;
}

}  // namespace tessera::core::testing
