// The text of one wgmma instruction, which needs its shape and operands written out.
#pragma once

#include <string>
#include <string_view>

namespace tessera::realize {

struct WgmmaInstruction {
  std::string_view element;  // of both operands as PTX calls it: bf16, f16 or tf32
  int columns = 0;
  bool a_in_registers = false;              // else by a descriptor, as B always is
  bool a_k_major = true, b_k_major = true;  // of 16 bits; tf32 always is
};

/// A static member function `name` around it: 64 rows, 32 bytes of K, fp32 accumulators.
std::string wgmma_instruction(std::string_view name, const WgmmaInstruction& w);

}  // namespace tessera::realize
