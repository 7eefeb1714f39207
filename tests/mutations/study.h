// What the checker says of a kernel with one edit, and whether that is right.
#pragma once

#include <set>

#include "check/check.h"
#include "mutations/subjects.h"
#include "simulate/simulate.h"

namespace tessera::mutations {

/// What became of one mutant.
struct MutantRow {
  std::string name;  // of the operator
  int site = 0;
  std::string edit;
  bool synchronization = false;
  /// "refused" (the verifier says that the machine cannot run it), "proved", "refuted", "unknown"
  /// or "unsupported".
  std::string verdict;
  double seconds = 0;  // of one core, for verifying and checking
  /// Of refuted: a name of replay::Shown, the best of its diagnostics.
  std::string replayed;
  /// "line": a diagnostic points to an edited line; "pair": to an access of what the edited op
  /// orders or touches; "": neither.
  std::string named;
  /// Of what is not caught: "equivalent" (no run of the oracle differs), or "missed" with what the
  /// oracle saw.
  std::string oracle;
  std::string detail;     // the checker's first reason, or the oracle's fault
  bool complete = false;  // the oracle tried all schedules of its smallest launch
  int64_t runs = 0;       // of the oracle
};
Json to_json(const MutantRow& row);

/// Decides whether a mutant is the original: runs at trips 0, 1, S and S + 1 of every loop and one
/// to three turns of outer ones, under seeded schedules; nothing is found and results are those of
/// the original, bit by bit.
class Oracle {
 public:
  struct Effort {
    int64_t schedules = 1000;  // of all launches together
    int64_t explored = 300;    // runs of the exhaustive mode, of synchronization
    int launches = 100;        // those with the fewest steps
  };
  struct Answer {
    std::string fault;  // empty: equivalent, as far as was tried
    bool complete = false;
    int64_t runs = 0;
  };
  Oracle(const core::Kernel& original, const std::vector<core::Term>& sizes, Effort effort);
  [[nodiscard]] Answer ask(const core::Kernel& mutant, bool synchronization) const;

 private:
  struct Case {
    simulate::Launch launch;
    std::map<std::string, std::vector<double>> outputs;  // of the original
    int64_t steps = 0;                                   // of the original's run
  };
  std::vector<Case> cases_;
  Effort effort_;
};

class Study {
 public:
  Study(const core::Kernel& original, Oracle::Effort effort);
  MutantRow judge(const core::testing::Mutant& mutant) const;
  /// Of the original: why it cannot be studied; empty: it is proved, and the oracle's runs are
  /// clean.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  /// Printed and read again, so that findings have lines of the core's own text.
  static core::Kernel printed(const core::Kernel& k);
  std::string named(const core::Kernel& mutant, const std::vector<Diagnostic>& all) const;

  core::Kernel original_;
  std::optional<check::Means> means_;
  std::optional<Oracle> oracle_;
  std::string why_not_;
};

/// The row of a right kernel: its verdict and the seconds; "detail" has why it is not proved.
MutantRow judge_correct(const std::string& name, const core::Kernel& kernel);

/// Lines of the mutant's text that were edited, and storages that an edited op, or one that is
/// gone, touches; of an op without storages, those of its neighbours.
struct Edited {
  std::set<int> lines;
  std::set<std::string> storages;
};
Edited edited(const core::Kernel& original, const core::Kernel& mutant);
/// Storages that an op, or one within it, names.
std::set<std::string> storages_of(const core::Kernel& k, const core::Op& op);

}  // namespace tessera::mutations
