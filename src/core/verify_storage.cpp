// Storages by themselves: names, sizes, alignments, what TMA can address, what a block may use.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

/// Bytes that each block takes of its multiprocessor's shared memory beside its own.
constexpr int64_t shared_of_system = 1024;

/// Of the parameters alone, and of the multiprocessors where the grid asks.
bool of_launch(const Site& site, Term t, bool grid) {
  const auto allowed = [&](Term s) {
    const auto& all = site.kernel.parameters;
    return std::find(all.begin(), all.end(), s) != all.end() ||
           (grid && s == site.kernel.at.multiprocessors);
  };
  return t && t->pool == site.kernel.pool.get() && !t->predicate() && !any_node(t, [&](Term n) {
           return (n->leaf() && n->symbol != nullptr && !allowed(n)) || n->op == term::Op::read;
         });
}

void verify_names(const Site& site) {
  const Kernel& k = site.kernel;
  std::set<std::string> taken = {"lane", "warp", "rank", "multiprocessors", "blocks", "block"};
  const auto take = [&](const std::string& name, Span span) {
    if (!is_name(name))
      site.report(fail(bad_storage, "`{}` is no name", name).expect("a name of Python"), span);
    else if (!taken.insert(name).second)
      site.report(fail(bad_storage, "two things are called `{}`", name)
                      .expect("a name of its own for each"),
                  span);
  };
  for (const Term p : k.parameters) {
    take(p->symbol->name, k.span);
    const term::Bounds& b = p->symbol->bounds;
    if (!b.lower || !b.upper) continue;
    const auto low = b.lower->facts.constant(), high = b.upper->facts.constant();
    if (low && high && *low + term::floor_remainder(b.residue - *low, b.modulus) >= *high)
      site.report(fail(bad_structure, "`{}` has no value", p->symbol->name)
                      .expect("a value from {} on, below {}", *low, *high)
                      .help("what is proved for all launches is proved of none"),
                  k.span);
  }
  for (const auto& [name, value] : k.constants) take(name, k.span);
  for (const Tensor& t : k.tensors) take(t.name, t.span);
  for (const TensorMap& m : k.maps) take(m.name, m.span);
  for (const Shared& s : k.shared) take(s.name, s.span);
  for (const Barriers& b : k.barriers) take(b.name, b.span);
}

void verify_tensor(const Site& site, const Tensor& t) {
  if (t.extents.size() != t.strides.size())
    return site.report(fail(bad_storage, "`{}` has an extent without a stride", t.name)
                           .expect("as many strides as extents")
                           .but_found("{} and {}", t.strides.size(), t.extents.size()),
                       t.span);
  for (const auto* terms : {&t.extents, &t.strides})
    for (const Term e : *terms)
      if (!of_launch(site, e, false))
        site.report(fail(bad_storage,
                         "`{}` has an extent or a stride that the launch does not know", t.name)
                        .expect("terms of the parameters"),
                    t.span);
}

/// What the term is for all launches, or a stand-in that is legal.
int64_t value_or(Term t, int64_t stand_in) {
  return t->facts.constant().value_or(stand_in);
}

/// A claim about an extent or a stride of a map's tensor.
void prove_of_map(const Site& site, const TensorMap& m, Term holds, Term of, const char* what,
                  const char* expected) {
  site.prove({.holds = holds,
              .code = bad_storage,
              .wrong = fmt::format("`{}` has {} that TMA does not take", m.name, what),
              .expected = expected,
              .found = fmt::format("`{}`", term::to_string(of)),
              .whether = fmt::format("TMA takes every {} of `{}`", what + 2, m.name)},
             m.span);
}

void verify_map_terms(const Site& site, const TensorMap& m, const Tensor& t) {
  term::Pool& pool = site.pool();
  const auto& limits = arch::tma_limits;
  for (std::size_t i = 0; i < m.dims.size(); ++i) {
    const Term extent = t.extents[m.dims[i]];
    prove_of_map(site, m,
                 logical_and(less_equal(pool.constant(1), extent),
                             less_equal(extent, pool.constant(limits.max_extent))),
                 extent, "an extent", "1 to 2^32 elements");
    const Term stride = t.strides[m.dims[i]];
    if (i == 0) {
      prove_of_map(site, m, equals(stride, pool.constant(1)), stride, "a first stride",
                   "1: the first of `dims` is the contiguous one");
      continue;
    }
    const Term bytes = stride * int64_t{size_of(t.element)};
    prove_of_map(site, m, equals(floor_mod(bytes, limits.stride_multiple), pool.constant(0)),
                 stride, "a stride", "a multiple of 16 bytes");
    prove_of_map(site, m,
                 logical_and(less_equal(pool.constant(0), bytes),
                             less(bytes, pool.constant(limits.max_stride))),
                 stride, "a stride", "0 to 2^40 bytes");
  }
}

void verify_map(const Site& site, const TensorMap& m) {
  const Tensor& t = site.kernel[m.tensor];
  const auto rank = static_cast<int>(t.extents.size());
  std::set<int> seen;
  for (const int d : m.dims)
    if (d < 0 || d >= rank || !seen.insert(d).second)
      return site.report(
          fail(bad_storage, "`{}` names a dimension that `{}` does not have, or twice", m.name,
               t.name)
              .expect("dimensions 0 to {}, each once", rank - 1)
              .but_found("{}", d),
          m.span);
  if (m.rounded && t.element != DType::float32)
    site.report(fail(bad_storage, "`{}` rounds elements that are no float32", m.name)
                    .expect("f32")
                    .but_found("{}", short_name(t.element)),
                m.span);
  verify_map_terms(site, m, t);
  arch::TensorMap shape{t.element, {}, {}, m.box, m.swizzle, m.fill};
  for (std::size_t i = 0; i < m.dims.size(); ++i) {
    shape.extents.push_back(value_or(t.extents[m.dims[i]], 1));
    if (i > 0) shape.strides.push_back(arch::tma_limits.stride_multiple);
  }
  // What terms say has been asked above: here extents and strides are legal.
  for (int64_t& e : shape.extents) e = std::clamp<int64_t>(e, 1, arch::tma_limits.max_extent);
  if (const Status s = arch::check(shape, arch::tma_limits.base_alignment); !s) {
    Diagnostic d = fail(bad_storage, "`{}`: {}", m.name, s.error().message);
    d.expected = s.error().expected;
    d.helps = s.error().helps;
    site.report(std::move(d), m.span);
  }
}

void verify_shared(const Site& site, const Shared& s) {
  const int64_t alignment = arch::alignment_of(s.swizzle);
  if (s.at < 0 || s.at % alignment != 0)
    site.report(
        fail(bad_storage, "`{}` does not begin where its swizzle does", s.name)
            .expect("a multiple of {} bytes, for swizzle {}", alignment, swizzle_text(s.swizzle))
            .but_found("byte {}", s.at)
            .help("at={}", (std::max<int64_t>(s.at, 0) + alignment - 1) / alignment * alignment),
        s.span);
}

void verify_barriers(const Site& site) {
  const auto& all = site.kernel.barriers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Barriers& b = all[i];
    if (b.count < 1 || b.at < 0 || b.at % 8 != 0)
      site.report(fail(bad_storage, "`{}` does not lie as mbarriers do", b.name)
                      .expect("at least one, at a multiple of 8 bytes")
                      .but_found("{} at byte {}", b.count, b.at),
                  b.span);
    for (std::size_t j = 0; j < i; ++j)
      if (b.at < all[j].at + 8 * all[j].count && all[j].at < b.at + 8 * b.count)
        site.report(fail(bad_storage, "`{}` and `{}` share mbarriers", all[j].name, b.name)
                        .expect("bytes of its own for each")
                        .but_found("bytes {} to {} and {} to {}", all[j].at,
                                   all[j].at + 8 * all[j].count - 1, b.at, b.at + 8 * b.count - 1),
                    b.span);
    // Buffers may share bytes on purpose, at different times. A barrier is always in use.
    for (const Shared& s : site.kernel.shared)
      if (b.at < s.at + s.bytes() && s.at < b.at + 8 * b.count)
        site.report(fail(bad_storage, "`{}` and `{}` share bytes", b.name, s.name)
                        .expect("mbarriers outside of all shared memory that holds elements")
                        .but_found("bytes {} to {} and {} to {}", b.at, b.at + 8 * b.count - 1,
                                   s.at, s.at + s.bytes() - 1),
                    b.span);
  }
}

void verify_size(const Site& site) {
  const Kernel& k = site.kernel;
  const int64_t bytes = k.shared_bytes();
  Span last = k.span;
  for (const Shared& s : k.shared)
    if (s.at + s.bytes() == bytes) last = s.span;
  for (const Barriers& b : k.barriers)
    if (b.at + 8 * b.count == bytes) last = b.span;
  if (bytes > site.arch.shared_memory_per_block)
    return site.report(
        fail(bad_storage, "the block has more shared memory than {} has", site.arch.name)
            .expect("at most {} bytes", site.arch.shared_memory_per_block)
            .but_found("{} bytes", bytes),
        last);
  const int64_t most = site.arch.limits.shared_memory_per_multiprocessor;
  const int64_t together = k.min_blocks * (bytes + shared_of_system);
  if (together > most)
    site.report(
        fail(bad_storage, "{} blocks do not fit in a multiprocessor's shared memory", k.min_blocks)
            .expect("at most {} bytes", most)
            .but_found("{} blocks of {} + {} bytes", k.min_blocks, bytes, shared_of_system),
        last);
}

}  // namespace

bool is_name(std::string_view name) {
  static constexpr std::array words = {
      "and",    "or",    "not",    "if",     "else",     "elif",     "for",    "in",
      "is",     "while", "with",   "as",     "def",      "pass",     "return", "assert",
      "import", "from",  "lambda", "class",  "try",      "except",   "raise",  "del",
      "global", "yield", "break",  "async",  "await",    "nonlocal", "True",   "False",
      "None",   "min",   "max",    "select", "continue", "finally"};
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), fits) &&
         std::find(words.begin(), words.end(), name) == words.end();
}

void verify_head(const Site& site) {
  const Kernel& k = site.kernel;
  const arch::Limits& limits = site.arch.limits;
  if (!is_name(k.name))
    site.report(fail(bad_structure, "`{}` is no name", k.name).expect("a name of Python"), k.span);
  if (k.threads < 32 || k.threads % 32 != 0 || k.threads > limits.threads_per_block)
    site.report(fail(bad_structure, "a block has no such number of threads")
                    .expect("a multiple of 32, at most {}", limits.threads_per_block)
                    .but_found("{}", k.threads),
                k.span);
  const int cluster = std::max(limits.cluster_blocks_opted_in, 1);
  if (k.cluster < 1 || k.cluster > cluster)
    site.report(fail(bad_structure, "a cluster has no such number of blocks")
                    .expect("1 to {}", cluster)
                    .but_found("{}", k.cluster),
                k.span);
  if (k.min_blocks < 1)
    site.report(fail(bad_structure, "a multiprocessor holds one block at least")
                    .expect("min_blocks of 1 or more")
                    .but_found("{}", k.min_blocks),
                k.span);
  if (!of_launch(site, k.grid, true))
    site.report(fail(bad_structure, "the grid is not known at the launch")
                    .expect("a number of the parameters and `multiprocessors`"),
                k.span);
  for (const Tensor& t : k.tensors) verify_tensor(site, t);
}

void verify_storages(const Site& site) {
  const Kernel& k = site.kernel;
  verify_names(site);
  site.prove(
      {.holds = logical_and(less_equal(site.pool().constant(1), k.grid),
                            equals(floor_mod(k.grid, int64_t{k.cluster}), site.pool().constant(0))),
       .code = bad_structure,
       .wrong = "the grid is not made of whole clusters",
       .expected = fmt::format("a multiple of {}, at least 1", k.cluster),
       .found = fmt::format("`{}`", term::to_string(k.grid)),
       .whether = "the grid is made of whole clusters"},
      k.span);
  for (const TensorMap& m : k.maps) verify_map(site, m);
  for (const Shared& s : k.shared) verify_shared(site, s);
  verify_barriers(site);
  verify_size(site);
}

}  // namespace tessera::core
