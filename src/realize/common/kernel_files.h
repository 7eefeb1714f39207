// The kernel files of kernels/, as text that is part of the program.
#pragma once

#include <string_view>

namespace tessera::realize {

/// The text of kernels/`name`, "gemm.py". A name that no file has is a fault of ours.
std::string_view kernel_file(std::string_view name);

}  // namespace tessera::realize
