#include "realize/common/cutlass_text.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>

#include "base/text.h"
#include "realize/common/cutlass_epilogue_text.h"
#include "realize/common/cutlass_parts_text.h"
#include "realize/common/cutlass_templates.h"

#include "pointwise/pointwise.h"

namespace tessera::realize {
namespace {

using namespace templates;

std::string schedule_name(const Sm90Config& c) {
  return fmt::format("Kernel{}TmaWarpSpecialized{}{}", c.pointers ? "PtrArray" : "",
                     c.schedule == Schedule::cooperative ? "Cooperative" : "Pingpong",
                     c.fast_accum ? "FP8FastAccum" : "");
}

std::string epilogue_schedule(const Sm90Config& c) {
  if (c.schedule == Schedule::cooperative) {
    return c.pointers ? "PtrArrayTmaWarpSpecializedCooperative" : "TmaWarpSpecializedCooperative";
  }
  return c.pointers ? "PtrArrayTmaWarpSpecializedPingpong" : "TmaWarpSpecialized";
}

std::string stage_count(const Sm90Config& c) {
  if (c.stages > 0) return fmt::format("cutlass::gemm::collective::StageCount<{}>", c.stages);
  return "cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename "
         "BuiltEpilogue::SharedStorage))>";
}

std::string stream_k_arguments(const Sm90Config& c) {
  if (c.scheduler != Scheduler::stream_k) return "";
  return R"(  using Decomposition = decltype(r.scheduler.decomposition_mode);
  r.scheduler.splits = static_cast<int>(v[6]);
  r.scheduler.decomposition_mode = v[7] == 1   ? Decomposition::DataParallel
                                   : v[7] == 2 ? Decomposition::SplitK
                                   : v[7] == 3 ? Decomposition::StreamK
                                               : Decomposition::Heuristic;
)";
}

void add_matrix(const Matrix& m, std::vector<int64_t>& out) {
  out.insert(out.end(), {m.tensor, m.offset, m.ld, m.batch});
}

}  // namespace

std::string fill(std::string text, const Values& values) {
  for (const auto& [key, value] : values)
    text = replace_all(std::move(text), "$" + key + "$", value);
  return text;
}

std::string cutlass_type(DType t) {
  switch (t) {
    case DType::bfloat16:
      return "cutlass::bfloat16_t";
    case DType::float16:
      return "cutlass::half_t";
    case DType::float8_e4m3fn:
      return "cutlass::float_e4m3_t";
    case DType::float8_e5m2:
      return "cutlass::float_e5m2_t";
    default:
      return "float";
  }
}

std::vector<std::string> product_ints(const GemmProblem& p, std::string_view prefix) {
  std::vector<std::string> names;
  for (const char* n : {"m", "n", "k", "l", "raster", "swizzle", "splits", "decomposition"}) {
    names.push_back(fmt::format("{}{}", prefix, n));
  }
  std::vector<std::string> matrices = {"a", "b", "d"};
  for (std::size_t i = 0; i < p.leaves.size(); ++i) matrices.push_back(fmt::format("x{}", i + 1));
  for (std::size_t r = 1; r < p.outputs.size(); ++r) matrices.push_back(result_name("d", r));
  for (const std::string& m : matrices) {
    for (const char* field : {"tensor", "offset", "ld", "batch"}) {
      names.push_back(fmt::format("{}{}_{}", prefix, m, field));
    }
  }
  for (std::string& name : part_ints(p, prefix)) names.push_back(std::move(name));
  if (p.inner > 0) {
    for (const char* n : {"inner", "a_outer", "b_outer", "d_outer", "source_outer"})
      names.push_back(fmt::format("{}{}", prefix, n));
  }
  return names;
}

std::vector<int64_t> product_values(const GemmProblem& p, const Knobs& knobs) {
  std::vector<int64_t> v = {p.m,          p.n,           p.k,          p.l,
                            knobs.raster, knobs.swizzle, knobs.splits, knobs.decomposition};
  add_matrix(p.a, v);
  add_matrix(p.b, v);
  add_matrix(p.outputs.front(), v);
  for (const Leaf& x : p.leaves) add_matrix(x.matrix, v);
  for (std::size_t r = 1; r < p.outputs.size(); ++r) add_matrix(p.outputs[r], v);
  for (const int64_t value : part_values(p)) v.push_back(value);
  if (p.inner > 0) {
    const int source = p.source_leaf();
    const int64_t source_outer =
        source >= 0 ? p.leaves[static_cast<std::size_t>(source)].matrix.outer : 0;
    v.insert(v.end(), {p.inner, p.a.outer, p.b.outer, p.outputs.front().outer, source_outer});
  }
  return v;
}

namespace {

/// The places of the template that depend on the mainloop; their texts hold places of their own, so
/// they come first.
Values mainloop_values(const GemmProblem& p, const Sm90Config& c) {
  const auto stride = [](bool k_contiguous) {
    return k_contiguous ? "KMajorStride" : "RowMajorStride";
  };
  const auto row = [](const Matrix& m, const char* name) {
    return m.columns_contiguous ? fmt::format("{}.ld", name) : std::string("1");
  };
  const auto along_k = [](const Matrix& m, const char* name) {
    return m.columns_contiguous ? std::string("1") : fmt::format("{}.ld", name);
  };
  const bool packed = c.mainloop == Mainloop::split_packed;
  const bool wide = wide_rows(p, c);
  return {
      {"MAINLOOP", c.paired                               ? paired_mainloop
                   : c.interleaved                        ? interleaved_mainloop
                   : packed                               ? packed_mainloop
                   : c.mainloop == Mainloop::split_inline ? inline_mainloop
                                                          : stock_mainloop},
      {"WIDE", wide ? "typename tessera::WideRows<" : ""},
      {"END_WIDE", wide ? ">::CollectiveOp" : ""},
      {"PREPARE", packed       ? prepare_packed
                  : c.pointers ? prepare_pointers
                               : nothing_to_prepare},
      {"OPERANDS", c.paired        ? paired_operands
                   : packed        ? packed_operands
                   : c.pointers    ? pointer_operands
                   : c.interleaved ? interleaved_operands
                                   : plain_operands},
      {"MODE", c.pointers ? "kArray" : "kGemm"},
      {"POINTER_D", c.pointers ? "pointer_array<ElementD>(area, 2, v[3])" : "d.as<ElementD>()"},
      {"PROBLEM", c.pointers ? "cutlass::gemm::ArrayProblemShape<Shape<int, int, int, int>>"
                             : "Shape<int, $EXTENT_N$, $EXTENT_K$, int>"},
      {"ACCUMULATOR", c.paired ? "tessera::AccumulatorFetch<0>" : "fusion::Sm90AccFetch"},
      {"EXTENT_K", c.interleaved ? "Shape<int, int>" : "int"},
      {"K", c.interleaved ? fmt::format("make_shape({0}, static_cast<int>(v[2] / {0}))", c.tile_k)
                          : "static_cast<int>(v[2])"},
      {"EXTENT_N", c.paired ? "Shape<int, int>" : "int"},
      {"N", c.paired ? "make_shape(static_cast<int>(v[1]), 2)" : "static_cast<int>(v[1])"},
      {"STRIDE_A", stride(p.a.columns_contiguous)},
      {"STRIDE_B", stride(p.b.columns_contiguous)},
      {"A_ROW", row(p.a, "a")},
      {"A_K", along_k(p.a, "a")},
      {"B_ROW", row(p.b, "b")},
      {"B_K", along_k(p.b, "b")},
      {"STOCK_EPILOGUE", c.store_buffers > 0 ? "StockEpilogue" : "BuiltEpilogue"},
      {"RESTAGED",
       c.store_buffers > 0
           ? fmt::format("using BuiltEpilogue = typename tessera::Restaged<StockEpilogue, {}>"
                         "::CollectiveOp;\n",
                         c.store_buffers)
           : ""},
      {"EPILOGUE_TILE",
       c.epilogue_n == 0
           ? "cutlass::epilogue::collective::EpilogueTileAuto"
           : fmt::format("Shape<_{}, _{}>", c.schedule == Schedule::cooperative ? 128 : 64,
                         c.epilogue_n)}};
}

}  // namespace

std::string sm90_product(const GemmProblem& p, const Sm90Config& c, std::string_view name,
                         int first_int) {
  const Matrix& d = p.outputs.front();
  Values values = mainloop_values(p, c);
  const Values rest = {
      {"TYPE_A", cutlass_type(p.a.dtype)},
      {"TYPE_B", cutlass_type(p.b.dtype)},
      {"TYPE_D", cutlass_type(d.dtype)},
      {"LAYOUT_A", layout_name(p.a.columns_contiguous)},
      // B is stored as [n, k]: contiguous in k is a column-major k x n matrix.
      {"LAYOUT_B", layout_name(!p.b.columns_contiguous)},
      {"LAYOUT_D", layout_name(d.columns_contiguous)},
      {"ALIGN_AB", fmt::format("{}", 16 / size_of(p.a.dtype))},
      {"ALIGN_D", fmt::format("{}", 16 / size_of(d.dtype))},
      {"TILE_M", fmt::format("{}", c.tile_m)},
      {"TILE_N", fmt::format("{}", c.output_n())},
      {"TILES_N", fmt::format("{}", c.tile_n)},
      {"TILE_K", fmt::format("{}", c.tile_k)},
      {"CLUSTER_M", fmt::format("{}", c.cluster_m)},
      {"CLUSTER_N", fmt::format("{}", c.cluster_n)},
      {"EPILOGUE_SCHEDULE", epilogue_schedule(c)},
      {"SCHEDULE", schedule_name(c)},
      {"STAGES", stage_count(c)},
      {"SCHEDULER", c.pointers                           ? "void"
                    : c.scheduler == Scheduler::stream_k ? "cutlass::gemm::StreamKScheduler"
                                                         : "cutlass::gemm::PersistentScheduler"},
      {"STREAM_K", stream_k_arguments(c)},
      {"FIRST", fmt::format("{}", first_int)},
      // A part of the mangled name that no other kernel of the library has.
      {"ENTRY", fmt::format("{}{}5Fused", name.size(), name)},
      {"NAME", std::string(name)}};
  values.insert(values.end(), rest.begin(), rest.end());
  fill_epilogue(p, c.pointers, first_int, values);
  fill_parts(p, first_int, values);
  return fill(product_template, values);
}

std::string library(const LibraryText& t) {
  std::string workspaces, runs, prepared;
  for (const std::string& name : t.products) {
    workspaces += fill(workspace_of_product, {{"NAME", name}});
    prepared += fill(prepared_of_product, {{"NAME", name}});
    runs += fill(run_of_product, {{"NAME", name}});
  }
  const Json describe = {{"abi", 1}, {"name", t.name}, {"arch", t.arch}, {"ints", t.ints}};
  return fill(library_template,
              {{"TITLE", t.name},
               {"SIDES", t.apart ? "#define TESSERA_SIDES_APART 1\n" : ""},
               {"INCLUDES", t.includes},
               {"PRELUDE", pointwise::prelude(pointwise::Target::cuda)},
               {"BODY", t.body},
               {"INT_COUNT", fmt::format("{}", t.ints.size())},
               {"WORKSPACES", workspaces},
               {"RUNS", prepared + "  void* const rest = area + prepared;\n" + runs},
               {"TAIL", t.tail},
               {"DESCRIBE", describe.dump()}});
}

std::vector<std::string> cutlass_flags(std::initializer_list<int64_t> columns) {
  std::vector<std::string> flags = {"-DNDEBUG", "--expt-relaxed-constexpr", "-diag-suppress=20012"};
  const auto narrow = [](int64_t n) {
    constexpr std::array<int64_t, 8> usual = {256, 192, 128, 96, 64, 32, 16, 8};
    int64_t widest = 256;
    while (n % widest != 0 && widest > 8) widest -= 8;
    return std::find(usual.begin(), usual.end(), widest) == usual.end();
  };
  if (std::any_of(columns.begin(), columns.end(), narrow))
    flags.emplace_back("-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED");
  return flags;
}

}  // namespace tessera::realize
