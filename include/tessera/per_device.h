// State that a library keeps for each GPU, for threads that work on several at once.
#pragma once

#include <atomic>
#include <mutex>

namespace tessera {

/// One T a device, made at its first use and never changed after that. Reading takes no lock. A
/// static of this type must be constant-initialized, so that it costs no guard either: T has a
/// constexpr default constructor.
template <class T>
class PerDevice {
 public:
  static constexpr int most = 64;

  constexpr PerDevice() = default;

  /// The state of `device`, made by `make(T&)` where there is none: 0 on success. Null when that
  /// fails, then the next call tries again, and for numbers that are not below `most`.
  template <class Make>
  const T* get(int device, Make make) {
    if (device < 0 || device >= most) return nullptr;
    Slot& slot = slots_[device];
    if (slot.ready.load(std::memory_order_acquire)) return &slot.value;
    const std::lock_guard<std::mutex> lock(making_);
    if (slot.ready.load(std::memory_order_relaxed)) return &slot.value;
    T value{};
    if (make(value) != 0) return nullptr;
    slot.value = value;
    slot.ready.store(true, std::memory_order_release);
    return &slot.value;
  }

 private:
  struct Slot {
    std::atomic<bool> ready{false};
    T value{};
  };
  Slot slots_[most];
  std::mutex making_;
};

}  // namespace tessera
