// core_emit DIR: writes the sources of the products that tests/gpu/core_gemm.py checks and times,
// a file each, with the commands that build them in index.json.
#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"
#include "core/testing/gemm.h"
#include "lower/lower.h"

namespace tessera {
namespace {

struct Case {
  std::string name;
  core::testing::GemmShape shape;
};

std::vector<Case> cases() {
  using core::testing::GemmShape;
  std::vector<Case> all;
  all.push_back({"128x256x64_4", {}});
  GemmShape square;
  square.bn = 128;
  all.push_back({"128x128x64_4", square});
  return all;
}

int run(const std::string& folder) {
  Json index = Json::array();
  for (const Case& c : cases()) {
    const Result<core::Kernel> kernel = core::testing::gemm(c.shape);
    const Result<lower::CudaSource> source =
        kernel ? lower::lower(*kernel) : Result<lower::CudaSource>(error(kernel.error()));
    if (!source) {
      fmt::print(stderr, "{}: {}", c.name, to_text(source.error()));
      return 1;
    }
    write_file_atomically(folder + "/" + c.name + ".cu", source->text);
    index.push_back({{"name", c.name},
                     {"dtype", name_of(c.shape.element)},
                     {"shared_bytes", source->shared_bytes}});
  }
  write_file_atomically(folder + "/index.json", index.dump(1) + "\n");
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "core_emit DIR\n");
    return 3;
  }
  return tessera::run(arguments[1]);
}
