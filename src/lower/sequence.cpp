#include "lower/sequence.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

#include "lower/codes.h"
#include "lower/text.h"

namespace tessera::lower {
namespace {

const core::Tensor* tensor_of(const core::Kernel& k, const std::string& name) {
  const auto found = std::find_if(k.tensors.begin(), k.tensors.end(),
                                  [&](const core::Tensor& t) { return t.name == name; });
  return found == k.tensors.end() ? nullptr : &*found;
}

}  // namespace

Status check_sequence(const Sequence& s) {
  const core::Tensor *from = tensor_of(s.first, s.between), *to = tensor_of(s.second, s.between);
  const auto refuse = [&](std::string_view why) {
    return error(fail(bad_launch, "`{}` does not pass from `{}` to `{}`: {}", s.between,
                      s.first.name, s.second.name, why)
                     .expect("an output of the first and an input of the second, of one element "
                             "type, and no other workspace"));
  };
  if (from == nullptr || to == nullptr) return refuse("one of them has no such tensor");
  if (from->access != core::Access::output || to->access != core::Access::input)
    return refuse("it is not written by the first and read by the second");
  if (from->element != to->element) return refuse("it has two element types");
  if (s.first.name == s.second.name) return refuse("they have one name");
  for (const core::Kernel* k : {&s.first, &s.second})
    for (const core::Tensor& t : k->tensors)
      if (t.access == core::Access::workspace) return refuse("there is another workspace");
  return {};
}

std::string sequence_space(std::size_t part) {
  return part == 0 ? "tessera_first" : "tessera_second";
}

namespace {

/// `agrees(launch)`: whether it has all integers, and those that are one are equal.
Status write_agreement(const Sequence& s, const std::vector<std::string>& ints, Text& text) {
  const auto place = [&](const core::Kernel& k, const std::string& name) {
    const auto found = std::find(ints.begin(), ints.end(), k.name + "_" + name);
    return found == ints.end() ? -1 : static_cast<int>(found - ints.begin());
  };
  text.open("static bool agrees(const tessera_launch* launch)");
  text.line("if (tessera::check_counts(launch, {}, 0)) return false;", ints.size());
  for (const auto& [a, b] : s.agree) {
    const int left = place(s.first, a), right = place(s.second, b);
    if (left < 0 || right < 0)
      return error(fail(bad_launch, "`{}` of `{}` and `{}` of `{}` are not integers of the launch",
                        a, s.first.name, b, s.second.name));
    text.open("if (launch->ints[{}] != launch->ints[{}])", left, right);
    text.line("tessera::fail(\"{} and {} differ\");", ints[static_cast<std::size_t>(left)],
              ints[static_cast<std::size_t>(right)]);
    text.line("return false;");
    text.close();
  }
  text.line("return true;");
  text.close();
  return {};
}

}  // namespace

Result<std::string> sequence_host(const Sequence& s, const Options& options,
                                  const std::vector<std::string>& ints, std::size_t of_first) {
  Text text;
  const Json described = {{"abi", 1},
                          {"name", options.describe_name},
                          {"arch", "sm_90a"},
                          {"ints", ints},
                          {"tensors", Json::array()}};
  text.open(R"(extern "C" const char* tessera_describe(void))");
  text.line("return R\"({})\";", described.dump());
  text.close();
  TESSERA_CHECK(write_agreement(s, ints, text));
  const auto parts = [&] {
    const std::string tensors = "launch->tensors, launch->tensor_count";
    text.line("const tessera_launch first = {{{}, launch->ints, {}}};", tensors, of_first);
    text.line("const tessera_launch second = {{{0}, launch->ints + {1}, {2}}};", tensors, of_first,
              ints.size() - of_first);
  };
  text.open(R"(extern "C" int64_t tessera_workspace_size(const tessera_launch* launch))");
  text.line("if (!agrees(launch)) return -1;");
  parts();
  text.line("const int64_t bytes = {}::workspace_size(&first);", sequence_space(0));
  text.line("return {}::workspace_size(&second) < 0 ? -1 : bytes;", sequence_space(1));
  text.close();
  text.open(
      R"(extern "C" int tessera_run(const tessera_launch* launch, void* workspace, void* stream))");
  text.line("if (!agrees(launch)) return -1;");
  parts();
  text.line("if ({}::run(&first, workspace, stream)) return -1;", sequence_space(0));
  text.line("return {}::run(&second, workspace, stream);", sequence_space(1));
  text.close();
  text.open(R"(extern "C" const char* tessera_last_error(void))");
  text.line("return tessera_launch_error::last_error();");
  text.close();
  return text.text();
}

}  // namespace tessera::lower
