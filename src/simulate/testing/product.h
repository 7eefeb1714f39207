// The product of core/testing run on small launches, for tests: launches, expected values, one-edit
// mutations of its ops.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "numeric/round.h"

#include "core/testing/gemm.h"
#include "simulate/simulate.h"

namespace tessera::simulate::testing {

struct Sizes {
  int64_t m = 64, n = 64, k = 32;
  int64_t multiprocessors = 132;
};

/// Small whole numbers: every sum is exact.
inline Launch launch(const Sizes& s, uint64_t seed = 1) {
  Launch l{.parameters = {{"M", s.m}, {"N", s.n}, {"K", s.k}},
           .multiprocessors = s.multiprocessors};
  std::mt19937_64 random(seed);
  const auto fill = [&](std::vector<double>& v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<double>(random() % 7) - 3);
  };
  fill(l.inputs["A"], s.m * s.k);
  fill(l.inputs["B"], s.n * s.k);
  return l;
}

/// The first element of C that is not A B^T rounded to bfloat16; empty: all are.
inline std::string wrong_element(const Launch& l, const Sizes& s, const std::vector<double>& c) {
  const std::vector<double>& a = l.inputs.at("A");
  const std::vector<double>& b = l.inputs.at("B");
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += a[i * s.k + k] * b[j * s.k + k];
      const double expected = round_to(DType::bfloat16, sum);
      if (!(c.at(i * s.n + j) == expected))
        return fmt::format("C[{}, {}] is {}, not {}", i, j, c[i * s.n + j], expected);
    }
  return "";
}

/// Every op of the body, outer ones first, with the list that holds it; false stops.
inline bool walk(core::Body& body, const std::function<bool(core::Body&, std::size_t)>& see) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!see(body, i)) return false;
    if (i >= body.size()) continue;
    auto& node = body[i].node;
    if (auto* f = std::get_if<core::For>(&node)) {
      if (!walk(f->body, see)) return false;
    } else if (auto* c = std::get_if<core::If>(&node)) {
      if (!walk(c->body, see) || !walk(c->otherwise, see)) return false;
    } else if (auto* e = std::get_if<core::Elected>(&node)) {
      if (!walk(e->body, see)) return false;
    } else if (auto* r = std::get_if<core::Role>(&node)) {
      if (!walk(r->body, see)) return false;
    }
  }
  return true;
}

/// edit(body, place) for the nth instruction of this name whose first argument, where `storage` is
/// given, names that barrier array. False when there is none.
inline bool edit(core::Kernel& k, std::string_view form, std::string_view storage, int nth,
                 const std::function<void(core::Body&, std::size_t)>& apply) {
  int seen = 0;
  return !walk(k.body, [&](core::Body& body, std::size_t i) {
    const auto* issue = std::get_if<core::Issue>(&body[i].node);
    if (issue == nullptr || issue->form->name != form) return true;
    if (!storage.empty()) {
      const auto* at = std::get_if<core::BarrierAt>(&issue->arguments.at(0));
      if (at == nullptr || k[at->barriers].name != storage) return true;
    }
    if (seen++ != nth) return true;
    apply(body, i);
    return false;
  });
}

inline void drop(core::Body& body, std::size_t i) {
  body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
}
inline core::Issue& issue_at(core::Body& body, std::size_t i) {
  return std::get<core::Issue>(body[i].node);
}

}  // namespace tessera::simulate::testing
