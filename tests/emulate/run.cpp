// Runs one emulated kernel: run FOLDER COUNT. Tensors are FOLDER/0 ... FOLDER/COUNT-1, as bytes;
// all are written back.
#include <fstream>
#include <iterator>
#include <string>

#include "cuda_runtime.h"
#include "tessera/kernel.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: run FOLDER COUNT\n", stderr), 3;
  const std::string folder = argv[1];
  const int count = std::atoi(argv[2]);
  std::vector<void*> tensors;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < count; ++i) {
    std::ifstream in(folder + "/" + std::to_string(i), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    tensors.push_back(tessera_emulate::global_memory(bytes.size()));
    sizes.push_back(bytes.size());
    std::memcpy(tensors.back(), bytes.data(), bytes.size());
  }
  const tessera_launch launch{tensors.data(), count, nullptr, 0};
  void* workspace = tessera_emulate::global_memory(std::size_t(tessera_workspace_size(&launch)));
  if (tessera_run(&launch, workspace, nullptr) != 0)
    return std::fprintf(stderr, "%s\n", tessera_last_error()), 1;
  for (int i = 0; i < count; ++i) {
    std::ofstream out(folder + "/" + std::to_string(i), std::ios::binary);
    out.write(static_cast<const char*>(tensors[i]), std::streamsize(sizes[i]));
  }
  return 0;
}
