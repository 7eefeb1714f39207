// The text of attention in plain CUDA C++ (tessera_wgmma/attention.h): its constants, its two wgmma
// instructions and its host side.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "numeric/dtype.h"

namespace tessera::realize {

struct WgmmaAttention {
  DType dtype = DType::bfloat16;  // or float16
  int depth = 0, width = 0;       // head dim and that of the values, multiples of 16
  int queries = 128;              // of a tile, 64 a warpgroup
  int keys = 128;                 // of a block
  int key_stages = 2, value_stages = 2;
  bool causal = false;
  bool capped = false;  // scores are capped by a tanh
  bool band = false;    // instead: keys between two distances, which the launch brings
  bool turns = false;   // warpgroups issue their products in turns
  bool lazy = false;    // sums are corrected only where a row's highest score has grown by much
};

/// The whole file, named `realizer` in its description, which reads integers of these names.
std::string wgmma_attention_library(const WgmmaAttention& a, std::string_view realizer,
                                    std::string_view arch, const std::vector<std::string>& ints);

}  // namespace tessera::realize
