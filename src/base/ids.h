// Strong indices: an Id<Tag> cannot be mixed up with another kind of index or with a plain int.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tessera {

template <class Tag>
struct Id {
  int32_t index = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<int32_t>(i)) {}
  [[nodiscard]] constexpr bool valid() const { return index >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace tessera

template <class Tag>
struct std::hash<tessera::Id<Tag>> {
  std::size_t operator()(tessera::Id<Tag> id) const noexcept {
    return std::hash<int32_t>{}(id.index);
  }
};
