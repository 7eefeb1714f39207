#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0880", "smt.no_solver", R"(The solver Z3 is not installed.)",
     R"(What index arithmetic leaves open is put to Z3, which lies in the Python package z3-solver. Its
     library is sought in the environment of $TESSERA_PYTHON, beside the installed package tessera, and in
     the .venv of a source tree. A Z3 of the system is not taken, because verdicts depend on its version.
     Without the solver such claims stay unknown; all else works.)",
     R"(Install z3-solver with pip into the environment that tessera is installed in, or set TESSERA_LIBZ3 to a
     libz3.so.)",
     R"(
python3 -m pip install z3-solver
)"},
    {"TS0881", "smt.wrong_solver", R"(The library of Z3 cannot be used.)",
     R"(The file was found, but the system cannot load it, it lacks functions of Z3's C interface, or it is
     older than 4.12.)",
     R"(Install z3-solver again with pip. If TESSERA_LIBZ3 is set, let it name the libz3.so of Z3 4.12 or later.)",
     R"(
error[TS0881]: /usr/lib/x86_64-linux-gnu/libz3.so is no Z3 that can be used
  expected: Z3 4.12 or later
  found:    Z3 4.8.12
)"},
};

}  // namespace

std::span<const Explanation> explained_smt() {
  return records;
}

}  // namespace tessera
