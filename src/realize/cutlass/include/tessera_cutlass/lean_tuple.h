// Elements of a cute::tuple: one function and one class each. Included by cute/container/tuple.hpp
// (lean.h) behind the tuple itself.
#pragma once

#include <tuple>

namespace tessera_cutlass {

template <size_t I, class... T>
struct Nth : std::tuple_element<I, std::tuple<T...>> {};
template <class A, class... Rest>
struct Nth<0, A, Rest...> {
  using type = A;
};
template <class A, class B, class... Rest>
struct Nth<1, A, B, Rest...> {
  using type = B;
};
template <class A, class B, class C, class... Rest>
struct Nth<2, A, B, C, Rest...> {
  using type = C;
};
template <class A, class B, class C, class D, class... Rest>
struct Nth<3, A, B, C, D, Rest...> {
  using type = D;
};
template <class A, class B, class C, class D, class E, class... Rest>
struct Nth<4, A, B, C, D, E, Rest...> {
  using type = E;
};

/// The stored element: elements without data are not stored, but count.
template <size_t I, class Stored>
CUTE_HOST_DEVICE constexpr auto& element(Stored& s) noexcept {
  if constexpr (I == 0) {
    return s.first_;
  } else if constexpr (I == 1) {
    return s.rest_.first_;
  } else if constexpr (I == 2) {
    return s.rest_.rest_.first_;
  } else {
    return element<I - 3>(s.rest_.rest_.rest_);
  }
}

}  // namespace tessera_cutlass

namespace cute {

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr decltype(auto) get(tuple<T...> const& t) noexcept {
  static_assert(I < sizeof...(T), "Index out of range");
  using E = typename tessera_cutlass::Nth<I, T...>::type;
  if constexpr (__is_empty(E)) {
    return E{};
  } else {
    return static_cast<E const&>(tessera_cutlass::element<I>(t));
  }
}

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr decltype(auto) get(tuple<T...>& t) noexcept {
  static_assert(I < sizeof...(T), "Index out of range");
  using E = typename tessera_cutlass::Nth<I, T...>::type;
  if constexpr (__is_empty(E)) {
    return E{};
  } else {
    return static_cast<E&>(tessera_cutlass::element<I>(t));
  }
}

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr decltype(auto) get(tuple<T...>&& t) noexcept {
  static_assert(I < sizeof...(T), "Index out of range");
  using E = typename tessera_cutlass::Nth<I, T...>::type;
  if constexpr (__is_empty(E)) {
    return E{};
  } else {
    return static_cast<E&&>(tessera_cutlass::element<I>(t));
  }
}

}  // namespace cute
