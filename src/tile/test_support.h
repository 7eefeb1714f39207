// For tests: compiles an emitted host source with g++, runs it through the C interface, and
// compares with the interpreter.
#pragma once

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/source_folder.h"
#include "numeric/round.h"
#include "tile/emit.h"
#include "tile/interpret.h"

#include "tessera/kernel.h"

namespace tessera::tile {

inline std::vector<unsigned char> to_bytes(DType t, const std::vector<double>& v) {
  std::vector<unsigned char> out(v.size() * size_of(t));
  for (std::size_t i = 0; i < v.size(); ++i) {
    auto f = static_cast<float>(round_to(t, v[i]));
    uint32_t b;
    std::memcpy(&b, &f, 4);
    if (t == DType::float32) std::memcpy(&out[4 * i], &b, 4);
    if (t == DType::bfloat16) b >>= 16, std::memcpy(&out[2 * i], &b, 2);
    if (t == DType::float16) {
      auto h = static_cast<_Float16>(f);
      std::memcpy(&out[2 * i], &h, 2);
    }
    if (t == DType::boolean) out[i] = f != 0;
  }
  return out;
}

inline std::vector<double> from_bytes(DType t, const std::vector<unsigned char>& bytes) {
  std::vector<double> v(bytes.size() / size_of(t));
  for (std::size_t i = 0; i < v.size(); ++i) {
    uint32_t b = 0;
    std::memcpy(&b, &bytes[i * size_of(t)], size_of(t));
    float f = 0;
    if (t == DType::bfloat16) b <<= 16;
    std::memcpy(&f, &b, 4);
    if (t == DType::float16) {
      _Float16 h;
      std::memcpy(&h, &bytes[2 * i], 2);
      f = static_cast<float>(h);
    }
    v[i] = t == DType::boolean ? bytes[i] : f;
  }
  return v;
}

/// The outputs of the built kernel, storage by storage (inputs pass through); poisoned before.
inline std::vector<std::vector<double>> run_on_host(
    const Program& p, const std::vector<std::vector<double>>& inputs) {
  namespace fs = std::filesystem;
  Result<Emitted> e = emit(p, Target::host);
  EXPECT_TRUE(e) << (e ? "" : to_text(e.error()));
  if (!e) return {};
  static int serial = 0;
  fs::path dir = fs::temp_directory_path() / fmt::format("tessera-tile-{}-{}", getpid(), serial++);
  fs::create_directories(dir);
  std::ofstream(dir / "k.cpp") << e->source;
  std::string command = fmt::format(
      "g++ {} -Wall -Wno-unused -shared -fPIC -I {}/include {}/k.cpp -o {}/k.so 2>{}/log",
      host_flags(), source_folder(), dir.string(), dir.string(), dir.string());
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(dir / "log");
    ADD_FAILURE() << command << "\n"
                  << std::string(std::istreambuf_iterator<char>(log), {})
                  << e->source.substr(e->source.find("using tst_index"));
    return {};
  }
  void* so = dlopen((dir / "k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  fs::remove_all(dir);
  EXPECT_NE(so, nullptr) << dlerror();
  auto run = reinterpret_cast<decltype(&tessera_run)>(dlsym(so, "tessera_run"));
  auto scratch =
      reinterpret_cast<decltype(&tessera_workspace_size)>(dlsym(so, "tessera_workspace_size"));
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < p.tensors.size(); ++i) {
    const Tensor& t = p.tensors[i];
    if (t.access == Access::workspace) continue;
    bytes.push_back(t.access == Access::input
                        ? to_bytes(t.element, inputs[i])
                        : std::vector<unsigned char>(t.extent() * size_of(t.element), 0x5a));
  }
  for (auto& b : bytes) pointers.push_back(b.data());
  tessera_launch launch{pointers.data(), static_cast<int32_t>(pointers.size()), nullptr, 0};
  std::vector<char> workspace(scratch(&launch) + 256);
  EXPECT_EQ(run(&launch, workspace.data(), nullptr), 0);
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out.push_back(from_bytes(p.tensors[i].element, bytes[i]));
  return out;
}

/// Every output element that the interpreter wrote, against the built kernel: equal where not
/// finite, else within `tolerance` relative to 1 + |value|.
inline void expect_host_matches(const Program& p, const std::vector<std::vector<double>>& inputs,
                                double tolerance) {
  Result<Memory> want = interpret(p, inputs);
  ASSERT_TRUE(want) << to_text(want.error());
  std::vector<std::vector<double>> got = run_on_host(p, inputs);
  ASSERT_GE(got.size(), p.tensors.size() > got.size() ? 1u : p.tensors.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (p.tensors[i].access != Access::output) continue;
    for (std::size_t j = 0; j < got[i].size(); ++j) {
      if (!want->written[i][j]) continue;
      double w = want->data[i][j];
      double g = got[i][j];
      bool same = std::isnan(w)   ? std::isnan(g)
                  : std::isinf(w) ? w == g
                                  : std::fabs(w - g) <= tolerance * (1 + std::fabs(w));
      ASSERT_TRUE(same) << p.tensors[i].name << "[" << j << "]: interpreter " << w << ", host "
                        << g;
    }
  }
}

/// Reproducible values in [-2, 2).
inline std::vector<double> noise(std::size_t n, uint64_t seed) {
  std::vector<double> v(n);
  uint64_t s = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (double& x : v) {
    s = s * 6364136223846793005ULL + 1442695040888963407ULL;
    x = static_cast<double>(s >> 40) / (1 << 22) - 2;
  }
  return v;
}

}  // namespace tessera::tile
