// State that libraries keep for each GPU (include/tessera/per_device.h), without one: the program
// under ThreadSanitizer makes the CUDA calls that hold it itself.
#include <fstream>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "base/source_folder.h"
#include "toolchain/toolchain.h"

namespace tessera::toolchain {
namespace {

// Threads that change between four devices, as a library's launches do; two devices fail at first.
const char* const program = R"(
#define TESSERA_DEVICE_SIDE 1
#define TESSERA_HOST_SIDE 1
#include "tessera/limits.h"
#include <cstdio>
#include <thread>
#include <vector>

static void kernel(int) {}
static thread_local int current = 0;
static int told[4], raised[4];  // what PerDevice's lock must guard
static bool failed[4];

cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
  if (device % 2 == 1 && !failed[device]) return failed[device] = true, cudaErrorInvalidDevice;
  ++told[device];
  return *value = 100 + device, cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute, int bytes) {
  if (f != reinterpret_cast<const void*>(kernel) || bytes != 60000) return cudaErrorInvalidDevice;
  return ++raised[current], cudaSuccess;
}

static int work(int first) {
  static tessera::PerDevice<bool> limits;
  for (int round = 0; round < 20000; ++round) {
    current = (first + round) % 4;
    const int n = tessera::multiprocessors();
    if (n != 100 + current && n != 1) return std::printf("device %d has %d\n", current, n), 1;
    if (tessera::allow_shared_memory(limits, kernel, 60000) != cudaSuccess) return 2;
  }
  return 0;
}

int main() {
  std::vector<std::thread> threads;
  int wrong[8] = {};
  for (int i = 0; i < 8; ++i) threads.emplace_back([&, i] { wrong[i] = work(i); });
  for (std::thread& t : threads) t.join();
  for (int w : wrong)
    if (w != 0) return w;
  for (int d = 0; d < 4; ++d)
    if (told[d] != 1 || raised[d] != 1)
      return std::printf("device %d: asked %d times, raised %d\n", d, told[d], raised[d]), 3;
  current = tessera::PerDevice<int>::most;
  static tessera::PerDevice<bool> beyond;
  return tessera::allow_shared_memory(beyond, kernel, 60000) == cudaErrorInvalidDevice ? 0 : 4;
}
)";

// The few names of CUDA that the header uses.
const char* const runtime = R"(
#pragma once
#define __global__
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidDevice = 101 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
cudaError_t cudaGetDevice(int*);
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int);
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int);
)";

TEST(PerDevice, ThreadsOnSeveralDevicesDoNotRace) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "cuda_runtime.h") << runtime;
  std::ofstream(folder.path() / "program.cpp") << program;
  const std::string binary = folder.path() / "program";
  const Finished built =
      run({.argv = {locate("").cxx.string(), "-std=c++17", "-O1", "-g", "-fsanitize=thread",
                    "-I" + folder.path().string(), "-I" + source_folder() + "/include", "-o",
                    binary, (folder.path() / "program.cpp").string(), "-pthread"},
           .folder = folder.path(),
           .env = {}},
          std::chrono::seconds(120));
  ASSERT_TRUE(built.ok()) << built.output;
  const Finished ran =
      run({.argv = {binary}, .folder = folder.path(), .env = {}}, std::chrono::seconds(120));
  EXPECT_TRUE(ran.ok()) << ran.output.substr(0, 4000);
}

}  // namespace
}  // namespace tessera::toolchain
