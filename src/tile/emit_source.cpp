// The whole source text: prelude, kernels, and the C interface of a built kernel.
#include <algorithm>

#include "base/json.h"
#include "tile/emit.h"

namespace tessera::tile {
namespace {

/// Index arithmetic in 32 bits where every element number fits, since 64-bit division is slow on
/// GPUs.
bool small(const Program& p) {
  constexpr int64_t most = (int64_t{1} << 31) - (1 << 20);
  for (const Tensor& t : p.tensors)
    if (t.extent() >= most) return false;
  for (const Kernel& k : p.kernels)
    for (const TileVar& v : k.vars)
      if (v.total >= most) return false;
  return true;
}

std::string parameters(const Program& p) {
  std::string s;
  for (const Tensor& t : p.tensors)
    s += fmt::format("{}{}{}* __restrict__ {}", s.empty() ? "" : ", ",
                     t.access == Access::input ? "const " : "", c_type(t.element), t.name);
  return s;
}

/// What a launch may ask for without an opt-in.
constexpr int64_t default_shared_bytes = 48 << 10;

struct Grid {
  int64_t tiles = 1;
  int persistent = 0;
  int64_t shared_bytes = 0;
};

std::string names_of(const Program& p) {
  std::string names;
  for (const Tensor& t : p.tensors) names += (names.empty() ? "" : ", ") + t.name;
  return names;
}

/// The kernel around a body that has been written. It waits for the kernel before it: nothing but
/// the body touches memory. The body is a function of its own because its parameters then stay
/// __restrict__ after the wait has made the compiler forget the kernel's.
void cuda_kernel(Emitter& e, const Kernel& k) {
  std::string bounds = std::to_string(k.threads);
  if (k.min_blocks > 0) bounds += fmt::format(", {}", k.min_blocks);
  const std::string names = names_of(*e.program);
  e.open(fmt::format("TESSERA_KERNEL({}) void tile_{}({}) {{", bounds, k.name,
                     parameters(*e.program)));
  e.line(fmt::format("tessera::after_previous({});", names));
  e.line(fmt::format("tile_{}_body({});", k.name, names));
  e.close();
}

std::string describe(const Program& p, Target target) {
  Json j;
  j["abi"] = 1;
  j["name"] = p.name;
  j["ints"] = Json::array();
  j["tensors"] = Json::array();
  for (const Tensor& t : p.tensors)
    if (t.access != Access::workspace) j["tensors"].push_back(t.name);
  j["arch"] = target == Target::cuda ? "cuda" : "host";
  return j.dump();
}

/// The kernels' tensors. The host side of CUDA does not know their types.
std::string arguments(const Program& p, Target target, int64_t* workspace, int* count) {
  std::string s;
  for (const Tensor& t : p.tensors) {
    std::string from = fmt::format("launch->tensors[{}]", *count);
    const char* cast = "static_cast";
    if (t.access == Access::workspace) {
      from = fmt::format("static_cast<char*>(workspace) + {}", *workspace);
      cast = "reinterpret_cast";
      *workspace += (t.extent() * size_of(t.element) + 255) / 256 * 256;
    } else {
      ++*count;
    }
    if (target == Target::cuda) {
      s += fmt::format("  void* {} = {};\n", t.name, from);
    } else {
      s += fmt::format("  auto* {} = {}<{}*>({});\n", t.name, cast, c_type(t.element), from);
    }
  }
  return s;
}

/// The launch of one kernel; beyond 48 KiB it asks for room first.
std::string cuda_launch(const Kernel& k, const Grid& grid, const std::string& names) {
  std::string s;
  if (grid.shared_bytes > default_shared_bytes) {
    s += fmt::format(
        "  static tessera::PerDevice<bool> raised_{0};\n"
        "  if (cudaError_t e = tessera::allow_shared_memory(raised_{0}, TESSERA_ENTRY(tile_{0}), "
        "{1}); "
        "e != cudaSuccess) return tst_error = cudaGetErrorString(e), 2;\n",
        k.name, grid.shared_bytes);
  }
  std::string blocks = std::to_string(grid.tiles);
  if (grid.persistent > 0) blocks = fmt::format("tst_blocks({}, {})", grid.tiles, grid.persistent);
  return s + fmt::format(
                 "  if (cudaError_t e = tessera::launch(TESSERA_ENTRY(tile_{}), {}, {}, {}, "
                 "static_cast<cudaStream_t>(stream), {}); e != cudaSuccess) return tst_error = "
                 "cudaGetErrorString(e), 2;\n",
                 k.name, blocks, k.threads, grid.shared_bytes, names);
}

/// Blocks of a kernel whose blocks take many tiles.
constexpr std::string_view blocks_function = R"(
[[maybe_unused]] static unsigned tst_blocks(long long tiles, int per_multiprocessor) {
  const long long blocks = (long long)tessera::multiprocessors() * per_multiprocessor;
  return unsigned(tiles < blocks ? tiles : blocks);
}
)";

std::string interface(const Program& p, Target target, const std::vector<Grid>& grids) {
  int64_t workspace = 0;
  int count = 0;
  std::string args = arguments(p, target, &workspace, &count);
  const std::string names = names_of(p);
  std::string s(target == Target::cuda ? blocks_function : "");
  s += R"(
static thread_local const char* tst_error = "";
extern "C" const char* tessera_last_error(void) { return tst_error; }
)";
  s += fmt::format(
      "extern \"C\" const char* tessera_describe(void) {{ return R\"json({})json\"; }}\n",
      describe(p, target));
  s += fmt::format(
      "extern \"C\" int64_t tessera_workspace_size(const tessera_launch*) {{ return {}; }}\n",
      workspace);
  s += "extern \"C\" int tessera_run(const tessera_launch* launch, void* workspace, void* stream) "
       "{\n";
  s += fmt::format(
      "  if (launch->tensor_count != {0}) return tst_error = \"{0} tensors are needed\", 1;\n",
      count);
  if (target == Target::cuda) {
    s += fmt::format(
        "  for (int i = 0; i < {}; ++i)\n    if (reinterpret_cast<uintptr_t>(launch->tensors[i]) % "
        "16 != 0)\n"
        "      return tst_error = \"a tensor is not aligned to 16 bytes\", 1;\n",
        count);
  }
  s += args;
  for (std::size_t i = 0; i < p.kernels.size(); ++i) {
    const Kernel& k = p.kernels[i];
    if (target == Target::host) {
      s += fmt::format("  tile_{}({});\n", k.name, names);
      continue;
    }
    s += cuda_launch(k, grids[i], names);
  }
  s += "  (void)workspace, (void)stream;\n  return 0;\n}\n";
  return s;
}

}  // namespace

std::string_view c_type(DType t) {
  switch (t) {
    case DType::bfloat16:
      return "tst_bf16";
    case DType::float16:
      return "tst_f16";
    case DType::boolean:
      return "uint8_t";
    default:
      return "float";
  }
}

std::string_view host_flags() {
  return "-std=c++17 -O3 -march=native -fopenmp -fno-math-errno -fno-trapping-math "
         "-ffp-contract=off -mprefer-vector-width=512";
}

Result<Emitted> emit(const Program& p, Target target) {
  Emitter e;
  e.target = target;
  e.program = &p;
  const bool cuda = target == Target::cuda;
  std::string head = fmt::format(
      "// {}, written by tessera from its tile program.\n{}#include \"tessera/kernel.h\"\n", p.name,
      cuda ? "#define TESSERA_SIDES_APART 1\n" : "");
  if (cuda) {
    head +=
        "#include <stdint.h>\n\n#include \"tessera/limits.h\"\n"
        "#include \"tessera/programmatic_launch.h\"\n\n#if TESSERA_DEVICE_SIDE";
  }
  head += "\n";
  std::string index = small(p) ? (target == Target::cuda ? "unsigned" : "long")
                               : (target == Target::cuda ? "unsigned long long" : "long");
  std::vector<Grid> grids;
  for (const Kernel& k : p.kernels) {
    if (target == Target::host && k.threads != 1)
      return error(fail(unsupported, "`{}` spreads its tiles over {} threads", k.name, k.threads)
                       .help("on host a tile belongs to one thread"));
    e.line("");
    e.out += "\n";
    e.open(fmt::format("static {} tile_{}({}) {{",
                       target == Target::cuda ? "__device__ __forceinline__ void" : "void",
                       target == Target::cuda ? k.name + "_body" : k.name, parameters(p)));
    if (target == Target::cuda) e.line("const tst_index thread = threadIdx.x;");
    TESSERA_CHECK(e.kernel_text(k));
    e.close();
    if (target == Target::cuda) cuda_kernel(e, k);
    grids.push_back({e.grid_tiles, e.grid_blocks_per_multiprocessor, e.shared_bytes});
  }
  head += pointwise::prelude(target) + "\n" + tile_prelude(target);
  if (e.uses_products) head += product_prelude();
  head += fmt::format("using tst_index = {};\n", index);
  std::string host = interface(p, target, grids);
  if (cuda) host = "#endif\n#if TESSERA_HOST_SIDE" + host + "#endif\n";
  return Emitted{head + e.out + host, cuda ? "cu" : "cpp"};
}

}  // namespace tessera::tile
