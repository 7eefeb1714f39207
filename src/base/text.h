// Small text helpers: splitting, joining, aligned tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view text);
/// Letters, digits and "_", of ASCII.
bool is_name_character(char c);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

/// Edit distance (Levenshtein), for "did you mean" hints.
int edit_distance(std::string_view a, std::string_view b);
/// The entry of `choices` nearest to `word` by edit distance, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);

/// Rows of cells as an aligned text table with a header line; numbers (cells that start with a
/// digit, sign or dot) are right-aligned.
std::string render_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows);

}  // namespace tessera
