#include "replay/output_rows.h"

#include "base/text.h"

namespace tessera::replay {

std::string OutputRow::name(const std::string& tensor, int64_t e) {
  index[column] = std::to_string(e);
  return tensor + "[" + join(index, ", ") + "]";
}

void each_output_row(const check::Attention& means, const Lie& to, check::Numbers& at,
                     const std::function<void(OutputRow&)>& see) {
  std::vector<std::string> names;
  for (const syntax::Expr& e : means.o.at) names.push_back(e.as<syntax::Name>()->id);
  const auto column = static_cast<std::size_t>(means.o.place(means.column));
  int64_t rows = 1;
  for (std::size_t d = 0; d < names.size(); ++d)
    if (d != column) rows *= to.extents[d];
  for (int64_t n = 0; n < rows; ++n) {
    OutputRow row{to.extents[column], 0, to.strides[column], std::vector<std::string>(names.size()),
                  column};
    int64_t rest = n;
    for (std::size_t d = names.size(); d-- > 0;) {
      const int64_t i = d == column ? 0 : rest % to.extents[d];
      if (d != column) rest /= to.extents[d];
      at[names[d]] = i;
      row.index[d] = std::to_string(i);
      row.place += i * to.strides[d];
    }
    see(row);
  }
}

}  // namespace tessera::replay
