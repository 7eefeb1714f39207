// The examples of docs/layouts.md are what the code answers.
#include <gtest/gtest.h>
#include <map>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/text.h"
#include "layout/f2_view.h"
#include "layout/image.h"
#include "layout/inverse.h"
#include "layout/max_common.h"
#include "layout/recast.h"
#include "layout/split.h"

namespace tessera {
namespace {

template <class T>
std::string text(const Result<T>& r) {
  return r ? to_string(*r) : "refused";
}
std::string text(const Result<Slice>& r) {
  return r ? fmt::format("{} + {}", to_string(r->layout), r->offset) : "refused";
}
std::string text(const Result<F2View>& r) {
  return r ? to_string(r->matrix) : "refused";
}
std::string text(bool holds) {
  return holds ? "yes" : "no";
}

struct Arguments {
  std::string first, second;
  [[nodiscard]] Layout a() const { return parse_layout(first).value(); }
  [[nodiscard]] SwizzledLayout s() const { return parse_swizzled_layout(first).value(); }
  [[nodiscard]] Layout b() const { return parse_layout(second).value(); }
  [[nodiscard]] Tiler tiler() const { return parse_tiler(second).value(); }
  [[nodiscard]] bool swizzled() const { return first.starts_with("swizzle"); }
};

std::string recast_text(const Arguments& x) {
  std::string_view bits = x.second;
  const std::vector<int64_t> n = flatten(parse_int_tuple(bits).value());
  return x.swizzled() ? text(recast(x.s(), n.at(0), n.at(1)))
                      : text(recast(x.a(), n.at(0), n.at(1)));
}
std::string slice_text(const Arguments& x) {
  const Coordinate c = parse_coordinate(x.second).value();
  return x.swizzled() ? text(slice(c, x.s())) : text(slice(c, x.a()));
}

std::string answer(const std::string& op, const Arguments& x) {
  using Answer = std::function<std::string(const Arguments&)>;
  static const std::map<std::string, Answer> answers = {
      {"coalesce", [](auto& x) { return to_string(coalesce(x.a())); }},
      {"compose", [](auto& x) { return text(compose(x.a(), x.tiler())); }},
      {"complement", [](auto& x) { return text(complement(x.a(), std::stoll(x.second))); }},
      {"right_inverse", [](auto& x) { return to_string(right_inverse(x.a())); }},
      {"left_inverse", [](auto& x) { return text(left_inverse(x.a())); }},
      {"slice", slice_text},
      {"recast", recast_text},
      {"max_common_layout", [](auto& x) { return to_string(max_common_layout(x.s(), x.b())); }},
      {"logical_divide", [](auto& x) { return text(logical_divide(x.a(), x.tiler())); }},
      {"zipped_divide", [](auto& x) { return text(zipped_divide(x.a(), x.tiler())); }},
      {"tiled_divide", [](auto& x) { return text(tiled_divide(x.a(), x.tiler())); }},
      {"flat_divide", [](auto& x) { return text(flat_divide(x.a(), x.tiler())); }},
      {"logical_product", [](auto& x) { return text(logical_product(x.a(), x.tiler())); }},
      {"blocked_product", [](auto& x) { return text(blocked_product(x.a(), x.b())); }},
      {"raked_product", [](auto& x) { return text(raked_product(x.a(), x.b())); }},
      {"image_size", [](auto& x) { return std::to_string(image_size(x.a())); }},
      {"covered_prefix", [](auto& x) { return std::to_string(covered_prefix(x.a())); }},
      {"is_injective", [](auto& x) { return text(is_injective(x.a())); }},
      {"to_f2", [](auto& x) { return text(to_f2(x.s())); }},
      {"splits",
       [](auto& x) {
         const Swizzle s = parse_swizzle(x.first).value();
         return text(splits(s, std::stoll(x.second)).has_value());
       }},
  };
  const auto found = answers.find(op);
  return found == answers.end() ? "no such operation" : found->second(x);
}

TEST(Docs, ExamplesAreWhatTheCodeAnswers) {
  bool code = false;
  int examples = 0;
  for (const std::string& line : split(read_file(source_folder() + "/docs/layouts.md"), '\n')) {
    if (line.starts_with("```")) {
      code = !code;
      continue;
    }
    if (!code) continue;
    const std::size_t open = line.find('(');
    const std::size_t close = line.find(") = ");
    ASSERT_NE(close, std::string::npos) << line;
    const std::string arguments = line.substr(open + 1, close - open - 1);
    // A comma and a space part arguments; within a layout there are no spaces.
    const std::size_t comma = arguments.find(", ");
    Arguments x{arguments.substr(0, comma), ""};
    if (comma != std::string::npos) x.second = arguments.substr(comma + 2);
    EXPECT_EQ(answer(line.substr(0, open), x), line.substr(close + 4)) << line;
    ++examples;
  }
  EXPECT_GT(examples, 25);
}

}  // namespace
}  // namespace tessera
