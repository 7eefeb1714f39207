// What CuTe asks of a tuple's type, answered at once. Included at the end of
// cute/container/tuple.hpp (lean.h).
#pragma once

namespace cute {

template <class... T>
struct is_tuple<tuple<T...>> : bool_constant<true> {};

template <class... T>
struct tuple_size<tuple<T...>, void> : integral_constant<size_t, sizeof...(T)> {};

template <size_t I, class... T>
struct tuple_element<I, tuple<T...>, void> : tessera_cutlass::Nth<I, T...> {};

}  // namespace cute
