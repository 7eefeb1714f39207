#include "replay/replay.h"

#include <algorithm>
#include <set>

#include "check/kind.h"

namespace tessera::replay {
namespace {

namespace codes = simulate;

/// How a fault of a kind shows in a run. One that lets a wait through too early, for instance, may
/// show as the race that follows.
const std::map<std::string_view, std::set<std::string_view>>& manifestations() {
  static const std::string_view value = codes::bad_output.id, race = codes::race.id,
                                fence = codes::no_proxy_fence.id,
                                unwritten = codes::uninitialized.id, access = codes::bad_access.id,
                                stuck = codes::stuck.id, barrier = codes::bad_barrier.id,
                                flight = codes::registers_in_flight.id, exit = codes::early_exit.id;
  static const std::map<std::string_view, std::set<std::string_view>> table = {
      {"k_agreement", {value, unwritten}},
      {"placement", {value, access, race}},
      {"reduction", {value, unwritten}},
      {"output_once", {value, race}},
      {"initialized", {unwritten, race}},
      {"race_shared", {race, fence, unwritten}},
      {"deadlock", {stuck, barrier}},
      {"phase_window", {race, stuck, barrier, unwritten}},
      {"arrivals", {barrier, stuck, race, unwritten}},
      {"proxy_fence", {fence}},
      {"async_registers", {flight, race}},
      {"uniformity", {stuck, barrier, race}},
      {"bounds", {access, barrier}},
      {"named_barriers", {barrier, stuck, race}},
      {"exit_order", {exit, race}},
      {"barrier_init", {fence, barrier, race}},
      {"cluster_barrier", {barrier, stuck, exit}},
      {"mask", {value}},
      {"rescale", {value}},
      {"dominance", {value}},
      {"degenerate", {value}},
      {"tags", {codes::bad_tag.id}},
      {"early_access", {race}},
      {"alignment", {}},
      {"resources", {}},
  };
  return table;
}

/// A wrong value, and an access outside of what there is, show under every schedule.
bool depends_on_schedule(const std::set<std::string_view>& shows) {
  const std::set<std::string_view> always = {codes::bad_output.id, codes::uninitialized.id,
                                             codes::bad_access.id, codes::bad_tag.id};
  return !std::includes(always.begin(), always.end(), shows.begin(), shows.end());
}

std::vector<int64_t> turns_of(const Diagnostic& d) {
  const auto turns = d.data.find("turns");
  return turns == d.data.end() ? std::vector<int64_t>{} : turns->get<std::vector<int64_t>>();
}

}  // namespace

std::string_view name_of(Shown s) {
  switch (s) {
    case Shown::same:
      return "same";
    case Shown::other:
      return "other";
    case Shown::nothing:
      return "nothing";
    case Shown::not_run:
      return "not_run";
    case Shown::no_events:
      return "no_events";
  }
  return "";
}

std::vector<Replayer::Runs*> Replayer::runs_of(const check::Report& report,
                                               const std::vector<int64_t>& turns, double by) {
  std::vector<Runs*> out;
  if (!launches_) launches_.emplace(kernel_, report.sizes);
  for (Small& s : launches_->near(turns, effort_.launches)) {
    std::unique_ptr<Runs>& runs = runs_[fmt::format("{} {}", to_string(kernel_, s.launch), by)];
    if (!runs) runs = std::make_unique<Runs>();
    runs->small = std::move(s);
    for (const core::Tensor& t : kernel_.tensors) {
      if (by == 1 || t.access != core::Access::input || !is_floating(t.element)) continue;
      for (double& v : runs->small.launch.inputs[t.name]) v *= by;
    }
    out.push_back(runs.get());
  }
  return out;
}

bool Replayer::made(Runs& runs) {
  if (runs.simulator || !runs.why_not.empty()) return runs.simulator.has_value();
  Result<simulate::Simulator> made = simulate::Simulator::make(kernel_, runs.small.launch);
  if (made)
    runs.simulator = std::move(*made);
  else
    runs.why_not = made.error().message;
  return runs.simulator.has_value();
}

const std::vector<Replayer::Fault>& Replayer::faults(Runs& runs, int seed) {
  while (static_cast<int>(runs.by_seed.size()) <= seed) {
    const simulate::Outcome o =
        runs.simulator->run(simulate::Schedule::seeded(runs.by_seed.size()));
    std::vector<Fault>& found = runs.by_seed.emplace_back();
    for (const Diagnostic& d : o.findings) found.push_back({d.code, d.message});
    if (!found.empty() || !means_) continue;
    if (!runs.reference) runs.reference.emplace(kernel_, *means_, runs.small.launch);
    if (std::optional<std::string> wrong = runs.reference->wrong_element(o))
      found.push_back({std::string(codes::bad_output.id), std::move(*wrong)});
  }
  return runs.by_seed[static_cast<std::size_t>(seed)];
}

Shown Replayer::replay(const check::Report& report, std::string_view kind, Diagnostic& d) {
  const auto end = [&](Shown s, std::string note) {
    d.data["replayed"] = std::string(name_of(s));
    d.notes.push_back(std::move(note));
    return s;
  };
  const std::set<std::string_view>& shows = manifestations().at(kind);
  if (shows.empty())
    return end(Shown::no_events, "not replayed: the text says it, no run is needed");
  std::vector<Runs*> all = runs_of(report, turns_of(d), 1);
  // A power that nothing bounds overflows where scores are large, and is off by roundings else.
  constexpr double large = 16;
  if (kind == "dominance")
    for (Runs* r : runs_of(report, turns_of(d), large)) all.push_back(r);
  const auto seen = [&](const Runs& r, int seed, const Fault& f, std::string_view how) {
    d.data["launch"] = Json::object();
    for (const auto& [name, n] : r.small.launch.parameters) d.data["launch"][name] = n;
    d.data["multiprocessors"] = r.small.launch.multiprocessors;
    d.data["seed"] = seed;
    d.data["seen"] = f.code;
    return fmt::format("{}: {} {} (at {}, seed {})", how, f.code, f.message,
                       to_string(kernel_, r.small.launch), seed);
  };
  std::string same, other, why_not = "no small launch has these numbers of turns";
  int ran = 0;
  const auto look = [&](Runs& r, int seed) {
    ++ran;
    for (const Fault& f : faults(r, seed)) {
      if (shows.contains(f.code)) return same = seen(r, seed, f, "replayed"), true;
      if (other.empty())
        other = seen(r, seed, f, "not replayed, the interpreter sees another fault");
    }
    return false;
  };
  const bool by_schedule = depends_on_schedule(shows);
  std::vector<Runs*> runnable;
  for (Runs* r : all) {
    if (!made(*r)) why_not = r->why_not;
    if (r->simulator) runnable.push_back(r);
    for (int seed = 0; r->simulator && seed < effort_.schedules; ++seed)
      if (look(*r, seed)) return end(Shown::same, same);
    // Where warps go by chance, a fault of another kind may always come first.
    for (int n = 0; by_schedule && r->simulator && !other.empty() && n < effort_.of_roles; ++n)
      if (look(*r, static_cast<int>(simulate::Schedule::of_roles(n).seed)))
        return end(Shown::same, same);
  }
  const int enough = ran + (runnable.empty() || !by_schedule ? 0 : effort_.more);
  for (int seed = effort_.schedules; other.empty() && ran < enough; ++seed)
    for (Runs* r : runnable)
      if (look(*r, seed)) return end(Shown::same, same);
  if (!other.empty()) return end(Shown::other, other);
  if (ran == 0) return end(Shown::not_run, "not replayed: " + why_not);
  return end(Shown::nothing,
             fmt::format("not replayed: {} runs of small launches show nothing", ran));
}

void Replayer::replay(check::Report& report) {
  for (check::Finding& f : report.findings)
    for (Diagnostic& d : f.diagnostics) replay(report, f.kind->name, d);
}

}  // namespace tessera::replay
