"""The engine calls Z3 through declarations of its own (src/smt/functions.inc), because it loads the library at run time. Here
the compiler compares them with the header of the installed z3-solver."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The header's enumerations are int in the table.
PROGRAM = r"""
#include <type_traits>
#include <z3.h>
#include "smt/functions.h"
using namespace tessera::smt;

template <class T> struct Plain { using type = T; };
template <class T> requires std::is_enum_v<T> struct Plain<T> { using type = int; static_assert(sizeof(T) == sizeof(int)); };
template <class T> struct Plain<T*> { using type = typename Plain<T>::type*; };
template <class T> struct Plain<T* const> { using type = typename Plain<T>::type* const; };
template <class T> requires (!std::is_enum_v<T>) struct Plain<const T> { using type = const T; };
template <class R, class... A> struct Plain<R(A...)> { using type = typename Plain<R>::type(typename Plain<A>::type...); };

#define TESSERA_Z3(result, name, ...) \
  static_assert(std::is_same_v<Plain<decltype(&Z3_##name)>::type, result (*)(__VA_ARGS__)>, #name);
#include "smt/functions.inc"
#undef TESSERA_Z3
static_assert(Z3_L_TRUE == 1 && Z3_L_FALSE == -1 && Z3_OK == 0);
"""


def compiled(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    found = importlib.util.find_spec("z3")
    assert found is not None and found.submodule_search_locations, "z3-solver is not installed: ./dev setup"
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler, "no C++ compiler"
    source = folder / "functions.cpp"
    source.write_text(program)
    header = Path(found.submodule_search_locations[0]) / "include"
    return subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", f"-I{header}", f"-I{ROOT / 'src'}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_declarations_are_those_of_the_header(tmp_path):
    done = compiled(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr


def test_another_type_is_seen(tmp_path):
    """The comparison is none that everything passes."""
    line = '#include "smt/functions.inc"\n'
    assert line in PROGRAM
    wrong = "TESSERA_Z3(bool, mk_not, Z3Context, Expr)\n"
    done = compiled(PROGRAM.replace(line, wrong), tmp_path)
    assert done.returncode != 0
    assert "mk_not" in done.stderr
