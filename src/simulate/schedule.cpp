#include "simulate/schedule.h"

#include <algorithm>
#include <array>

namespace tessera::simulate {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::array<uint64_t, 3> patiences = {1, 12, 150};

}  // namespace

Seeded::Seeded(Schedule schedule)
    : schedule_(std::move(schedule)),
      state_(mix(schedule_.seed)),
      favour_(mix(state_)),
      patience_(patiences[schedule_.seed % patiences.size()]),
      by_role_(schedule_.by_role()) {}

uint64_t Seeded::draw() {
  state_ += 0x9e3779b97f4a7c15ULL;
  return mix(state_);
}

std::optional<uint32_t> Seeded::choose(std::span<const Actor> actors) {
  if (actors.size() == 1) return 0;
  if (next_ < schedule_.choices.size()) {
    const uint32_t given = schedule_.choices[next_++];
    return std::min<uint32_t>(given, static_cast<uint32_t>(actors.size()) - 1);
  }
  if (patience_ == 1) return static_cast<uint32_t>(draw() % actors.size());
  if (draw() % patience_ == 0) favour_ = draw();
  uint32_t best = 0;
  std::pair<uint64_t, uint64_t> most;
  for (uint32_t i = 0; i < actors.size(); ++i) {
    const Actor& a = actors[i];
    const uint64_t own = mix(a.key ^ favour_);
    const std::pair favour(by_role_ ? mix((a.role != 0 ? a.role : a.key) ^ favour_) : own, own);
    if (favour < most) continue;
    most = favour;
    best = i;
  }
  return best;
}

bool Exhaustive::independent(const Actor& a, const Actor& b) {
  if (a.key == b.key) return false;
  if (a.object == Actor::nothing || b.object == Actor::nothing) return true;
  if (a.object == Actor::everything || b.object == Actor::everything) return false;
  return a.object != b.object || (a.waits && b.waits);
}

bool Exhaustive::sleeps(const Node& node, const Actor& a) {
  return std::any_of(node.asleep.begin(), node.asleep.end(),
                     [&](const Actor& s) { return s.key == a.key; });
}

std::optional<uint32_t> Exhaustive::first_awake(const Node& node, uint32_t from) {
  for (uint32_t i = from; i < node.actors.size(); ++i)
    if (!sleeps(node, node.actors[i])) return i;
  return std::nullopt;
}

std::optional<uint32_t> Exhaustive::choose(std::span<const Actor> actors) {
  if (depth_ < path_.size()) return path_[depth_++].chosen;
  Node node{{actors.begin(), actors.end()}, {}, 0};
  if (!path_.empty()) {
    const Node& before = path_.back();
    for (const Actor& s : before.asleep)
      if (independent(s, before.actors[before.chosen])) node.asleep.push_back(s);
  }
  const std::optional<uint32_t> first = first_awake(node, 0);
  if (!first) return std::nullopt;
  node.chosen = *first;
  path_.push_back(std::move(node));
  ++depth_;
  return first;
}

bool Exhaustive::advance() {
  depth_ = 0;
  while (!path_.empty()) {
    Node& node = path_.back();
    node.asleep.push_back(node.actors[node.chosen]);
    if (const std::optional<uint32_t> next = first_awake(node, 0)) {
      node.chosen = *next;
      return true;
    }
    path_.pop_back();
  }
  return false;
}

}  // namespace tessera::simulate
