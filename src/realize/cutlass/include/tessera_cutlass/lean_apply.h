// What CuTe's algorithms on tuples are made of. Included by cute/algorithm/tuple_algorithms.hpp
// (lean.h) before its own.
#pragma once

namespace tessera_cutlass {

// One type each, where a lambda would be another one in every function that has it.

struct MakeTuple {
  template <class... T>
  CUTE_HOST_DEVICE constexpr auto operator()(T const&... t) const {
    TESSERA_RETURN(cute::make_tuple(t...))
  }
};

template <class... Tuples>
struct Concatenated;
template <>
struct Concatenated<> {
  using type = cute::tuple<>;
};
template <class... A>
struct Concatenated<cute::tuple<A...>> {
  using type = cute::tuple<A...>;
};
template <class... A, class... B>
struct Concatenated<cute::tuple<A...>, cute::tuple<B...>> {
  using type = cute::tuple<A..., B...>;
};
template <class... A, class... B, class... C>
struct Concatenated<cute::tuple<A...>, cute::tuple<B...>, cute::tuple<C...>> {
  using type = cute::tuple<A..., B..., C...>;
};
template <class... A, class... B, class... C, class... D, class... Rest>
struct Concatenated<cute::tuple<A...>, cute::tuple<B...>, cute::tuple<C...>, cute::tuple<D...>,
                    Rest...> : Concatenated<cute::tuple<A..., B..., C..., D...>, Rest...> {};

/// A cute::tuple whose type says all of it.
template <class T>
inline constexpr bool is_constant_tuple = false;
template <class... E>
inline constexpr bool is_constant_tuple<cute::tuple<E...>> = (true && ... && __is_empty(E));

template <class A, class B>
inline constexpr bool is_constant_pair = false;
template <class... A, class... B>
inline constexpr bool is_constant_pair<cute::tuple<A...>, cute::tuple<B...>> =
    sizeof...(A) == sizeof...(B) && is_constant_tuple<cute::tuple<A...>> &&
    is_constant_tuple<cute::tuple<B...>>;

struct Concatenate {
  template <class... T>
  CUTE_HOST_DEVICE constexpr auto operator()(T const&... t) const {
    if constexpr ((true && ... && is_constant_tuple<T>)) {
      return typename Concatenated<T...>::type{};
    } else {
      return cute::tuple_cat(t...);
    }
  }
};

/// get() hands out elements without data as new ones: so does this, without get().
template <class... A, class F, class G>
CUTE_HOST_DEVICE constexpr auto apply_constant(cute::tuple<A...> const&, F& f, G& g) {
  TESSERA_RETURN(g(f(A{})...))
}
template <class... A, class... B, class F, class G>
CUTE_HOST_DEVICE constexpr auto apply_constant(cute::tuple<A...> const&, cute::tuple<B...> const&,
                                               F& f, G& g) {
  TESSERA_RETURN(g(f(A{}, B{})...))
}

template <class V, class F>
CUTE_HOST_DEVICE constexpr auto fold(V const& v, F&) {
  return v;
}
template <class V, class F, class A>
CUTE_HOST_DEVICE constexpr auto fold(V const& v, F& f, A&& a) {
  TESSERA_RETURN(f(v, static_cast<A&&>(a)))
}
template <class V, class F, class A, class B, class... Rest>
CUTE_HOST_DEVICE constexpr auto fold(V const& v, F& f, A&& a, B&& b, Rest&&... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    TESSERA_RETURN(f(f(v, static_cast<A&&>(a)), static_cast<B&&>(b)))
  } else {
    TESSERA_RETURN(tessera_cutlass::fold(f(f(v, static_cast<A&&>(a)), static_cast<B&&>(b)), f,
                                         static_cast<Rest&&>(rest)...))
  }
}

}  // namespace tessera_cutlass
