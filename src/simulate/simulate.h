// Runs a kernel at concrete sizes under one legal schedule, and judges it.
//
//   TESSERA_TRY(simulator, Simulator::make(kernel, launch));
//   Outcome o = simulator.run(Schedule::seeded(7));
//   o.findings      // what is wrong, the first one first; empty: nothing in this run
//   o.outputs["C"]  // elements in the order of memory
//
// The memory model is docs/memory-model.md. Values are those of the element types, held as their
// bytes in memory and registers; sums of products are kept in double and rounded to the
// accumulator's type once an instruction. A launch may ask for residues in their place
// (simulate/domain.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diag/result.h"

#include "core/kernel.h"
#include "residue/value.h"

namespace tessera::simulate {

inline constexpr Code race{"TS0840", "simulate.race"};
inline constexpr Code no_proxy_fence{"TS0841", "simulate.no_proxy_fence"};
inline constexpr Code uninitialized{"TS0842", "simulate.uninitialized"};
inline constexpr Code bad_access{"TS0843", "simulate.bad_access"};
inline constexpr Code stuck{"TS0844", "simulate.stuck"};
inline constexpr Code bad_barrier{"TS0845", "simulate.bad_barrier"};
inline constexpr Code registers_in_flight{"TS0846", "simulate.registers_in_flight"};
inline constexpr Code bad_output{"TS0847", "simulate.bad_output"};
inline constexpr Code early_exit{"TS0848", "simulate.early_exit"};
inline constexpr Code bad_tag{"TS0887", "simulate.bad_tag"};
inline constexpr Code not_executable{"TS0849", "simulate.not_executable"};

struct Launch {
  std::map<std::string, int64_t> parameters;  // by name, all of the kernel's
  /// By name, all of the kernel's inputs: elements in the order of memory, as many as the tensor
  /// spans. They are rounded to the tensor's type.
  std::map<std::string, std::vector<double>> inputs;
  int64_t multiprocessors = 132;
  /// Set: the kernel runs on residues in the place of numbers, with these inputs in the place of
  /// `inputs`. Instructions that compute with bits have no meaning then.
  std::optional<std::map<std::string, std::vector<residue::Value>>> residues = std::nullopt;
};

/// Which of the possible steps is taken next, where there are several.
struct Schedule {
  uint64_t seed = 0;              // of what is not in `choices`
  std::vector<uint32_t> choices;  // the first choices, as a run reported them
  static Schedule seeded(uint64_t seed) { return {seed, {}}; }
  /// One of those in which all warps of a role go ahead, or stay behind.
  static Schedule of_roles(uint64_t n) { return seeded(6 * n + 5); }
  [[nodiscard]] bool by_role() const { return seed % 6 == 5; }
};

struct Outcome {
  /// By name: elements in the order of memory; NaN where nothing was written.
  std::map<std::string, std::vector<double>> outputs;
  /// The same of a run on residues: nothing where nothing was written.
  std::map<std::string, std::vector<residue::Value>> residues;
  /// Each carries, in its data, the schedule that leads to it: "seed" and "choices".
  std::vector<Diagnostic> findings;
  int64_t steps = 0;
  Schedule schedule;  // replays this run
};

/// What all schedules of a launch show.
struct Exploration {
  int64_t runs = 0;
  bool complete = false;  // every schedule is one of those that ran, up to the order of steps that
                          // do not depend on each other
  Outcome last;           // the first run with findings, else the last one
};

struct Program;

class Simulator {
 public:
  /// TS0849 if the launch does not fit the kernel, or if an instruction has no meaning here.
  static Result<Simulator> make(const core::Kernel& kernel, const Launch& launch);

  /// A run ends at what makes its further steps meaningless, or after `most_findings`.
  [[nodiscard]] Outcome run(const Schedule& schedule = {}) const;
  /// Every order of the steps that communicate, until one has a finding or `most_runs` have run.
  [[nodiscard]] Exploration explore(int64_t most_runs) const;

  static constexpr int most_findings = 8;
  static constexpr int64_t most_steps = int64_t{1} << 24;

 private:
  std::shared_ptr<const Program> program_;
};

/// One run of a kernel. TS0849 as Simulator::make.
Result<Outcome> simulate(const core::Kernel& kernel, const Launch& launch,
                         const Schedule& schedule = {});

}  // namespace tessera::simulate
