#include "arch/effects.h"

#include <array>
#include <fmt/format.h>

#include "base/text.h"

namespace tessera::arch {
namespace {

/// The name of an enumerator by its place; tables below are in the order of effects.h.
template <std::size_t N, class E>
std::string_view at(const std::array<std::string_view, N>& names, E e) {
  return names.at(static_cast<std::size_t>(e));
}

std::string in_blocks(std::string_view blocks) {
  return blocks.empty() ? "" : fmt::format(" in the blocks of ${}", blocks);
}

std::string place(const Access& a) {
  const std::string bytes = to_string(a.bytes);
  switch (a.place) {
    case Place::once:
      return fmt::format("{} bytes at ${}", bytes, a.operand);
    case Place::lanes:
      return fmt::format("{} bytes at each thread's ${}", bytes, a.operand);
    case Place::rows:
      return fmt::format("{} bytes at ${} of each of the first {} lanes", bytes, a.operand,
                         to_string(a.lanes));
    case Place::box:
      return fmt::format("the box of ${} within its tensor", a.operand);
    case Place::matrix:
      return fmt::format("the matrix of ${}", a.operand);
    case Place::register_:
      return fmt::format("${}", a.operand);
  }
  return "";
}

std::string_view by_whom(Issuer i) {
  switch (i) {
    case Issuer::elected:
      return "issued by one elected thread";
    case Issuer::thread:
      return "issued by each thread";
    case Issuer::warp:
      return "issued by a whole warp";
    case Issuer::warpgroup:
      return "issued by a whole warpgroup";
  }
  return "";
}

}  // namespace

Completion Effects::locked_until(std::string_view operand) const {
  for (const Access& a : accesses)
    if (a.space == Space::registers && a.operand == operand) return a.until;
  return Completion::at_once;
}

bool Effects::asynchronous() const {
  for (const Access& a : accesses)
    if (a.until != Completion::at_once) return true;
  for (const Event& e : events)
    if (e.when != When::at_once) return true;
  return false;
}

std::string_view name_of(Issuer i) {
  return at(std::array<std::string_view, 4>{"elected", "thread", "warp", "warpgroup"}, i);
}
std::string_view name_of(Space s) {
  return at(std::array<std::string_view, 4>{"registers", "shared", "cluster_shared", "global"}, s);
}
std::string_view name_of(Proxy p) {
  return at(std::array<std::string_view, 4>{"none", "generic", "async", "tensormap"}, p);
}
std::string_view name_of(Action a) {
  return at(std::array<std::string_view, 3>{"reads", "writes", "updates"}, a);
}
std::string_view name_of(Completion c) {
  return at(std::array<std::string_view, 6>{"at_once", "barrier_bytes", "cp_async_group",
                                            "bulk_group_read", "bulk_group", "wgmma_group"},
            c);
}
std::string_view name_of(EventKind k) {
  return at(
      std::array<std::string_view, 14>{"arrival", "expectation", "bytes", "phase", "named_barrier",
                                       "cluster_barrier", "warp", "cp_async_group",
                                       "bulk_group_read", "bulk_group", "wgmma_group",
                                       "register_pool", "dependents", "prerequisites"},
      k);
}
std::string_view name_of(Verb v) {
  return at(std::array<std::string_view, 2>{"signals", "awaits"}, v);
}
std::string_view name_of(When w) {
  return at(std::array<std::string_view, 3>{"at_once", "with_accesses", "with_prior_copies"}, w);
}
std::string_view name_of(Ordering o) {
  return at(std::array<std::string_view, 4>{"relaxed", "release", "acquire", "acq_rel"}, o);
}
std::string_view name_of(Scope s) {
  return at(std::array<std::string_view, 5>{"thread", "block", "cluster", "gpu", "system"}, s);
}
std::string_view name_of(FenceKind k) {
  return at(std::array<std::string_view, 6>{"async_proxy", "tensormap_release", "tensormap_acquire",
                                            "barrier_init", "wgmma_registers", "memory"},
            k);
}

std::string to_string(const Amount& a) {
  if (a.of == Amount::Of::number) return std::to_string(a.times);
  if (a.of == Amount::Of::box) return fmt::format("box(${})", a.name);
  if (a.of == Amount::Of::tile) return fmt::format("tile(${})", a.name);
  std::string s =
      a.of == Amount::Of::modifier ? fmt::format("<{}>", a.name) : fmt::format("${}", a.name);
  if (a.times != 1) s = fmt::format("{} * {}", a.times, s);
  return a.per == 1 ? s : fmt::format("{} / {}", s, a.per);
}

std::string to_string(const Access& a) {
  std::string s = fmt::format("{} {}", name_of(a.action), place(a));
  if (a.space != Space::registers)
    s += fmt::format(" ({}, {} proxy)", name_of(a.space), name_of(a.proxy));
  s += in_blocks(a.blocks);
  if (a.atomic != Scope::thread) s += fmt::format(", atomically for the {}", name_of(a.atomic));
  if (!a.unless_zero.empty()) s += fmt::format(" unless ${} is 0", a.unless_zero);
  if (a.until != Completion::at_once) s += fmt::format(" until {}", name_of(a.until));
  return s;
}

std::string to_string(const Event& e) {
  std::string s = fmt::format("{} {}({})", name_of(e.verb), name_of(e.kind), to_string(e.amount));
  if (!e.operand.empty()) s += fmt::format(" at ${}", e.operand);
  s += in_blocks(e.blocks);
  if (!e.block.empty()) s += fmt::format(" of block ${}", e.block);
  if (e.when != When::at_once) s += fmt::format(" {}", name_of(e.when));
  if (e.order != Ordering::relaxed) s += fmt::format(", {} {}", name_of(e.order), name_of(e.scope));
  return s;
}

std::string to_string(const Fence& f) {
  std::string s = fmt::format("fences {}", name_of(f.kind));
  if (f.kind == FenceKind::async_proxy)
    return s +
           (f.space == Space::global ? " of all memory" : fmt::format(" of {}", name_of(f.space)));
  if (f.kind == FenceKind::wgmma_registers) return s;
  return s + fmt::format(", {} {}", name_of(f.order), name_of(f.scope));
}

std::string to_string(const Need& n) {
  return fmt::format("needs {} of ${}", name_of(n.fence), n.operand);
}

std::string to_string(const Effects& e) {
  std::vector<std::string> parts = {std::string(by_whom(e.issuer))};
  for (const Access& a : e.accesses) parts.push_back(to_string(a));
  for (const Event& v : e.events) parts.push_back(to_string(v));
  for (const Fence& f : e.fences) parts.push_back(to_string(f));
  for (const Need& n : e.needs) parts.push_back(to_string(n));
  return join(parts, "; ");
}

}  // namespace tessera::arch
