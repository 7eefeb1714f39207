#include "realize/common/wgmma_attention_text.h"

#include "base/text.h"
#include "realize/common/cutlass_text.h"

namespace tessera::realize {
namespace {

/// A function `name` around one wgmma of 64 rows, 16 terms and these columns; fp32 accumulators.
/// Operand B is a descriptor; so is A, both K-major, or A is in registers and B is not K-major.
std::string instruction(std::string_view name, std::string_view element, int columns,
                        bool from_registers) {
  const int registers = columns / 2;
  std::string places, accumulators;
  for (int i = 0; i < registers; ++i) {
    places += fmt::format("{}%{}", i == 0 ? "" : i % 16 == 0 ? ",\"\n      \"" : ",", i);
    accumulators += fmt::format("{}\"+f\"(d[{}])",
                                i == 0       ? ""
                                : i % 8 == 0 ? ",\n      "
                                             : ", ",
                                i);
  }
  const auto place = [&](int operand) { return fmt::format("%{}", registers + operand); };
  const std::string a = from_registers
                            ? fmt::format("{{{},{},{},{}}}", place(0), place(1), place(2), place(3))
                            : place(0);
  const int b = from_registers ? 4 : 1;
  return fmt::format(
      R"(  static __device__ __forceinline__ void {}(float (&d)[{}], {}, uint64_t b, int accumulate) {{
    asm volatile(
      "{{\n.reg .pred p;\nsetp.ne.b32 p, {}, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{"
      "{}}}, {}, {}, p, 1, 1{};\n}}"
      : {}
      : {}, "l"(b), "r"(accumulate));
  }}
)",
      name, registers, from_registers ? "const uint32_t (&a)[4]" : "uint64_t a", place(b + 1),
      columns, element, element, places, a, place(b), from_registers ? ", 1" : ", 0, 0",
      accumulators, from_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))");
}

std::string constants(const WgmmaAttention& a) {
  return fmt::format(R"(struct Config {{
  static constexpr int depth = {}, width = {}, queries = {}, keys = {};
  static constexpr int key_stages = {}, value_stages = {};
  static constexpr bool causal = {}, turns = {}, lazy = {}, bfloat16 = {};
}};
)",
                     a.depth, a.width, a.queries, a.keys, a.key_stages, a.value_stages, a.causal,
                     a.turns, a.lazy, a.dtype == DType::bfloat16);
}

constexpr const char* file =
    R"CU(// $NAME$: generated; the same text serves every problem with these types, widths and choices.
#define TESSERA_SIDES_APART 1
#include "tessera_wgmma/attention.h"
#include "tessera_wgmma/attention_launch.h"

namespace tessera_generated {
$CONSTANTS$
#if TESSERA_DEVICE_SIDE
struct Mma {
$SCORES$
$VALUES$};
#endif
}  // namespace tessera_generated

#if TESSERA_DEVICE_SIDE
TESSERA_KERNEL(tessera_wgmma::AttentionShape<tessera_generated::Config>::threads, 1)
void tessera_attention(const __grid_constant__ tessera_wgmma::AttentionParams p) {
  tessera_wgmma::attention<tessera_generated::Config, tessera_generated::Mma>(p);
}
#endif

#if TESSERA_HOST_SIDE
#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))
TESSERA_EXPORT const char* tessera_describe(void) {
  return R"J($DESCRIBE$)J";
}
TESSERA_EXPORT const char* tessera_last_error(void) { return tessera_wgmma::last_error(); }
TESSERA_EXPORT int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
TESSERA_EXPORT int tessera_run(const tessera_launch* launch, void*, void* stream) {
  return tessera_wgmma::run_attention<tessera_generated::Config>(
      launch, TESSERA_ENTRY(tessera_attention), static_cast<cudaStream_t>(stream));
}
#endif
)CU";

}  // namespace

std::string wgmma_attention_library(const WgmmaAttention& a, std::string_view realizer,
                                    std::string_view arch, const std::vector<std::string>& ints) {
  const char* const element = a.dtype == DType::bfloat16 ? "bf16" : "f16";
  const Json describe = {{"abi", 1}, {"name", realizer}, {"arch", arch}, {"ints", ints}};
  return fill(file, {{"NAME", std::string(realizer)},
                     {"CONSTANTS", constants(a)},
                     {"SCORES", instruction("scores", element, a.keys, false)},
                     {"VALUES", instruction("values", element, a.width, true)},
                     {"DESCRIBE", describe.dump()}});
}

}  // namespace tessera::realize
