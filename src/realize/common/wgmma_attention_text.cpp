#include "realize/common/wgmma_attention_text.h"

#include "base/text.h"
#include "realize/common/cutlass_text.h"
#include "realize/common/wgmma_instruction_text.h"

namespace tessera::realize {
namespace {

std::string constants(const WgmmaAttention& a) {
  return fmt::format(R"(struct Config {{
  static constexpr int depth = {}, width = {}, queries = {}, keys = {};
  static constexpr int key_stages = {}, value_stages = {};
  static constexpr bool causal = {}, band = {}, capped = {}, turns = {}, lazy = {}, bfloat16 = {};
}};
)",
                     a.depth, a.width, a.queries, a.keys, a.key_stages, a.value_stages, a.causal,
                     a.band, a.capped, a.turns, a.lazy, a.dtype == DType::bfloat16);
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
  return fill(file,
              {{"NAME", std::string(realizer)},
               {"CONSTANTS", constants(a)},
               {"SCORES", wgmma_instruction("scores", {.element = element, .columns = a.keys})},
               {"VALUES", wgmma_instruction("values", {.element = element,
                                                       .columns = a.width,
                                                       .a_in_registers = true,
                                                       .b_k_major = false})},
               {"DESCRIBE", describe.dump()}});
}

}  // namespace tessera::realize
