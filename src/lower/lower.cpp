#include "lower/lower.h"

#include <algorithm>

#include "arch/arch.h"

#include "core/terms.h"
#include "core/walk.h"
#include "lower/codes.h"
#include "lower/host.h"
#include "lower/sequence.h"
#include "lower/walk.h"

namespace tessera::lower {
namespace {

std::string about(const core::Kernel& kernel) {
  std::string out = "// " + kernel.name + ": a kernel of the core, lowered.\n";
  for (const auto& [name, value] : kernel.constants)
    out += fmt::format("//   {} = {}\n", name, value);
  return out;
}

std::string head(bool waits, bool approximates) {
  std::string out = "#define TESSERA_SIDES_APART 1\n";
  if (waits) out += "#define TESSERA_PROGRAMMATIC_LAUNCH 1\n";
  out += "#include \"tessera/integers.h\"\n#include \"tessera/sides.h\"\n";
  if (approximates) out += "#include \"tessera_cutlass/functors.hpp\"\n";
  return out;
}

std::string device_part(const std::string& text) {
  return "\n#if TESSERA_DEVICE_SIDE\n" + text + "#endif  // TESSERA_DEVICE_SIDE\n";
}
std::string host_part(const std::string& text) {
  return "\n#if TESSERA_HOST_SIDE\n#include \"tessera/core_launch.h\"\n\n" + text +
         "#endif  // TESSERA_HOST_SIDE\n";
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

/// Neither what an author says of tags, nor what a checker has asked, is to change a letter.
core::Kernel bare(const core::Kernel& given) {
  return core::in_own_pool(core::without_tags(given));
}

/// Both sides of a kernel.
struct Lowered {
  DeviceSide device;
  HostSide host;
  [[nodiscard]] bool approximates() const {
    return device.text.find("tsb_") != std::string::npos ||
           device.text.find("tsf_") != std::string::npos;
  }
};

Result<Lowered> both_sides(const core::Kernel& kernel, const Options& options) {
  TESSERA_CHECK(check_limits(kernel));
  Ranges ranges(kernel);
  TESSERA_TRY(device, device_side(kernel, ranges));
  TESSERA_TRY(host, host_side(kernel, ranges, device, options));
  return Lowered{std::move(device), std::move(host)};
}

}  // namespace

Result<CudaSource> lower(const core::Kernel& given, const Options& options) {
  const core::Kernel kernel = bare(given);
  TESSERA_TRY(sides, both_sides(kernel, options));
  CudaSource out{kernel.name, about(kernel), std::move(sides.host.ints),
                 std::move(sides.host.tensors), kernel.shared_bytes()};
  out.text += head(waits_for_grids(kernel), sides.approximates()) + device_part(sides.device.text) +
              host_part(sides.host.text);
  return out;
}

Result<CudaSource> lower(const Sequence& s, const Options& options) {
  TESSERA_CHECK(check_sequence(s));
  Options inner = options;
  inner.places_at_launch = true;
  CudaSource out{options.describe_name, "", {}, {}, 0};
  std::string device, host;
  std::vector<std::vector<std::string>> ints;
  bool waits = false, approximates = false;
  for (std::size_t i = 0; i < s.kernels.size(); ++i) {
    const core::Kernel k = bare(*s.kernels[i]);
    inner.in_workspace = in_workspace(s, i);
    TESSERA_TRY(sides, both_sides(k, inner));
    const std::string space = sequence_space(i);
    out.text += about(k);
    out.shared_bytes = std::max(out.shared_bytes, k.shared_bytes());
    ints.emplace_back();
    for (const std::string& name : sides.host.ints) ints.back().push_back(k.name + "_" + name);
    out.ints.insert(out.ints.end(), ints.back().begin(), ints.back().end());
    device += fmt::format("namespace {0} {{\n{1}}}  // namespace {0}\n", space, sides.device.text);
    host += fmt::format("namespace {0} {{\n{1}}}  // namespace {0}\n\n", space, sides.host.text);
    waits |= waits_for_grids(k);
    approximates |= sides.approximates();
  }
  TESSERA_TRY(joined, sequence_host(s, options, ints));
  out.text += head(waits, approximates) + device_part(device) + host_part(host + joined);
  return out;
}

}  // namespace tessera::lower
