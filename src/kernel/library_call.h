#pragma once

#include <string>

#include "base/json.h"

namespace tessera::kernel {

/// A function of the Python edge (tessera.running.library) that runs a vendor's kernel on a
/// pattern's tensors.
struct LibraryCall {
  std::string function;             // "sdpa", "aten", "op"
  Json arguments = Json::object();  // {"backend":"cudnn"}
};

}  // namespace tessera::kernel
