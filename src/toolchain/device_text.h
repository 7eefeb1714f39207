// What the compiler makes of the device side of a CUDA source, as text.
#pragma once

#include <chrono>
#include <string>

#include "toolchain/toolchain.h"

namespace tessera::toolchain {

enum class Stage : uint8_t { ptx, sass };

/// PTX or machine code, compiled with the flags of a build and with marks of lines. In the place of
/// the compiler's marks stand comments with the author's lines, where the source has such:
///   // kernels/gemm.py:84: full[k].wait()
/// Errors: TS0301 no compiler, TS0303 it does not compile, TS0304 it took too long, TS0326 no
/// nvdisasm beside nvcc or on PATH.
Result<std::string> device_text(const Toolchain& tools, const Source& source, Stage stage,
                                std::chrono::seconds limit);

/// The author's place of each line of a CUDA source that was made of a kernel: what the last
/// comment of the form `// FILE:LINE: text` before it says, without its slashes; "" for lines that
/// belong to none. Index 0 is line 1.
std::vector<std::string> authors_places(const std::string& source);

/// `text` of the compiler with the author's places of the lines of `file` in the place of its
/// marks:
/// `.loc` and `.file` of PTX, `//## File` of nvdisasm -gi. Inlined code has the place that it is
/// inlined at.
std::string with_places(const std::string& text, Stage stage, const std::string& file,
                        const std::vector<std::string>& places);

}  // namespace tessera::toolchain
