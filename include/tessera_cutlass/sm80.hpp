// CUTLASS 2.x for Ampere: multistage cp.async mainloop and the visitor epilogue.
#pragma once

#include "cutlass/cutlass.h"
//
#include "cutlass/gemm/gemm.h"
//
#include "cutlass/gemm/device/gemm_universal_base.h"
#include "cutlass/gemm/kernel/default_gemm_universal_with_visitor.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle.h"
// After the kernels: it uses names that they declare.
#include "cutlass/epilogue/threadblock/fusion/visitors.hpp"
//
#include "cute/tensor.hpp"
#include "tessera_cutlass/abi.hpp"

namespace tessera_cutlass {

/// A library of one 2.x product: its workspace and its launch.
template <class Gemm, class Arguments>
int64_t workspace_bytes_2x(const Arguments& arguments) {
  if (Gemm::can_implement(arguments) != cutlass::Status::kSuccess) {
    return fail(
        "CUTLASS cannot implement this problem with this configuration (alignment or shape)");
  }
  return align256(static_cast<int64_t>(Gemm::get_workspace_size(arguments)));
}

template <class Gemm, class Arguments>
int enqueue_2x(const Arguments& arguments, void* workspace, cudaStream_t stream) {
  Gemm gemm;
  cutlass::Status status = gemm.initialize(arguments, workspace, stream);
  if (status == cutlass::Status::kSuccess) status = gemm.run(stream);
  if (status == cutlass::Status::kSuccess) return 0;
  return fail("CUTLASS: %s", cutlassGetStatusString(status));
}

}  // namespace tessera_cutlass
