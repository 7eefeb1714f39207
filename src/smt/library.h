// libz3, found and loaded at its first use. Only checking needs it, so a program without it works.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "diag/result.h"

#include "smt/functions.h"

namespace tessera::smt {

inline constexpr Code no_solver{"TS0880", "smt.no_solver"};
inline constexpr Code wrong_solver{"TS0881", "smt.wrong_solver"};

/// What a search for libz3 starts from. Empty fields are not searched.
struct Surroundings {
  std::filesystem::path library;                // $TESSERA_LIBZ3: this file and no other
  std::vector<std::filesystem::path> packages;  // python_packages() of $TESSERA_PYTHON
  std::filesystem::path executable;             // the folder of the program
};
Surroundings surroundings();

/// The files that are tried, in order: of the package z3-solver among Python's, in the
/// folder that the program's own package lies in, in the virtual environment of a source tree
/// around the program. The system's libz3 is not among them: which verdicts are reached depends on
/// the version, which requirements.txt chooses.
std::vector<std::filesystem::path> candidates(const Surroundings& from);

struct Library {
  Functions functions;
  std::filesystem::path file;
  std::string version;  // "5.4.1"
};

/// The first candidate that exists. TS0880 if none does; TS0881 if it cannot be loaded, lacks a
/// function or is older than 4.12.
Result<Library> load(const std::vector<std::filesystem::path>& files);

/// The library of this process, by `surroundings()` at the first call; then always the same answer.
const Result<Library>& library();

}  // namespace tessera::smt
