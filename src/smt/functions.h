// The functions of Z3's C interface that are used, as types: libz3 is loaded at run time, so
// neither the build nor the program needs it. python/tests/test_z3_functions.py compares the table
// (functions.inc) with Z3's own header.
//
// Enumerations of the header are `int` here. Contexts are those of Z3_mk_context, which keep every
// expression until they end; solvers, models, parameters and statistics are counted.
#pragma once

#include <cstdint>

// Z3's own names of its opaque types.
// NOLINTBEGIN(bugprone-reserved-identifier)
struct _Z3_config;
struct _Z3_context;
struct _Z3_symbol;
struct _Z3_sort;
struct _Z3_ast;
struct _Z3_func_decl;
struct _Z3_solver;
struct _Z3_params;
struct _Z3_model;
struct _Z3_stats;
// NOLINTEND(bugprone-reserved-identifier)

namespace tessera::smt {

using Z3Config = _Z3_config*;
using Z3Context = _Z3_context*;
using Z3Symbol = _Z3_symbol*;
using Sort = _Z3_sort*;
using Expr = _Z3_ast*;
using Z3Function = _Z3_func_decl*;
using Z3Solver = _Z3_solver*;
using Z3Params = _Z3_params*;
using Z3Model = _Z3_model*;
using Z3Stats = _Z3_stats*;
using Z3Handler = void (*)(Z3Context, int);

/// Z3's functions by their names without `Z3_`.
struct Functions {
#define TESSERA_Z3(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
#include "smt/functions.inc"
#undef TESSERA_Z3
};

}  // namespace tessera::smt
