// Prints what CuTe says of the instructions that src/arch has records of, a line each: a name, then
// a layout or numbers. Read by src/arch/cute_test.cpp; host code alone.
#include <cstdio>
#include <cute/atom/copy_traits_sm90.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm89.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>
#include <utility>

using namespace cute;

template <class L>
void show(const char* name, const char* what, L layout) {
  std::printf("%s %s ", name, what);
  print(layout);
  std::printf("\n");
}

// Products: operands' layouts of (thread, value).
template <class Op>
void show_product(const char* name) {
  using T = MMA_Traits<Op>;
  show(name, "a", typename T::ALayout{});
  show(name, "b", typename T::BLayout{});
  show(name, "c", typename T::CLayout{});
}

constexpr auto K = SM90::GMMA::Major::K;
#define WGMMA_16(N, TYPES, ...)                                                                 \
  show_product<SM90::GMMA::MMA_64x##N##x16_##TYPES##_SS<K, K>>("wgmma." __VA_ARGS__ ".ss/" #N); \
  show_product<SM90::GMMA::MMA_64x##N##x16_##TYPES##_RS<K, K>>("wgmma." __VA_ARGS__ ".rs/" #N);
#define WGMMA_TN(N, DEPTH, TYPES, ...)                                                    \
  show_product<SM90::GMMA::MMA_64x##N##x##DEPTH##_##TYPES##_SS_TN<>>("wgmma." __VA_ARGS__ \
                                                                     ".ss/" #N);          \
  show_product<SM90::GMMA::MMA_64x##N##x##DEPTH##_##TYPES##_RS_TN<>>("wgmma." __VA_ARGS__ \
                                                                     ".rs/" #N);
#define WGMMA_S8(N, TYPES, ...)                                                              \
  show_product<SM90::GMMA::MMA_64x##N##x32_##TYPES##_SS_TN>("wgmma." __VA_ARGS__ ".ss/" #N); \
  show_product<SM90::GMMA::MMA_64x##N##x32_##TYPES##_RS_TN>("wgmma." __VA_ARGS__ ".rs/" #N);

void wgmma_products() {
  WGMMA_16(8, F16F16F16, "f16.f16.f16")
  WGMMA_16(128, F16F16F16, "f16.f16.f16")
  WGMMA_16(8, F32BF16BF16, "f32.bf16.bf16")
  WGMMA_16(256, F32BF16BF16, "f32.bf16.bf16")
  WGMMA_TN(192, 8, F32TF32TF32, "f32.tf32.tf32")
  WGMMA_TN(64, 32, F32E4M3E4M3, "f32.e4m3.e4m3")
  WGMMA_TN(64, 32, F32E5M2E4M3, "f32.e5m2.e4m3")
  WGMMA_TN(32, 32, F16E4M3E4M3, "f16.e4m3.e4m3")
  WGMMA_S8(128, S32S8S8, "s32.s8.s8")
  WGMMA_S8(64, S32U8S8, "s32.u8.s8")
  WGMMA_S8(256, S32U8U8, "s32.u8.u8")
}

// The accumulators of every width, those without a struct by default as well.
template <int... I>
void accumulators(std::integer_sequence<int, I...>) {
  (show("accumulators", std::to_string(8 * (I + 1)).c_str(),
        SM90::GMMA::CLayout_64xN<8 * (I + 1)>{}),
   ...);
}

void warp_products() {
  show_product<SM80_16x8x8_F16F16F16F16_TN>("mma.m16n8k8.f16.f16.f16");
  show_product<SM80_16x8x16_F16F16F16F16_TN>("mma.m16n8k16.f16.f16.f16");
  show_product<SM80_16x8x8_F32F16F16F32_TN>("mma.m16n8k8.f32.f16.f16");
  show_product<SM80_16x8x16_F32F16F16F32_TN>("mma.m16n8k16.f32.f16.f16");
  show_product<SM80_16x8x8_F32BF16BF16F32_TN>("mma.m16n8k8.f32.bf16.bf16");
  show_product<SM80_16x8x16_F32BF16BF16F32_TN>("mma.m16n8k16.f32.bf16.bf16");
  show_product<SM80_16x8x4_F32TF32TF32F32_TN>("mma.m16n8k4.f32.tf32.tf32");
  show_product<SM80_16x8x8_F32TF32TF32F32_TN>("mma.m16n8k8.f32.tf32.tf32");
  show_product<SM89_16x8x32_F32E4M3E4M3F32_TN>("mma.m16n8k32.f32.e4m3.e4m3");
  show_product<SM89_16x8x32_F16E5M2E4M3F16_TN>("mma.m16n8k32.f16.e5m2.e4m3");
  show_product<SM80_16x8x16_S32S8S8S32_TN>("mma.m16n8k16.s32.s8.s8");
  show_product<SM80_16x8x32_S32S8S8S32_TN>("mma.m16n8k32.s32.s8.s8");
  show_product<SM80_16x8x32_S32U8S8S32_TN_SATURATE>("mma.m16n8k32.s32.u8.s8.satfinite");
}

template <class Op>
void show_move(const char* name) {
  using T = Copy_Traits<Op>;
  show(name, "source", typename T::SrcLayout{});
  show(name, "destination", typename T::DstLayout{});
}

void matrix_moves() {
  show_move<SM75_U32x1_LDSM_N>("ldmatrix/1");
  show_move<SM75_U32x2_LDSM_N>("ldmatrix/2");
  show_move<SM75_U32x4_LDSM_N>("ldmatrix/4");
  show_move<SM75_U16x2_LDSM_T>("ldmatrix.trans/1");
  show_move<SM75_U16x4_LDSM_T>("ldmatrix.trans/2");
  show_move<SM75_U16x8_LDSM_T>("ldmatrix.trans/4");
  show_move<SM90_U32x1_STSM_N>("stmatrix/1");
  show_move<SM90_U32x2_STSM_N>("stmatrix/2");
  show_move<SM90_U32x4_STSM_N>("stmatrix/4");
  show_move<SM90_U16x2_STSM_T>("stmatrix.trans/1");
  show_move<SM90_U16x4_STSM_T>("stmatrix.trans/2");
  show_move<SM90_U16x8_STSM_T>("stmatrix.trans/4");
}

// Shared memory: the byte of every element of a tile, and the descriptor of each instruction's
// operand along k with the byte where it starts.
alignas(65536) char memory[65536];

template <class T, SM90::GMMA::Major Major, class Atom, int MN, int Depth>
void show_tile(const char* name, Atom atom, Int<MN>, Int<Depth>) {
  const auto layout = tile_to_shape(atom, Shape<Int<MN>, Int<Depth>>{});
  const auto t = make_tensor(make_smem_ptr(reinterpret_cast<T*>(memory)), layout);
  std::printf("tile/%s %d %d", name, MN, Depth);
  for (int k = 0; k < Depth; ++k)
    for (int mn = 0; mn < MN; ++mn)
      std::printf(" %d", int(reinterpret_cast<const char*>(&t(mn, k)) - memory));
  std::printf("\n");
  constexpr int step = 32 / int(sizeof(T));
  for (int i = 0; i < Depth / step; ++i) {
    const auto one = local_tile(t, Shape<Int<MN>, Int<step>>{}, make_coord(0, i));
    const uint64_t bits = SM90::GMMA::make_gmma_desc<Major>(one).desc_;
    const auto start = reinterpret_cast<const char*>(raw_pointer_cast(one.data())) - memory;
    std::printf("\ndescriptor/%s %d %d %d %llx %d\n", name, MN, Depth, i * step,
                static_cast<unsigned long long>(bits), int(start));
  }
}

void shared_tiles() {
  using namespace SM90::GMMA;
  show_tile<half_t, Major::K>("f16.k.none", Layout_K_INTER_Atom<half_t>{}, Int<64>{}, Int<64>{});
  show_tile<half_t, Major::K>("f16.k.32B", Layout_K_SW32_Atom<half_t>{}, Int<64>{}, Int<64>{});
  show_tile<half_t, Major::K>("f16.k.64B", Layout_K_SW64_Atom<half_t>{}, Int<64>{}, Int<64>{});
  show_tile<half_t, Major::K>("f16.k.128B", Layout_K_SW128_Atom<half_t>{}, Int<64>{}, Int<128>{});
  show_tile<half_t, Major::K>("f16.k.128B", Layout_K_SW128_Atom<half_t>{}, Int<24>{}, Int<64>{});
  show_tile<int8_t, Major::K>("s8.k.128B", Layout_K_SW128_Atom<int8_t>{}, Int<64>{}, Int<128>{});
  show_tile<int8_t, Major::K>("s8.k.none", Layout_K_INTER_Atom<int8_t>{}, Int<64>{}, Int<64>{});
  show_tile<tfloat32_t, Major::K>("tf32.k.128B", Layout_K_SW128_Atom<tfloat32_t>{}, Int<64>{},
                                  Int<32>{});
  show_tile<half_t, Major::MN>("f16.mn.none", Layout_MN_INTER_Atom<half_t>{}, Int<128>{},
                               Int<64>{});
  show_tile<half_t, Major::MN>("f16.mn.32B", Layout_MN_SW32_Atom<half_t>{}, Int<128>{}, Int<64>{});
  show_tile<half_t, Major::MN>("f16.mn.64B", Layout_MN_SW64_Atom<half_t>{}, Int<128>{}, Int<64>{});
  show_tile<half_t, Major::MN>("f16.mn.128B", Layout_MN_SW128_Atom<half_t>{}, Int<128>{},
                               Int<64>{});
  show_tile<half_t, Major::MN>("f16.mn.128B", Layout_MN_SW128_Atom<half_t>{}, Int<256>{},
                               Int<32>{});
}

int main() {
  wgmma_products();
  accumulators(std::make_integer_sequence<int, 32>{});
  warp_products();
  matrix_moves();
  shared_tiles();
}
