// The vendor's kernels through cublasLt: the heuristics' top candidates by index, a run-time knob.
// Epilogues that it has: scale, bias along n, ReLU or tanh-GELU, and one full operand added before
// the activation.
#include <cmath>

#include "base/text.h"
#include "realize/common/cutlass_text.h"
#include "realize/realize.h"

namespace tessera::realize {
namespace {

constexpr int algorithms = 8;

/// act(alpha * acc + bias + source).
struct LtEpilogue {
  std::string activation;  // "", "RELU", "GELU"
  double alpha = 1;
  int bias = -1;    // leaf
  int source = -1;  // leaf
};

using Node = pointwise::Dag::Node;

const Node& node_at(const pointwise::Dag& dag, int i) {
  return dag.nodes[static_cast<std::size_t>(i)];
}

/// The leaf that a node is, or -1.
int leaf_at(const pointwise::Dag& dag, int i) {
  const Node& n = node_at(dag, i);
  return n.kind == Node::Kind::operand && n.operand > 0 ? n.operand - 1 : -1;
}

bool take_leaf(const GemmProblem& p, int leaf, LtEpilogue& e) {
  const Leaf& x = p.leaves[static_cast<std::size_t>(leaf)];
  const Matrix& d = p.outputs.front();
  if (x.matrix.dtype != d.dtype) return false;
  if (x.kind == Leaf::Kind::row && x.matrix.batch == 0 && e.bias < 0) {
    e.bias = leaf;
    return true;
  }
  if (x.kind == Leaf::Kind::full && x.matrix.columns_contiguous == d.columns_contiguous &&
      e.source < 0) {
    e.source = leaf;
    return true;
  }
  return false;
}

/// Peels activation, additions and a scale from the result down to the accumulator.
std::optional<LtEpilogue> match(const GemmProblem& p) {
  const pointwise::Dag& dag = p.epilogue;
  LtEpilogue e;
  int at = dag.results.front();
  const auto name = [&] {
    const Node& n = node_at(dag, at);
    return n.kind == Node::Kind::call ? n.function->name : std::string_view();
  };
  if (name() == "gelu_tanh" || name() == "relu") {
    e.activation = name() == "relu" ? "RELU" : "GELU";
    at = node_at(dag, at).arguments[0];
  }
  while (name() == "add") {
    const auto& args = node_at(dag, at).arguments;
    const int which = leaf_at(dag, args[1]) >= 0 ? 1 : 0;
    const int leaf = leaf_at(dag, args[static_cast<std::size_t>(which)]);
    if (leaf < 0 || !take_leaf(p, leaf, e)) return std::nullopt;
    at = args[static_cast<std::size_t>(1 - which)];
  }
  if (name() == "mul") {
    const auto& args = node_at(dag, at).arguments;
    const int which = node_at(dag, args[1]).kind == Node::Kind::constant ? 1 : 0;
    const Node& scale = node_at(dag, args[static_cast<std::size_t>(which)]);
    if (scale.kind != Node::Kind::constant) return std::nullopt;
    e.alpha = scale.constant;
    at = args[static_cast<std::size_t>(1 - which)];
  }
  const Node& last = node_at(dag, at);
  if (last.kind != Node::Kind::operand || last.operand != 0) return std::nullopt;
  return e;
}

std::string lt_type(DType t) {
  switch (t) {
    case DType::bfloat16:
      return "CUDA_R_16BF";
    case DType::float16:
      return "CUDA_R_16F";
    case DType::float8_e4m3fn:
      return "CUDA_R_8F_E4M3";
    default:
      return "CUDA_R_32F";
  }
}

std::string text_of(const GemmProblem& p, const LtEpilogue& e, const std::vector<std::string>& ints,
                    std::string_view arch) {
  std::string epilogue = "CUBLASLT_EPILOGUE_DEFAULT";
  if (!e.activation.empty() || e.bias >= 0) {
    epilogue = "CUBLASLT_EPILOGUE_" + e.activation +
               (e.activation.empty() || e.bias < 0 ? "" : "_") + (e.bias >= 0 ? "BIAS" : "");
  }
  const Matrix& d = p.outputs.front();
  const Json describe = {{"abi", 1}, {"name", "cublaslt"}, {"arch", arch}, {"ints", ints}};
  return fill(R"CU(// cublaslt: generated; the heuristics' candidates for one kind of product.
#define TESSERA_HOST_ONLY 1
#include "tessera_cutlass/cublaslt.hpp"

namespace {
constexpr tessera_cutlass::LtKind kind = {
    $TYPE_AB$, $TYPE_D$, $COMPUTE$, $A_K$, $B_K$, $EPILOGUE$, $ALPHA$f, $BIAS$, $SOURCE$, $INT_COUNT$};
}

TESSERA_EXPORT const char* tessera_describe(void) { return R"json($DESCRIBE$)json"; }
TESSERA_EXPORT const char* tessera_last_error(void) { return tessera_cutlass::last_error(); }
TESSERA_EXPORT int64_t tessera_workspace_size(const tessera_launch* launch) {
  return tessera_cutlass::lt_workspace(kind, launch);
}
TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void* workspace, void* stream) {
  return tessera_cutlass::lt_run(kind, launch, workspace, static_cast<cudaStream_t>(stream));
}
)CU",
              {{"TYPE_AB", lt_type(p.a.dtype)},
               {"TYPE_D", lt_type(d.dtype)},
               {"COMPUTE", p.precision == Precision::tf32 ? "CUBLAS_COMPUTE_32F_FAST_TF32"
                                                          : "CUBLAS_COMPUTE_32F"},
               {"A_K", p.a.columns_contiguous ? "true" : "false"},
               {"B_K", p.b.columns_contiguous ? "true" : "false"},
               {"EPILOGUE", epilogue},
               {"ALPHA", fmt::format("{:#.9g}", e.alpha)},
               {"BIAS", fmt::format("{}", e.bias)},
               {"SOURCE", fmt::format("{}", e.source)},
               {"INT_COUNT", fmt::format("{}", ints.size())},
               {"DESCRIBE", describe.dump()}});
}

/// cublasLt's fp8 products: e4m3, both operands along k, extents in 16s; scales that are not given
/// are 1. An 8-bit result has no epilogue operand of its own type.
Status check_fp8(const GemmProblem& p, const LtEpilogue& e) {
  if (p.a.dtype != DType::float8_e4m3fn) {
    return error(fail(unsupported_gemm, "cublasLt has no products of two {}", name_of(p.a.dtype))
                     .expect("float8_e4m3fn"));
  }
  if (!p.a.columns_contiguous || !p.b.columns_contiguous) {
    return error(fail(unsupported_gemm, "fp8 needs both operands contiguous in k"));
  }
  if (p.m % 16 != 0 || p.n % 16 != 0 || p.k % 16 != 0) {
    return error(
        fail(unsupported_gemm, "fp8 of {} x {} x {}", p.m, p.n, p.k).expect("multiples of 16"));
  }
  if (size_of(p.outputs.front().dtype) == 1 && (e.bias >= 0 || e.source >= 0)) {
    return error(fail(unsupported_gemm, "an fp8 result with operands in the epilogue"));
  }
  return {};
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported_gemm, "not a gemm pattern"));
  if (!arch.has("mma_sync")) return error(fail(unsupported_gemm, "{} has no cublasLt", arch.name));
  TESSERA_TRY(p, gemm_problem(*body, pattern.precision));
  if (p.outputs.size() != 1)
    return error(fail(unsupported_gemm, "{} results", p.outputs.size()).expect("one"));
  if (!p.outputs.front().columns_contiguous) p = exchange(p);
  const auto e = match(p);
  if (!e) {
    return error(
        fail(unsupported_gemm, "cublasLt has no such epilogue: {}", p.epilogue.to_string())
            .expect(
                "act(scale * product + bias[n] + one full operand), act none, relu or gelu_tanh"));
  }
  const bool fp8 = size_of(p.a.dtype) == 1;
  if (fp8) TESSERA_CHECK(check_fp8(p, *e));
  std::vector<std::string> ints = product_ints(p, "");
  ints[6] = "fast_accum";  // in the places of CUTLASS' splits and decomposition
  ints[7] = "algo";
  Candidate c;
  c.realizer = "cublaslt";
  c.kind = Kind::library;
  c.config = {{"library", "cublasLt"}, {"activation", e->activation}, {"transposed", p.exchanged}};
  toolchain::Source source;
  source.name = "cublaslt";
  source.text = text_of(p, *e, ints, arch.name);
  source.arch = arch.name;
  source.links = {"cublasLt"};
  c.source = std::move(source);
  for (int fast = 0; fast <= (fp8 ? 1 : 0); ++fast) {
    for (int algo = 0; algo < algorithms; ++algo) {
      Launch launch;
      launch.knobs = {{"algo", algo}};
      if (fp8) launch.knobs["fast_accum"] = fast == 1;
      launch.ints = product_values(p, Knobs{});
      launch.ints[6] = fast;
      launch.ints[7] = algo;
      c.launches.push_back(std::move(launch));
    }
  }
  Space space;
  space.candidates.push_back(std::move(c));
  return space;
}

}  // namespace

extern const Realizer cublaslt{"cublaslt", "cublasLt with its heuristics' top candidates",
                               Kind::library, "gemm", realize};

}  // namespace tessera::realize
