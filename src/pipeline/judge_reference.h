// The reference of a judgement: its file runs in a sandbox and gives a graph with its state; the
// judge's process holds them, draws inputs and compares.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "pipeline/judge.h"
#include "pipeline/judge_processes.h"

namespace tessera::pipeline {

/// fp64 references on a slow host, compilers of peers.
inline constexpr std::chrono::seconds judge_limit{900};

struct Reference {
  std::unique_ptr<Occupant> judge;  // judge_process, with the reference open
  std::array<int64_t, 2> seeds{};   // of the two builds
  Json made;                        // of reference_process: "init", "form", "training", ...
  Json opened;                      // of the judge: "outputs", "trials", "calls", "aliases"
  std::string summary, arch, precision;
  double least_ms = 0;  // no run of such a module can be faster
};

/// A sandbox for files that were given.
Room room_for(const Judging& given, const std::string& log, std::vector<std::string> readable);
/// The file in a folder where a confined process may read it.
std::filesystem::path copied(const std::string& file, const std::filesystem::path& folder);

/// Errors are of the reference's file and of the environment.
Result<Reference> make_reference(const Judging& given, const Options& options);

}  // namespace tessera::pipeline
