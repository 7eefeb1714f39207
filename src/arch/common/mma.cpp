#include "arch/mma.h"

#include <vector>

namespace tessera::arch {
namespace {

Layout parsed(std::string_view text) {
  return parse_layout(text).value();
}

/// m16n8k16 with 16-bit operands: lane = 4 g + t holds rows g and g + 8, columns 2t, 2t + 1, 2t + 8
/// and 2t + 9 of A.
Mma m16n8k16(std::string_view name, std::string_view ptx, Precision operands) {
  return {.name = name,
          .ptx = ptx,
          .capability = "mma_sync",
          .m = 16,
          .n = 8,
          .k = 16,
          .operands = operands,
          .per_register = 2,
          .a = parsed("((4,8),(2,2,2)):((32,1),(16,8,128))"),
          .b = parsed("((4,8),(2,2)):((16,1),(8,64))"),
          .c = parsed("((4,8),(2,2)):((32,1),(16,8))")};
}

}  // namespace

std::span<const Mma> mma_sync() {
  static const std::vector<Mma> all = {
      // Lane 4 g + t holds rows g and g + 8, columns t and t + 4 of A.
      {.name = "m16n8k8.tf32",
       .ptx = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
       .capability = "mma_sync",
       .m = 16,
       .n = 8,
       .k = 8,
       .operands = Precision::tf32,
       .per_register = 1,
       .a = parsed("((4,8),(2,2)):((16,1),(8,64))"),
       .b = parsed("((4,8),2):((8,1),32)"),
       .c = parsed("((4,8),(2,2)):((32,1),(16,8))")},
      m16n8k16("m16n8k16.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
               Precision::bf16),
      m16n8k16("m16n8k16.fp16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
               Precision::fp16),
  };
  return all;
}

const Mma* find_mma(std::string_view name) {
  for (const Mma& i : mma_sync())
    if (i.name == name) return &i;
  return nullptr;
}

}  // namespace tessera::arch
