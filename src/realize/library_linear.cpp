// The vendor's GEMM through torch: mm, addmm, and addmm with an activation in cuBLASLt's epilogue.
#include <algorithm>

#include "realize/realize.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

inline constexpr Code not_linear{"TS0432", "realize.no_vendor_gemm"};

using Node = pointwise::Dag::Node;

struct Epilogue {
  int bias = -1;  // among the pattern's epilogue operands
  std::string activation = "none";
};

bool is_row_vector(const rules::TensorView& v) {
  return v.strides.size() == 3 && v.strides[0] == 0 && v.strides[1] == 0 && v.strides[2] == 1;
}

// The operand that is added to the accumulator at node `at`, when that is all that happens there.
std::optional<int> bias_at(const rules::GemmBody& body, int at) {
  const Node& n = body.epilogue.nodes.at(static_cast<std::size_t>(at));
  if (n.kind != Node::Kind::call || n.function->name != "add") return std::nullopt;
  const Node& a = body.epilogue.nodes.at(static_cast<std::size_t>(n.arguments[0]));
  const Node& b = body.epilogue.nodes.at(static_cast<std::size_t>(n.arguments[1]));
  if (a.kind != Node::Kind::operand || b.kind != Node::Kind::operand) return std::nullopt;
  const int other = a.operand == 0 ? b.operand : b.operand == 0 ? a.operand : 0;
  if (other < 1 || !is_row_vector(body.operands.at(static_cast<std::size_t>(other - 1))))
    return std::nullopt;
  return other - 1;
}

std::optional<Epilogue> epilogue_of(const rules::GemmBody& body) {
  const pointwise::Dag& dag = body.epilogue;
  if (dag.empty()) return Epilogue{};
  if (dag.results.size() != 1) return std::nullopt;
  int at = dag.results[0];
  Epilogue out;
  const Node* n = &dag.nodes.at(static_cast<std::size_t>(at));
  if (n->kind == Node::Kind::operand) return n->operand == 0 ? std::optional(out) : std::nullopt;
  if (n->kind == Node::Kind::call &&
      (n->function->name == "relu" || n->function->name == "gelu_tanh")) {
    out.activation = std::string(n->function->name);
    at = n->arguments[0];
  }
  const auto bias = bias_at(body, at);
  if (!bias) return std::nullopt;
  out.bias = *bias;
  return out;
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(not_linear, "the pattern has no gemm body"));
  if (body->batch != 1) return error(fail(not_linear, "addmm takes no batch"));
  if (body->outputs.size() != 1) return error(fail(not_linear, "addmm has one result"));
  if (!body->parts.empty())
    return error(fail(not_linear, "addmm has one epilogue for all columns, not one a part"));
  const auto epilogue = epilogue_of(*body);
  if (!epilogue) {
    return error(fail(not_linear, "the epilogue is more than a bias and an activation: {}",
                      body->epilogue.to_string()));
  }
  if (epilogue->activation != "none" && arch.device != "cuda") {
    return error(fail(not_linear, "the host's addmm has no activation"));
  }
  const DType out = body->outputs[0].dtype;
  if (body->a.dtype != out || body->b.dtype != out) {
    return error(fail(not_linear, "addmm computes in one element type, not {} x {} to {}",
                      name_of(body->a.dtype), name_of(body->b.dtype), name_of(out)));
  }
  Candidate c;
  c.realizer = "library_linear";
  c.kind = Kind::library;
  c.config = {{"backend", arch.device == "cuda" ? "cublaslt" : "blas"},
              {"activation", epilogue->activation}};
  c.call =
      LibraryCall{.function = "linear",
                  .arguments = {{"bias", epilogue->bias < 0 ? Json(nullptr) : Json(epilogue->bias)},
                                {"activation", epilogue->activation}}};
  return Space{.candidates = {std::move(c)}, .pruned = {}};
}

}  // namespace

extern const Realizer library_linear = {
    .name = "library_linear",
    .doc =
        "the vendor's GEMM through torch (cuBLAS; the host's BLAS), bias and activation in its "
        "epilogue",
    .kind = Kind::library,
    .rule = "gemm",
    .realize = realize,
};

}  // namespace tessera::realize
