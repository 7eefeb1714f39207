// The text of `means` for tensors that lack some of the dimensions that the kernel's text indexes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::language {

/// `means` with the indices taken out of `tensor[...]` of dimensions that the tensor lacks: has[d]
/// says whether it has dimension d. "C[b, i] = A[b, i]" for A without its first dimension:
/// "C[b, i] = A[i]". Indices that are not as many as `has` stay as they are.
std::string without_dimensions(std::string_view means, std::string_view tensor,
                               const std::vector<bool>& has);

/// `means` with the numbers of the kernel's constants in the place of their names.
std::string with_numbers(std::string_view means, const std::map<std::string, std::string>& numbers);

}  // namespace tessera::language
