// A product by cublasLt. Integers: m, n, k, l, two unused, fast_accum (fp8: sums in the tensor
// core's own precision), algo; then tensor, offset, ld, batch
// for A, B, D and the epilogue's operands. D is row-major, so that cublasLt (column-major) computes
// D^T = B A^T.
#pragma once

#include <cublasLt.h>
#include <map>
#include <mutex>
#include <vector>

#include "tessera/per_device.h"
#include "tessera_cutlass/abi.hpp"

namespace tessera_cutlass {

struct LtKind {
  cudaDataType_t ab, d;
  cublasComputeType_t compute;
  bool a_k_contiguous, b_k_contiguous;
  cublasLtEpilogue_t epilogue;
  float alpha;
  int bias, source;  // operand numbers, -1 without
  int int_count;
};

inline int lt_bytes(cudaDataType_t t) {
  return t == CUDA_R_32F ? 4 : t == CUDA_R_8F_E4M3 ? 1 : 2;
}

struct LtPlan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found;
};

inline int lt_check(cublasStatus_t status, const char* what) {
  return status == CUBLAS_STATUS_SUCCESS ? 0
                                         : fail("%s: %s", what, cublasLtGetStatusString(status));
}

/// A handle belongs to the device that was current when it was made.
inline cublasLtHandle_t lt_handle() {
  static tessera::PerDevice<cublasLtHandle_t> handles;
  int device = 0;
  if (check(cudaGetDevice(&device), "cudaGetDevice")) return nullptr;
  const cublasLtHandle_t* const found = handles.get(
      device, [](cublasLtHandle_t& h) { return cublasLtCreate(&h) != CUBLAS_STATUS_SUCCESS; });
  return found != nullptr ? *found : nullptr;
}

constexpr size_t lt_workspace_limit = size_t{64} << 20;

inline int lt_layout(cublasLtMatrixLayout_t* layout, cudaDataType_t type, int64_t rows,
                     int64_t columns, int64_t ld, int64_t l, int64_t batch) {
  if (lt_check(cublasLtMatrixLayoutCreate(layout, type, rows, columns, ld),
               "cublasLtMatrixLayoutCreate"))
    return -1;
  const int32_t count = static_cast<int32_t>(l);
  cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                   sizeof count);
  cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch,
                                   sizeof batch);
  return 0;
}

inline int lt_make_plan(const LtKind& kind, const tessera_launch* launch, LtPlan& plan) {
  const int64_t* v = launch->ints;
  const int64_t m = v[0], n = v[1], k = v[2], l = v[3];
  const int64_t *a = v + 8, *b = v + 12, *d = v + 16;
  const int64_t* c = kind.source >= 0 ? v + 20 + 4 * kind.source : d;
  if (lt_check(cublasLtMatmulDescCreate(&plan.operation, kind.compute, CUDA_R_32F),
               "cublasLtMatmulDescCreate"))
    return -1;
  const cublasOperation_t first = kind.b_k_contiguous ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = kind.a_k_contiguous ? CUBLAS_OP_N : CUBLAS_OP_T;
  cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                 sizeof second);
  cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind.epilogue,
                                 sizeof kind.epilogue);
  if (kind.ab == CUDA_R_8F_E4M3) {
    const auto fast = static_cast<int8_t>(v[6]);
    cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                   sizeof fast);
  }
  if (kind.bias >= 0) {
    cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &kind.d,
                                   sizeof kind.d);
  }
  const bool bk = kind.b_k_contiguous, ak = kind.a_k_contiguous;
  if (lt_layout(&plan.a, kind.ab, bk ? k : n, bk ? n : k, b[2], l, b[3]) ||
      lt_layout(&plan.b, kind.ab, ak ? k : m, ak ? m : k, a[2], l, a[3]) ||
      lt_layout(&plan.c, kind.d, n, m, c[2], l, c[3]) ||
      lt_layout(&plan.d, kind.d, n, m, d[2], l, d[3])) {
    return -1;
  }
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  const size_t limit = lt_workspace_limit;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit,
                                       sizeof limit);
  cublasLtMatmulHeuristicResult_t results[16];
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      lt_handle(), plan.operation, plan.a, plan.b, plan.c, plan.d, preference, 16, results, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  for (int i = 0; i < count; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS) plan.found.push_back(results[i]);
  }
  return lt_check(status, "cublasLtMatmulAlgoGetHeuristic");
}

/// The plan of these integers on the current device, made once; null with the reason in
/// last_error().
inline const LtPlan* lt_plan(const LtKind& kind, const tessera_launch* launch) {
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, LtPlan> plans;
  if (launch->int_count != kind.int_count) {
    fail("expected %d integers, got %d", kind.int_count, launch->int_count);
    return nullptr;
  }
  if (lt_handle() == nullptr) {
    fail("cublasLtCreate failed");
    return nullptr;
  }
  std::vector<int64_t> key(launch->ints, launch->ints + launch->int_count);
  key[7] = 0;  // every algorithm of one problem shares the plan
  int device = 0;
  if (check(cudaGetDevice(&device), "cudaGetDevice")) return nullptr;
  key.push_back(device);
  const std::lock_guard lock(mutex);
  auto [it, added] = plans.try_emplace(key);
  if (added && lt_make_plan(kind, launch, it->second)) {
    plans.erase(it);
    return nullptr;
  }
  if (launch->ints[7] >= static_cast<int64_t>(it->second.found.size())) {
    fail("the heuristics offer %d algorithms", static_cast<int>(it->second.found.size()));
    return nullptr;
  }
  return &it->second;
}

inline int64_t lt_workspace(const LtKind& kind, const tessera_launch* launch) {
  const LtPlan* plan = lt_plan(kind, launch);
  if (plan == nullptr) return -1;
  return align256(
      static_cast<int64_t>(plan->found[static_cast<size_t>(launch->ints[7])].workspaceSize));
}

inline int lt_run(const LtKind& kind, const tessera_launch* launch, void* workspace,
                  cudaStream_t stream) {
  const LtPlan* plan = lt_plan(kind, launch);
  if (plan == nullptr) return -1;
  const auto& choice = plan->found[static_cast<size_t>(launch->ints[7])];
  const Matrix a = matrix(launch, workspace, 8, lt_bytes(kind.ab));
  const Matrix b = matrix(launch, workspace, 12, lt_bytes(kind.ab));
  const Matrix d = matrix(launch, workspace, 16, lt_bytes(kind.d));
  const Matrix c =
      kind.source >= 0 ? matrix(launch, workspace, 20 + 4 * kind.source, lt_bytes(kind.d)) : d;
  static std::mutex mutex;  // the bias pointer is a part of the shared operation
  const std::lock_guard lock(mutex);
  if (kind.bias >= 0) {
    const void* bias = matrix(launch, workspace, 20 + 4 * kind.bias, lt_bytes(kind.d)).data;
    cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                   sizeof bias);
  }
  const float beta = kind.source >= 0 ? 1.0f : 0.0f;
  return lt_check(cublasLtMatmul(lt_handle(), plan->operation, &kind.alpha, b.data, plan->a, a.data,
                                 plan->b, &beta, c.data, plan->c, d.data, plan->d, &choice.algo,
                                 workspace, choice.workspaceSize, stream),
                  "cublasLtMatmul");
}

}  // namespace tessera_cutlass
