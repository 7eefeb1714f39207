// Vector clocks: what one party knows of the others' doings.
//
// A component counts the doings of one party: the lanes of a warp that go together, an asynchronous
// operation, a warp's queue of wgmma, the phases of an mbarrier. Clocks grow on demand; what is not
// there is 0.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::simulate {

class Clock {
 public:
  uint32_t operator[](uint32_t component) const {
    return component < at_.size() ? at_[component] : 0;
  }
  void set(uint32_t component, uint32_t value) {
    if (component >= at_.size()) at_.resize(component + 1);
    at_[component] = value;
  }
  void raise(uint32_t component, uint32_t value) {
    if ((*this)[component] < value) set(component, value);
  }
  void join(const Clock& other) {
    if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
    uint32_t* const mine = at_.data();
    const uint32_t* const its = other.at_.data();
    for (std::size_t i = 0; i < other.at_.size(); ++i)
      mine[i] = mine[i] < its[i] ? its[i] : mine[i];
  }
  [[nodiscard]] std::size_t size() const { return at_.size(); }
  void clear() { at_.clear(); }

 private:
  std::vector<uint32_t> at_;
};

/// What happened before a party's next doing, and what of it by the generic proxy is fenced towards
/// the async proxy, apart for shared and for global memory.
struct Knowledge {
  Clock seen;
  Clock shared_fenced;
  Clock global_fenced;

  void join(const Knowledge& other) {
    seen.join(other.seen);
    shared_fenced.join(other.shared_fenced);
    global_fenced.join(other.global_fenced);
  }
  void clear() {
    seen.clear();
    shared_fenced.clear();
    global_fenced.clear();
  }
};

}  // namespace tessera::simulate
