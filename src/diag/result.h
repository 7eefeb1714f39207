// Result<T>: a value, or the Diagnostic that says why there is none. Exceptions are left for our
// own faults.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "diag/diagnostic.h"

namespace tessera {

template <class T>
using Result = tl::expected<T, Diagnostic>;
using Status = Result<void>;

tl::unexpected<Diagnostic> error(Diagnostic d);

/// Returns early with the diagnostic of a failed Result; else defines `name` as its value.
#define TESSERA_CONCAT_(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_(a, b)
#define TESSERA_TRY(name, ...)                                                     \
  auto TESSERA_CONCAT(result_, __LINE__) = (__VA_ARGS__);                          \
  if (!TESSERA_CONCAT(result_, __LINE__))                                          \
    return ::tessera::error(std::move(TESSERA_CONCAT(result_, __LINE__)).error()); \
  auto name = std::move(*TESSERA_CONCAT(result_, __LINE__))
#define TESSERA_CHECK(...)                                                                        \
  if (auto TESSERA_CONCAT(status_, __LINE__) = (__VA_ARGS__); !TESSERA_CONCAT(status_, __LINE__)) \
  return ::tessera::error(std::move(TESSERA_CONCAT(status_, __LINE__)).error())

}  // namespace tessera
