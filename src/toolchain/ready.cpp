#include "toolchain/ready.h"

#include <system_error>

#include "base/files.h"

namespace tessera::toolchain {
namespace fs = std::filesystem;
namespace {

inline constexpr Code no_compiler{"TS0301", "build.no_compiler"};
inline constexpr Code not_writable{"TS0305", "build.cache_not_writable"};
inline constexpr Code no_headers{"TS0308", "build.no_headers"};
inline constexpr Code cache_full{"TS0309", "build.cache_full"};

constexpr std::uintmax_t least_free_bytes = 64U << 20;  // some hundred kernels of host

}  // namespace

Status ready_compilers(const Toolchain& tools, Language language) {
  if (language == Language::cuda && tools.nvcc.empty()) {
    return error(
        fail(no_compiler, "there is no nvcc to compile kernels with")
            .expect("nvcc in $TESSERA_NVCC, on PATH, in /usr/local/cuda or from Python packages")
            .but_found("none of them")
            .help("install the CUDA toolkit, or `pip install nvidia-cuda-nvcc nvidia-cuda-cccl "
                  "nvidia-cuda-runtime`, or set TESSERA_NVCC"));
  }
  if (tools.cxx.empty()) {
    return error(fail(no_compiler, "there is no C++ compiler to compile kernels with")
                     .expect("g++ or clang++ on PATH, or $TESSERA_CXX")
                     .but_found("none of them")
                     .help("install g++ (Debian, Ubuntu: `apt install g++`), or set TESSERA_CXX"));
  }
  return {};
}

Status ready_to_build(const Toolchain& tools, Language language) {
  TESSERA_CHECK(ready_compilers(tools, language));
  if (tools.own_include.empty()) {
    return error(
        fail(no_headers, "the headers of generated kernels are not found")
            .expect("tessera/kernel.h in an include folder above the tessera binary, or in "
                    "$TESSERA_INCLUDE")
            .but_found("no such file above {}", executable_folder().string())
            .help("install the wheel again, or set TESSERA_INCLUDE to the include folder "
                  "of the source tree"));
  }
  return {};
}

Diagnostic cache_not_writable(const fs::path& cache, const std::string& why) {
  return fail(not_writable, "the kernel cache {} cannot be written", cache.string())
      .expect("a folder that can be made and written")
      .but_found("{}", why)
      .help(
          "free space there (`tessera registry prune` also prunes the cache), or give --cache, or "
          "set TESSERA_HOME, to a folder that can be written");
}

Status ready_cache(const fs::path& cache) {
  try {
    fs::create_directories(cache);
    const fs::path probe = cache / ".probe";
    write_file_atomically(probe, "");
    fs::remove(probe);
  } catch (const fs::filesystem_error& e) {
    return error(cache_not_writable(cache, e.code().message()));
  }
  std::error_code ignored;
  const fs::space_info space = fs::space(cache, ignored);
  if (!ignored && space.available < least_free_bytes) {
    return error(
        fail(cache_full, "there is not enough disk for the kernel cache {}", cache.string())
            .expect("{} MiB free", least_free_bytes >> 20)
            .but_found("{:.1f} MiB", static_cast<double>(space.available) / (1 << 20))
            .help("free space there, or set TESSERA_HOME to a place with more"));
  }
  return {};
}

}  // namespace tessera::toolchain
