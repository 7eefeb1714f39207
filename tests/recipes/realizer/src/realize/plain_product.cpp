// A matrix product and its epilogue as three loops, for the host: one batch, float32.
#include "base/text.h"
#include "realize/realize.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

inline constexpr Code unsupported{"TS0499", "realize.plain_product_unsupported"};

constexpr std::string_view text = R"(#include "tessera/kernel.h"
$PRELUDE
extern "C" {
TESSERA_KERNEL_API const char* tessera_describe(void) {
  return R"json({"abi":1,"name":"plain_product","ints":[],"tensors":[],"arch":"host"})json";
}
TESSERA_KERNEL_API int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
TESSERA_KERNEL_API const char* tessera_last_error(void) { return ""; }
TESSERA_KERNEL_API int tessera_run(const tessera_launch* launch, void*, void*) {
  for (int64_t m = 0; m < $M; ++m)
    for (int64_t n = 0; n < $N; ++n) {
      float acc = 0;
      for (int64_t k = 0; k < $K; ++k) acc += $A * $B;
      $EPILOGUE
    }
  return 0;
}
}
)";

/// The element of a view at (m, n), (m, k) or (n, k).
std::string element(const rules::TensorView& v, const char* row, const char* column) {
  return fmt::format("static_cast<float*>(launch->tensors[{}])[{} + {} * {} + {} * {}]", v.tensor,
                     v.offset, row, v.strides[1], column, v.strides[2]);
}

std::string epilogue(const rules::GemmBody& body) {
  std::vector<std::string> operands{"acc"};
  for (const rules::TensorView& v : body.operands) operands.push_back(element(v, "m", "n"));
  std::vector<std::string> results;
  std::string code = pointwise::emit(body.epilogue, operands, "e", &results);
  for (std::size_t i = 0; i < results.size(); ++i)
    code += fmt::format("{} = {};\n", element(body.outputs[i], "m", "n"), results[i]);
  return code;
}

Status check(const rules::GemmBody& body, const arch::Arch& arch) {
  if (arch.device != "cpu") return error(fail(unsupported, "it is C++ for the host"));
  if (body.batch != 1 || !body.parts.empty())
    return error(fail(unsupported, "more than one batch, or columns in parts"));
  std::vector<rules::TensorView> views = body.operands;
  views.insert(views.end(), body.outputs.begin(), body.outputs.end());
  views.insert(views.end(), {body.a, body.b});
  for (const rules::TensorView& v : views)
    if (v.dtype != DType::float32) return error(fail(unsupported, "it takes float32 alone"));
  return {};
}

Result<Space> realize(const rules::Pattern& pattern, const graph::Graph&, const arch::Arch& arch) {
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  if (body == nullptr) return error(fail(unsupported, "the pattern has no gemm body"));
  TESSERA_CHECK(check(*body, arch));
  std::string source(text);
  for (const auto& [mark, value] : std::vector<std::pair<std::string, std::string>>{
           {"$PRELUDE", pointwise::prelude(pointwise::Target::host)},
           {"$M", std::to_string(body->m)},
           {"$N", std::to_string(body->n)},
           {"$K", std::to_string(body->k)},
           {"$A", element(body->a, "m", "k")},
           {"$B", element(body->b, "n", "k")},
           {"$EPILOGUE", epilogue(*body)}})
    source.replace(source.find(mark), mark.size(), value);
  Candidate c{.realizer = "plain_product", .config = {{"loops", 3}}};
  c.source = toolchain::Source{.name = "plain_product",
                               .language = toolchain::Language::cxx,
                               .text = source,
                               .arch = std::string(arch.name),
                               .flags = {"-O3", "-fno-math-errno"}};
  c.launches = {Launch{}};
  return Space{.candidates = {std::move(c)}, .pruned = {}};
}

}  // namespace

extern const Realizer plain_product = {
    .name = "plain_product",
    .doc = "a matrix product as three loops, for the host",
    .kind = Kind::synthesized,
    .rule = "gemm",
    .realize = realize,
};

}  // namespace tessera::realize
