#include "core/kernel.h"

#include <algorithm>
#include <stdexcept>

namespace tessera::core {
namespace {

/// Names of a fresh pool are free.
Term fresh(Result<Term> t) {
  if (!t) throw std::logic_error("a kernel's coordinate: " + t.error().message);
  return *t;
}

}  // namespace

Kernel::Kernel(std::string name_, int threads_, int cluster_)
    : name(std::move(name_)),
      threads(threads_),
      cluster(cluster_),
      pool(std::make_shared<term::Pool>()) {
  const Term one = pool->constant(1);
  at.lane = fresh(pool->coordinate("lane", 32));
  at.warp = fresh(pool->coordinate("warp", std::max(threads / 32, 1)));
  at.rank = fresh(pool->coordinate("rank", cluster));
  at.multiprocessors = fresh(pool->parameter("multiprocessors", {one, pool->constant(1 << 16)}));
  at.blocks = fresh(pool->parameter("blocks", {one, pool->constant(int64_t{1} << 31)}));
  at.block = fresh(pool->parameter("block", {pool->constant(0), at.blocks}));
  grid = one;
}

int64_t Kernel::shared_bytes() const {
  int64_t end = 0;
  for (const Shared& s : shared) end = std::max(end, s.at + s.bytes());
  for (const Barriers& b : barriers) end = std::max(end, b.at + 8 * b.count);
  return end;
}

}  // namespace tessera::core
