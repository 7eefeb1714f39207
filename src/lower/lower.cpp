#include "lower/lower.h"

#include "arch/arch.h"

#include "core/terms.h"
#include "core/walk.h"
#include "lower/codes.h"
#include "lower/host.h"
#include "lower/walk.h"

namespace tessera::lower {
namespace {

std::string head(const core::Kernel& kernel) {
  std::string out = "// " + kernel.name + ": a kernel of the core, lowered.\n";
  for (const auto& [name, value] : kernel.constants)
    out += fmt::format("//   {} = {}\n", name, value);
  out += "#define TESSERA_SIDES_APART 1\n";
  if (waits_for_grids(kernel)) out += "#define TESSERA_PROGRAMMATIC_LAUNCH 1\n";
  return out + "#include \"tessera/integers.h\"\n#include \"tessera/sides.h\"\n";
}

Status check_limits(const core::Kernel& k) {
  if (k.threads < 32 || k.threads > 1024 || k.threads % 32 != 0)
    return error(
        fail(bad_launch, "a block of {} threads", k.threads).expect("a multiple of 32 up to 1024"));
  TESSERA_TRY(arch, arch::find("sm_90a"));
  const int threads = arch->limits.threads_per_block;
  if (k.threads < 32 || k.threads > threads || k.threads % 32 != 0)
    return error(fail(bad_launch, "a block of {} threads", k.threads)
                     .expect("a multiple of 32 up to {}", threads));
  if (k.cluster < 1 || k.cluster > arch->limits.cluster_blocks)
    return error(fail(bad_launch, "a cluster of {} blocks", k.cluster)
                     .expect("1 to {}", arch->limits.cluster_blocks));
  const int64_t most = arch->shared_memory_per_block;
  if (k.shared_bytes() > most)
    return error(fail(bad_launch, "`{}` takes {} bytes of shared memory", k.name, k.shared_bytes())
                     .expect("at most {}", most)
                     .help("use fewer stages or smaller tiles"));
  return {};
}

}  // namespace

Result<CudaSource> lower(const core::Kernel& given, const Options& options) {
  // Neither what an author says of tags, nor what a checker has asked, is to change a letter.
  const core::Kernel kernel = core::in_own_pool(core::without_tags(given));
  TESSERA_CHECK(check_limits(kernel));
  Ranges ranges(kernel);
  TESSERA_TRY(device, device_side(kernel, ranges));
  TESSERA_TRY(host, host_side(kernel, ranges, device, options));
  CudaSource out{kernel.name, head(kernel), std::move(host.ints), std::move(host.tensors),
                 kernel.shared_bytes()};
  const bool approximates = device.text.find("tsb_") != std::string::npos ||
                            device.text.find("tsf_") != std::string::npos;
  if (approximates) out.text += "#include \"tessera_cutlass/functors.hpp\"\n";
  out.text += "\n#if TESSERA_DEVICE_SIDE\n" + device.text + "#endif  // TESSERA_DEVICE_SIDE\n";
  out.text += "\n#if TESSERA_HOST_SIDE\n#include \"tessera/core_launch.h\"\n\n" + host.text +
              "#endif  // TESSERA_HOST_SIDE\n";
  return out;
}

}  // namespace tessera::lower
