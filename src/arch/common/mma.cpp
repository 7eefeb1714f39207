#include "arch/mma.h"

#include <vector>

namespace tessera::arch {
namespace {

Mma record(std::string_view name, std::string_view ptx, Precision operands, const MmaSync& kind) {
  return {.name = name,
          .ptx = ptx,
          .capability = "mma_sync",
          .m = MmaSync::m,
          .n = MmaSync::n,
          .k = kind.k,
          .operands = operands,
          .per_register = static_cast<int>(kind.per_register()),
          .a = kind.a_layout(),
          .b = kind.b_layout(),
          .c = MmaSync::c_layout()};
}

}  // namespace

std::span<const Mma> mma_sync() {
  static const std::vector<Mma> all = {
      record("m16n8k8.tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", Precision::tf32,
             {Element::tf32, Element::tf32, Element::f32, 8}),
      record("m16n8k16.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
             Precision::bf16, {Element::bf16, Element::bf16, Element::f32, 16}),
      record("m16n8k16.fp16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Precision::fp16,
             {Element::f16, Element::f16, Element::f32, 16}),
  };
  return all;
}

const Mma* find_mma(std::string_view name) {
  for (const Mma& i : mma_sync())
    if (i.name == name) return &i;
  return nullptr;
}

}  // namespace tessera::arch
