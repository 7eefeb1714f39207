// What toolchain/lean_cutlass puts into CuTe's headers: the same results by fewer functions and
// classes, which is what nvcc's front end spends its time on.
#pragma once

// A value whose type says all of it is made from that type: what would have computed it is never
// called, so that no code is made of it. Only for functions that do nothing but return.
#define TESSERA_RETURN(...)                 \
  {                                         \
    using Returned = decltype(__VA_ARGS__); \
    if constexpr (__is_empty(Returned)) {   \
      return Returned{};                    \
    } else {                                \
      return __VA_ARGS__;                   \
    }                                       \
  }

// One name instead of three classes, where the compiler has one. Host compilers may not, and read
// what nvcc's host side has read.
#ifdef __CUDA_ARCH__
#define TESSERA_REMOVE_CVREF(...) __remove_cvref(__VA_ARGS__)
#else
#define TESSERA_REMOVE_CVREF(...) remove_cv_t<remove_reference_t<__VA_ARGS__>>
#endif
