#include "realize/common/wgmma_instruction_text.h"

#include <fmt/format.h>

namespace tessera::realize {

std::string wgmma_instruction(std::string_view name, const WgmmaInstruction& w) {
  const int registers = w.columns / 2;
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
  const std::string a = w.a_in_registers
                            ? fmt::format("{{{},{},{},{}}}", place(0), place(1), place(2), place(3))
                            : place(0);
  const int b = w.a_in_registers ? 4 : 1;
  // Transposing is a flag of 16-bit operands in shared memory only.
  std::string transposed;
  if (w.element != "tf32") {
    if (!w.a_in_registers) transposed += w.a_k_major ? ", 0" : ", 1";
    transposed += w.b_k_major ? ", 0" : ", 1";
  }
  return fmt::format(
      R"(  static __device__ __forceinline__ void {}(float (&d)[{}], {}, uint64_t b, int accumulate) {{
    asm volatile(
      "{{\n.reg .pred p;\nsetp.ne.b32 p, {}, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{"
      "{}}}, {}, {}, p, 1, 1{};\n}}"
      : {}
      : {}, "l"(b), "r"(accumulate));
  }}
)",
      name, registers, w.a_in_registers ? "const uint32_t (&a)[4]" : "uint64_t a", place(b + 1),
      w.columns, w.element == "tf32" ? 8 : 16, w.element, w.element, places, a, place(b),
      transposed, accumulators,
      w.a_in_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))");
}

}  // namespace tessera::realize
