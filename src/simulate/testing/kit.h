// What small kernels for tests are written with.
#pragma once

#include <stdexcept>

#include "core/builder.h"
#include "simulate/simulate.h"

namespace tessera::simulate::testing {

inline core::Integers integer(core::Builder& b, int64_t n) {
  return {{b.number(n)}};
}
/// Of one warp, `slots` elements a lane.
inline Layout of_warp(int64_t slots = 1) {
  return {IntTuple::flat({32, slots}), IntTuple::flat({1, 32})};
}
inline core::RegistersId registers(core::Builder& b, const std::string& name, int64_t slots = 1,
                                   DType element = DType::float32) {
  return b.registers(name, element, {32 * slots}, of_warp(slots));
}
/// Registers [0, count) = term, which may name the element.
inline void set(core::Builder& b, core::RegistersId to, core::Term value, int64_t count = 1,
                core::Term element = {}) {
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_operand(0)};
  b.compute({dag, {value}, {core::Run{to, b.number(0), Layout(count, 1)}}, count, element});
}
inline core::TensorId vector(core::Builder& b, const std::string& name, int64_t count,
                             core::Access access, DType element = DType::float32) {
  return b.tensor({name, element, {b.number(count)}, {b.number(1)}, access});
}
inline core::Slice first(core::Builder& b, core::RegistersId r) {
  return {r, b.number(0)};
}
inline core::Kernel finished(core::Builder& b) {
  Result<core::Kernel> k = b.finish();
  if (!k) throw std::logic_error(to_text(k.error()));
  return std::move(*k);
}
inline Outcome run(const core::Kernel& k, const Launch& l = {}, uint64_t seed = 0) {
  Result<Outcome> o = simulate(k, l, Schedule::seeded(seed));
  if (!o) throw std::logic_error(to_text(o.error()));
  return std::move(*o);
}
/// The text of all findings; empty: none.
inline std::string findings(const Outcome& o) {
  std::string out;
  for (const Diagnostic& d : o.findings) out += to_text(d) + "\n";
  return out;
}
/// The code of the first finding of each of a few schedules, where they agree.
inline std::string verdict(const core::Kernel& k, const Launch& l = {}) {
  std::string code = "?";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Outcome o = run(k, l, seed);
    const std::string found = o.findings.empty() ? "" : o.findings.front().code;
    if (code != "?" && code != found) return code + " and " + found;
    code = found;
  }
  return code;
}

}  // namespace tessera::simulate::testing
