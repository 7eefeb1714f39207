// One block at a time, its threads as fibers: each runs until it must meet others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

namespace tessera_emulate {

[[noreturn]] inline void stop(const char* why) {
  std::fprintf(stderr, "emulated block: %s\n", why);
  std::_Exit(9);
}

/// Memory that ends (up to 16 bytes) at a page nobody may touch, every byte 0xFF: NaN as float.
inline unsigned char* guarded(std::size_t bytes) {
  const std::size_t page = 4096;
  const std::size_t size = (bytes + page - 1) / page * page;
  void* at = mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) stop("out of memory");
  auto* body = static_cast<unsigned char*>(at) + page;
  if (size > 0 && mprotect(body, size, PROT_READ | PROT_WRITE) != 0) stop("mprotect");
  std::memset(body, 0xff, size);
  return body + (size - bytes) / 16 * 16;
}

struct Copy {
  void* to;
  const void* from;
  int bytes;
  bool live;
  int64_t group;
};

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  enum class State { runs, meets_warp, meets_block, done } state = State::runs;
  const char* where = "";       // the instruction in which the lane meets its warp
  const void* offer = nullptr;  // what it shows to the other lanes there
  std::vector<Copy> copies;
  int64_t groups = 0;  // of copies, committed
};

class Block {
 public:
  static Block& now() {
    static Block b;
    return b;
  }

  unsigned thread = 0;
  unsigned char* shared = nullptr;

  void run(unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    if (shared == nullptr || shared_bytes != shared_bytes_) shared = guarded(shared_bytes);
    shared_bytes_ = shared_bytes;
    std::memset(shared, 0xff, shared_bytes);
    fibers_.assign(threads, {});
    for (Fiber& f : fibers_) {
      f.stack.resize(64 << 10);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = &scheduler_;
      makecontext(&f.context, &Block::enter, 0);
    }
    while (turn()) {
    }
  }

  /// The fiber at hand.
  Fiber& self() { return fibers_[thread]; }
  /// What lane `l` of this warp offered where all of it met.
  template <class T>
  const T& offered(unsigned lane) const {
    return *static_cast<const T*>(fibers_[thread / 32 * 32 + lane].offer);
  }
  void meet_block() { leave(Fiber::State::meets_block); }
  /// Returns when every lane of the warp is in the same instruction; `offer` stays readable until
  /// the lanes meet again.
  void meet_warp(const char* where, const void* offer) {
    self().where = where;
    self().offer = offer;
    leave(Fiber::State::meets_warp);
  }

 private:
  static void enter() {
    Block& b = now();
    (*b.kernel_)();
    b.self().state = Fiber::State::done;
  }
  void leave(Fiber::State s) {
    Fiber& f = self();
    f.state = s;
    swapcontext(&f.context, &scheduler_);
  }

  /// Runs every fiber that can; then lets those go that have met. False when all are done.
  bool turn() {
    std::vector<unsigned> order(fibers_.size());
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    bool ran = false;
    for (unsigned i : order) {
      if (fibers_[i].state != Fiber::State::runs) continue;
      thread = i;
      swapcontext(&scheduler_, &fibers_[i].context);
      ran = true;
    }
    bool released = release_warps();
    std::size_t waiting = 0, done = 0;
    for (const Fiber& f : fibers_) {
      waiting += f.state == Fiber::State::meets_block ? 1 : 0;
      done += f.state == Fiber::State::done ? 1 : 0;
    }
    if (done == fibers_.size()) return false;
    if (waiting > 0 && waiting + done == fibers_.size()) {
      for (Fiber& f : fibers_)
        if (f.state == Fiber::State::meets_block) f.state = Fiber::State::runs;
      released = true;
    }
    if (!ran && !released) stop("threads wait for others that will not come");
    return true;
  }
  bool release_warps() {
    bool any = false;
    for (std::size_t w = 0; w < fibers_.size(); w += 32) {
      bool all = true;
      for (std::size_t l = w; l < w + 32; ++l)
        all = all && l < fibers_.size() && fibers_[l].state == Fiber::State::meets_warp;
      if (!all) continue;
      for (std::size_t l = w; l < w + 32; ++l) {
        if (std::strcmp(fibers_[l].where, fibers_[w].where) != 0)
          stop("lanes of a warp meet in different instructions");
        fibers_[l].state = Fiber::State::runs;
      }
      any = true;
    }
    return any;
  }

  std::size_t shared_bytes_ = 0;
  std::vector<Fiber> fibers_;
  ucontext_t scheduler_;
  const std::function<void()>* kernel_ = nullptr;
  std::mt19937 random_{12345};
};

/// A number from every lane; `f` combines them into the lane's own result.
template <class T, class F>
auto among_lanes(const char* where, const T& mine, F f) {
  Block& b = Block::now();
  const T copy = mine;
  b.meet_warp(where, &copy);
  auto result = f([&](unsigned lane) -> const T& { return b.offered<T>(lane); });
  b.meet_warp(where, &copy);
  return result;
}

}  // namespace tessera_emulate
