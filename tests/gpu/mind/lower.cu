// Behind product.cu, whose run() it calls.
// What is on and below the diagonal: a strip of STRIP rows is computed as far as its last row needs; the rest is zero.
constexpr int M = 8192, K = 1024, STRIP = 1024;

__global__ void clear_above(Element* d) {
  const int64_t row = blockIdx.y;
  const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (column + 7 <= row) return;
  Element* at = d + row * M + column;
  if (column > row) {
    *reinterpret_cast<uint4*>(at) = uint4{0, 0, 0, 0};
    return;
  }
  for (int i = 0; i < 8; ++i)
    if (column + i > row) at[i] = Element(0.0f);
}

TESSERA_KERNEL_API int tessera_run(const tessera_launch* launch, void*, void* stream) {
  const auto* q = static_cast<const Element*>(launch->tensors[0]);
  const void* k = launch->tensors[1];
  auto* d = static_cast<Element*>(launch->tensors[2]);
  for (int row = 0; row < M; row += STRIP) {
    const int columns = row + STRIP;
    if (run(q + int64_t(row) * K, k, d + int64_t(row) * M, STRIP, columns, K, M, stream)) return 1;
  }
  clear_above<<<dim3(M / 8 / 256, M), 256, 0, static_cast<cudaStream_t>(stream)>>>(d);
  if (cudaGetLastError() == cudaSuccess) return 0;
  error = "clear_above did not start";
  return 1;
}
