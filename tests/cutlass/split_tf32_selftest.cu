/* Checks the split-tf32 GEMM against fp64 and times it beside cuBLAS fp32. Usage:
 * split_tf32_selftest [check|time] */
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "split_tf32_config.h"
#include "split_tf32_reference.h"
#include "tessera_cutlass/split_tf32_layout.h"
#include "tessera_cutlass/split_tf32_pack.h"
#include "tessera_cutlass/sum_slices.h"

using namespace split_test;

#define INSTANCE(id, ...) extern GemmInstance const split_instance_##id;
#include "split_tf32_instances.inc"
#undef INSTANCE

namespace {

std::vector<GemmInstance const*> all_instances() {
  return {
#define INSTANCE(id, ...) &split_instance_##id,
#include "split_tf32_instances.inc"
#undef INSTANCE
  };
}

tessera::SplitSource source_a(Problem const& p, float const* a) {
  return {a, p.m, p.k, p.batches, p.a_rows_stride, p.a_k_stride, p.a_batch_stride};
}

tessera::SplitSource source_b(Problem const& p, float const* b) {
  int const batches = p.b_batch_stride == 0 ? 1 : p.batches;
  return {b, p.n, p.k, batches, p.b_rows_stride, p.b_k_stride, p.b_batch_stride};
}

float* packed_array(tessera::SplitSource const& s) {
  return device_array<float>(tessera::split_packed_elements(s.rows, s.k, s.batches));
}

GemmCall make_call(Problem const& p, float const* a_packed, float const* b_packed, float* d) {
  int64_t const width = tessera::split_row_elements(p.k);
  int64_t const b_batch = p.b_batch_stride == 0 ? 0 : p.n * width;
  return {p.m,      p.n,   p.k,     p.batches, a_packed, width,          p.m * width,
          b_packed, width, b_batch, nullptr,   d,        p.d_row_stride, p.d_batch_stride,
          1.f,      0.f,   nullptr, 1,         false};
}

/// Whether the instance can take the operands of this problem as they are.
bool accepts(GemmInstance const& instance, Problem const& p) {
  if (!instance.plain_operands) return true;
  int64_t const a_stride = p.a_k_major ? p.a_rows_stride : p.a_k_stride;
  int64_t const b_stride = p.b_k_major ? p.b_rows_stride : p.b_k_stride;
  return p.a_k_major == instance.plain_a_k_major && p.b_k_major == instance.plain_b_k_major &&
         a_stride % 4 == 0 && b_stride % 4 == 0 && p.a_batch_stride % 4 == 0 &&
         p.b_batch_stride % 4 == 0;
}

/// Gives an inline instance its operands.
void use_plain(GemmCall& call, Problem const& p, float const* a, float const* b) {
  call.a = a;
  call.a_row_stride = p.a_k_major ? p.a_rows_stride : p.a_k_stride;
  call.a_batch_stride = p.a_batch_stride;
  call.b = b;
  call.b_row_stride = p.b_k_major ? p.b_rows_stride : p.b_k_stride;
  call.b_batch_stride = p.b_batch_stride;
}

/// The workspace of one instance, grown on demand.
void* workspace_for(GemmInstance const& instance, GemmCall const& call) {
  static void* workspace = nullptr;
  static size_t held = 0;
  size_t const needed = std::max<size_t>(instance.workspace_bytes(call), 256);
  if (needed > held) {
    SPLIT_CHECK(cudaFree(workspace));
    SPLIT_CHECK(cudaMalloc(&workspace, needed));
    held = needed;
  }
  return workspace;
}

bool launch(GemmInstance const& instance, GemmCall const& call, void* workspace) {
  char const* error = instance.run(call, workspace, nullptr);
  if (error != nullptr) std::printf("  %s: %s\n", instance.name, error);
  return error == nullptr;
}

// ----------------------------------------------------------------------------------------
// correctness

struct Case {
  char const* label;
  int m, n, k, batches;
  bool a_k_major, b_k_major;
  bool share_b = false, positive = false, infinite = false;
};

std::vector<Case> const kCases = {
    {"127x200x136", 127, 200, 136, 1, true, false},
    {"127x200x136 A,B k-major", 127, 200, 136, 1, true, true},
    {"260x456x520 L3 B n-major", 260, 456, 520, 3, true, false},
    {"260x456x520 L3 B k-major", 260, 456, 520, 3, true, true},
    {"260x456x520 L3 A m-, B k-major", 260, 456, 520, 3, false, true},
    {"128x4096x20 L2", 128, 4096, 20, 2, true, false},
    {"129x388x1001 L3 A m-, B k-major", 129, 388, 1001, 3, false, true},
    {"130x196x1001 L2 A k-, B n-major", 130, 196, 1001, 2, true, false},
    {"1x4x1", 1, 4, 1, 1, true, false},
    {"257x196x15", 257, 196, 15, 1, true, true},
    {"300x260x17 L5, one B", 300, 260, 17, 5, true, false, true},
    {"1000x1000x1024 L2", 1000, 1000, 1024, 2, true, false},
    {"512x640x4096", 512, 640, 4096, 1, true, false},
    {"512x640x4096 positive", 512, 640, 4096, 1, true, false, false, true},
    {"256x256x65536", 256, 256, 65536, 1, true, true},
    {"129x200x136 inf, nan", 129, 200, 136, 1, true, false, false, false, true},
};

struct CaseData {
  Problem p;
  float *a, *b, *c, *bias, *d, *a_packed, *b_packed;
  double* ref;
  int64_t d_elements;

  explicit CaseData(Case const& test) {
    p = make_problem(test.m, test.n, test.k, test.batches, test.a_k_major, test.b_k_major,
                     test.share_b, 4);
    d_elements = p.batches * p.d_batch_stride;
    a = random_array(p.batches * p.a_batch_stride, 1, test.positive);
    b = random_array(int64_t{test.share_b ? 1 : p.batches} * p.n * p.k, 2, test.positive);
    c = random_array(d_elements, 3);
    bias = random_array(p.n, 4);
    if (test.infinite) {
      float const special[3] = {INFINITY, -INFINITY, NAN};
      for (int i = 0; i < 3; ++i) {
        SPLIT_CHECK(cudaMemcpy(a + 7 * p.k * (i + 1) + 5, special + i, 4, cudaMemcpyHostToDevice));
      }
    }
    d = device_array<float>(d_elements);
    ref = device_array<double>(int64_t{p.batches} * p.m * p.n);
    a_packed = packed_array(source_a(p, a));
    b_packed = packed_array(source_b(p, b));
    SPLIT_CHECK(tessera::split_tf32_pack(a_packed, source_a(p, a), nullptr));
    SPLIT_CHECK(tessera::split_tf32_pack(b_packed, source_b(p, b), nullptr));
  }
  ~CaseData() {
    for (void* x : {(void*)a, (void*)b, (void*)c, (void*)bias, (void*)d, (void*)a_packed,
                    (void*)b_packed, (void*)ref}) {
      cudaFree(x);
    }
  }
  void poison() { SPLIT_CHECK(cudaMemset(d, 0xff, d_elements * sizeof(float))); }
};

/// Runs one instance on a case and compares; false on a failure, which is printed.
bool check_instance(GemmInstance const& instance, CaseData& data, double cublas_rms,
                    double* worst) {
  GemmCall call = make_call(data.p, data.a_packed, data.b_packed, data.d);
  if (instance.plain_operands) use_plain(call, data.p, data.a, data.b);
  ReferenceInputs in{data.a, data.b, nullptr, nullptr, 1.25, 0.};
  call.alpha = 1.25f;
  if (instance.has_c) call.c = data.c, call.beta = -0.5f, in.c = data.c, in.beta = -0.5;
  if (instance.has_bias_relu) call.bias = data.bias, in.bias = data.bias;
  run_reference(data.p, in, data.ref);
  data.poison();
  if (!launch(instance, call, workspace_for(instance, call))) return false;
  Comparison const got = compare_to(data.p, data.d, data.ref);
  int const damaged = count_damaged_padding(data.p, data.d);
  *worst = std::max(*worst, got.rms);
  bool const right =
      got.rms <= std::max(3 * cublas_rms, 8.7e-7) && got.mismatch == 0 && damaged == 0;
  if (!right) {
    std::printf("  WRONG %-28s rms %.2e, finite in one only %lld, padding damaged %d\n",
                instance.name, got.rms, static_cast<long long>(got.mismatch), damaged);
  }
  return right;
}

int check_all(cublasHandle_t handle) {
  int failures = 0;
  std::printf("%-34s %9s %9s %9s %2s  (rms relative to fp64)\n", "case", "cublas", "packed",
              "worst", "n");
  for (Case const& test : kCases) {
    CaseData data(test);
    run_reference(data.p, {data.a, data.b, nullptr, nullptr, 1.25, 0.}, data.ref);
    data.poison();
    run_cublas(handle, data.p, data.a, data.b, data.d, 1.25f, 0.f);
    double const cublas_rms = compare_to(data.p, data.d, data.ref).rms;
    double worst = 0, first = -1;
    int wrong = 0, ran = 0;
    for (GemmInstance const* instance : all_instances()) {
      if (test.infinite && instance->has_bias_relu) continue;  // relu makes -inf finite
      if (!accepts(*instance, data.p)) continue;
      ++ran;
      if (!check_instance(*instance, data, cublas_rms, &worst)) ++wrong;
      if (first < 0) first = worst;
    }
    std::printf("%-34s %9.2e %9.2e %9.2e %2d %s\n", test.label, cublas_rms, first, worst, ran,
                wrong == 0 ? "ok" : "FAILED");
    failures += wrong;
  }
  return failures;
}

// -------------------------------------------------------------------------------------------
// timing

/// Median milliseconds of `work(i)` over `rounds` after one warm-up; i rotates the inputs.
double median_ms(int rounds, std::function<void(int)> const& work) {
  std::vector<cudaEvent_t> events(2 * rounds);
  for (auto& event : events) SPLIT_CHECK(cudaEventCreate(&event));
  work(0);
  for (int i = 0; i < rounds; ++i) {
    SPLIT_CHECK(cudaEventRecord(events[2 * i]));
    work(i + 1);
    SPLIT_CHECK(cudaEventRecord(events[2 * i + 1]));
  }
  SPLIT_CHECK(cudaDeviceSynchronize());
  std::vector<float> ms(rounds);
  for (int i = 0; i < rounds; ++i) {
    SPLIT_CHECK(cudaEventElapsedTime(&ms[i], events[2 * i], events[2 * i + 1]));
  }
  for (auto& event : events) cudaEventDestroy(event);
  std::nth_element(ms.begin(), ms.begin() + rounds / 2, ms.end());
  return ms[rounds / 2];
}

struct TimedCase {
  char const* label;
  int m, n, k, batches;
  bool b_k_major;
  int slices = 1;  // > 1: K slices as a batch, then the sum
  int sets = 2;    // of operands; together more than the L2 cache holds
};

std::vector<TimedCase> const kTimed = {
    {"4096^3, B n-major", 4096, 4096, 4096, 1, false},
    {"128 x 512x1024x2048 (m,k,n), B n-major", 512, 2048, 1024, 128, false, 1, 1},
    {"65536x768x3072 (m,n,k), B k-major", 65536, 768, 3072, 1, true, 1, 1},
    {"65536x3072x768 (m,n,k), B k-major", 65536, 3072, 768, 1, true, 1, 1},
    {"256x256, K=524288, B n-major, 32 slices", 256, 256, 524288, 1, false, 32, 1},
};

struct TimedData {
  TimedCase test;
  Problem p;
  std::vector<float*> a, b;
  float *d, *partial, *a_packed, *b_packed;
  double* ref;

  explicit TimedData(TimedCase const& t) : test(t) {
    p = make_problem(t.m, t.n, t.k, t.batches, true, t.b_k_major);
    for (int i = 0; i < t.sets; ++i) {
      a.push_back(random_array(p.batches * p.a_batch_stride, 10 + i));
      b.push_back(random_array(p.batches * p.b_batch_stride, 20 + i));
    }
    d = device_array<float>(p.batches * p.d_batch_stride);
    partial = t.slices > 1 ? device_array<float>(t.slices * p.d_batch_stride) : nullptr;
    a_packed = packed_array(source_a(p, a[0]));
    b_packed = packed_array(source_b(p, b[0]));
    ref = device_array<double>(int64_t{p.batches} * p.m * p.n);
    run_reference(p, {a[0], b[0], nullptr, nullptr, 1., 0.}, ref);
  }
  ~TimedData() {
    for (float* x : a) cudaFree(x);
    for (float* x : b) cudaFree(x);
    for (void* x : {(void*)d, (void*)partial, (void*)a_packed, (void*)b_packed, (void*)ref}) {
      cudaFree(x);
    }
  }
  void pack_a(int i) const {
    SPLIT_CHECK(tessera::split_tf32_pack(a_packed, source_a(p, a[i % a.size()]), nullptr));
  }
  void pack_b(int i) const {
    SPLIT_CHECK(tessera::split_tf32_pack(b_packed, source_b(p, b[i % b.size()]), nullptr));
  }
  GemmCall call(bool plain, int i = 0) const {
    GemmCall c = make_call(p, a_packed, b_packed, d);
    if (plain) use_plain(c, p, a[i % a.size()], b[i % b.size()]);
    if (test.slices > 1) {
      c.k = p.k / test.slices;
      c.batches = test.slices;
      c.a_batch_stride = plain ? c.k * p.a_k_stride : tessera::split_row_elements(c.k);
      c.b_batch_stride = plain ? c.k * p.b_k_stride : tessera::split_row_elements(c.k);
      c.d = partial;
    }
    return c;
  }
  void gemm(GemmInstance const& instance, GemmCall const& c, void* workspace) const {
    if (!launch(instance, c, workspace)) std::exit(3);
    if (test.slices > 1) {
      SPLIT_CHECK(tessera::sum_slices(d, partial, test.slices, p.d_batch_stride, nullptr));
    }
  }
};

void time_instance(GemmInstance const& instance, TimedData const& data, double cublas_ms,
                   double pack_ms) {
  bool const plain = instance.plain_operands;
  GemmCall best = data.call(plain);
  double best_ms = 1e30;
  void* workspace = workspace_for(instance, best);
  for (bool along_m : {false, true}) {
    for (int swizzle : {1, 2, 4, 8}) {
      GemmCall call = best;
      call.raster_along_m = along_m;
      call.swizzle = swizzle;
      double const ms = median_ms(3, [&](int) { data.gemm(instance, call, workspace); });
      if (ms < best_ms) best_ms = ms, best = call;
    }
  }
  double const gemm_ms = median_ms(15, [&](int) { data.gemm(instance, best, workspace); });
  double const total_ms = median_ms(15, [&](int i) {
    GemmCall call = data.call(plain, i);
    call.raster_along_m = best.raster_along_m;
    call.swizzle = best.swizzle;
    if (!plain) data.pack_a(i), data.pack_b(i);
    data.gemm(instance, call, workspace);
  });
  data.pack_a(0);
  data.pack_b(0);
  SPLIT_CHECK(cudaMemset(data.d, 0xff, data.p.batches * data.p.d_batch_stride * sizeof(float)));
  data.gemm(instance, best, workspace);
  Comparison const error = compare_to(data.p, data.d, data.ref);
  double const products = 6. * data.p.m * data.p.n * data.p.k * data.p.batches;
  std::printf("  %-28s %c/%d %8.3f %8.3f %8.3f %6.0f %6.2f %6.2f  %.2e%s\n", instance.name,
              best.raster_along_m ? 'M' : 'N', best.swizzle, gemm_ms, plain ? 0. : pack_ms,
              total_ms, products / gemm_ms * 1e-9, cublas_ms / total_ms, cublas_ms / gemm_ms,
              error.rms, error.mismatch != 0 ? " WRONG" : "");
  std::fflush(stdout);
}

void time_case(cublasHandle_t handle, TimedCase const& test) {
  TimedData const data(test);
  auto const cublas = [&](int i) {
    run_cublas(handle, data.p, data.a[i % data.a.size()], data.b[i % data.b.size()], data.d, 1.f,
               0.f);
  };
  median_ms(300, cublas);  // clocks and power settle
  double const before = median_ms(11, cublas);
  double const pack_a = median_ms(11, [&](int i) { data.pack_a(i); });
  double const pack_b = median_ms(11, [&](int i) { data.pack_b(i); });
  cublas(0);
  double const cublas_rms = compare_to(data.p, data.d, data.ref).rms;
  double const bytes = 12. * data.p.k * data.p.batches;
  std::printf("\n%s\n  cublas fp32 %.3f ms, rms %.2e; split A %.3f ms (%.2f TB/s), B %.3f (%.2f)\n",
              test.label, before, cublas_rms, pack_a, bytes * data.p.m / pack_a * 1e-9, pack_b,
              bytes * data.p.n / pack_b * 1e-9);
  std::printf("  %-28s %3s %8s %8s %8s %6s %6s %6s  rms\n", "instance", "ord", "gemm", "split",
              "total", "TF/s", "ratio", "packed");
  for (GemmInstance const* instance : all_instances()) {
    if (instance->has_c || instance->has_bias_relu || !accepts(*instance, data.p)) continue;
    time_instance(*instance, data, before, pack_a + pack_b);
  }
  std::printf("  cublas fp32 again %.3f ms\n", median_ms(11, cublas));
}

}  // namespace

int main(int argc, char** argv) {
  std::string const what = argc > 1 ? argv[1] : "all";
  cudaDeviceProp device{};
  SPLIT_CHECK(cudaGetDeviceProperties(&device, 0));
  cublasHandle_t handle = nullptr;
  SPLIT_CHECK(cublasCreate(&handle));
  SPLIT_CHECK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  std::printf("%s, %d instances\n", device.name, static_cast<int>(all_instances().size()));
  int failures = 0;
  if (what != "time") failures = check_all(handle);
  if (what != "check") {
    std::printf(
        "\nms; TF/s counts the three tf32 products; ratio = cublas / total, packed = cublas / "
        "gemm\n");
    for (TimedCase const& test : kTimed) time_case(handle, test);
  }
  SPLIT_CHECK(cudaDeviceSynchronize());
  std::printf("\n%s\n", failures == 0 ? "all checks passed" : "CHECKS FAILED");
  return failures == 0 ? 0 : 1;
}
