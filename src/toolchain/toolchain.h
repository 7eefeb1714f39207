// Source text in, shared library out: nvcc and g++ behind one content-addressed cache.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::toolchain {

enum class Language : uint8_t { cuda, cxx };

/// Which compilers make a source's library.
enum class Sides : uint8_t {
  together,  // nvcc, of both sides at once
  apart,     // nvcc of the device side into a cubin; the C++ compiler of the host side around it
  host,      // the C++ compiler: there is no device side
};

/// Everything that decides what a compiler makes of it.
struct Source {
  std::string name;  // for people: becomes part of file names
  Language language = Language::cuda;
  std::string text;
  std::string arch;                // arch::Arch::name
  std::vector<std::string> flags;  // beyond the toolchain's own
  std::vector<std::string> links;  // "cublasLt", "cublas"
  bool cutlass = false;            // needs the CUTLASS headers
  /// Asked before the text is compiled: what has been proved of it (Built::resources, "proof"), or
  /// why it is not compiled. A library in the cache has been asked for already. May be empty.
  std::function<Result<Json>()> prove = {};
};

struct Built {
  std::filesystem::path library;  // implements include/tessera/kernel.h
  std::string hash;               // the cache key
  bool cached = false;
  double seconds = 0;  // compile time (of the original build when cached)
  /// {"registers":168,"spill_bytes":0,"shared_bytes":..., "warnings":[...]} from ptxas; empty on
  /// host.
  Json resources = Json::object();
};

/// The compilers and libraries of this machine.
struct Toolchain {
  std::filesystem::path nvcc;  // empty when there is none
  std::string nvcc_version;
  std::filesystem::path cxx;
  std::string cxx_version;
  std::filesystem::path
      cutlass;  // folder with include/ and tools/util/include; empty when there is none
  std::string cutlass_version;
  std::filesystem::path own_include;  // tessera/kernel.h and the CUTLASS collectives of ours
  /// Beyond nvcc's own: for compilers taken from Python packages, whose headers and libraries lie
  /// in sibling folders.
  std::vector<std::filesystem::path> cuda_includes;
  std::vector<std::filesystem::path> cuda_libraries;
  /// For host sides that the C++ compiler reads alone: the folders of cuda_runtime.h and of CUDA's
  /// C++ library, and the folder of libcudart_static.a. Empty where that is not possible; nvcc then
  /// compiles both sides at once, and `together_because` says why.
  std::vector<std::filesystem::path> host_includes;
  std::filesystem::path host_runtime;
  std::string together_because;
  /// Compilers run in a sandbox, as the text is somebody else's. What they make is the same.
  bool confined = false;
  /// One text that changes whenever generated code might.
  [[nodiscard]] std::string fingerprint() const;
  [[nodiscard]] Json to_json() const;
};

/// Looks in this order: $TESSERA_NVCC, PATH, /usr/local/cuda, the Python packages of `python`;
/// CUTLASS in $TESSERA_CUTLASS_DIR, then the Python package. What is missing stays empty; build()
/// then says how to get it.
Toolchain locate(const std::filesystem::path& python);

/// Builds, or takes from the cache under `cache`; safe with many processes at once (built aside,
/// published by one atomic rename). A failed build is remembered with its log and not tried again
/// for the same content; TS0327 where a confined compiler tried what is not allowed, which is not
/// remembered; one that ran out of time or disk, or whose `cancel` was set, is not. An
/// entry is a folder `cache/<2 digits>/<hash>/` with kernel.so (absent when the build failed),
/// source.cu or source.cpp, log.txt and meta.json (schema tessera.build/1).
Result<Built> build(const Toolchain& tools, const Source& source,
                    const std::filesystem::path& cache, std::chrono::seconds limit,
                    const std::atomic<bool>* cancel = nullptr);

/// The build of this source when the cache has it and it did not fail; never compiles.
std::optional<Built> find_built(const Toolchain& tools, const Source& source,
                                const std::filesystem::path& cache);

struct Pruned {
  int removed = 0;
  int64_t bytes_freed = 0;
  int64_t bytes_left = 0;
};
/// Removes entries, those unused for longest first, until at most `max_bytes` are left; also the
/// leftovers of builds that were killed. Entries used within the last hour stay, so that a running
/// search keeps what it has built.
Pruned prune_cache(const std::filesystem::path& cache, int64_t max_bytes);

}  // namespace tessera::toolchain
