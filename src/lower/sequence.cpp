#include "lower/sequence.h"

#include <algorithm>
#include <set>

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

/// What is wrong with it; "" for nothing.
std::string misfit(const Sequence& s, const Sequence::Passed& p) {
  if (p.from >= p.to || p.to >= s.kernels.size())
    return "the kernel that takes it does not come after the one that leaves it";
  const core::Tensor *from = tensor_of(*s.kernels[p.from], p.output),
                     *to = tensor_of(*s.kernels[p.to], p.input);
  if (from == nullptr || to == nullptr) return "one of them has no such tensor";
  if (from->access != core::Access::output || to->access != core::Access::input)
    return "it is not written by the first and read by the second";
  if (from->element != to->element) return "it has two element types";
  return "";
}

}  // namespace

Status check_sequence(const Sequence& s) {
  const auto refuse = [&](std::string message) {
    return error(fail(bad_launch, "{}", message)
                     .expect("outputs of kernels that are inputs of later ones, of one element "
                             "type, one of each kernel but the last, and no other workspace"));
  };
  std::vector<int> leaves(s.kernels.size());
  for (const Sequence::Passed& p : s.passed) {
    if (const std::string why = misfit(s, p); !why.empty())
      return refuse(fmt::format("`{}` does not pass to `{}`: {}", p.output, p.input, why));
    ++leaves[p.from];
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < s.kernels.size(); ++i) {
    const core::Kernel& k = *s.kernels[i];
    if (!names.insert(k.name).second) return refuse(fmt::format("two are called `{}`", k.name));
    if (leaves[i] != (i + 1 < s.kernels.size() ? 1 : 0))
      return refuse(fmt::format("`{}` leaves {} tensors for others", k.name, leaves[i]));
    for (const core::Tensor& t : k.tensors)
      if (t.access == core::Access::workspace)
        return refuse(fmt::format("`{}` has the workspace `{}`", k.name, t.name));
  }
  return {};
}

std::vector<std::string> in_workspace(const Sequence& s, std::size_t kernel) {
  std::vector<std::string> out;
  for (const Sequence::Passed& p : s.passed) {
    if (p.from == kernel) out.push_back(p.output);
    if (p.to == kernel) out.push_back(p.input);
  }
  return out;
}

std::string sequence_space(std::size_t kernel) {
  return fmt::format("tessera_kernel{}", kernel);
}

namespace {

/// `agrees(launch)`: whether it has all integers, and those that are one are equal.
Status write_agreement(const Sequence& s, const std::vector<std::string>& ints, Text& text) {
  const auto place = [&](std::size_t kernel, const std::string& name) {
    const auto found = std::find(ints.begin(), ints.end(), s.kernels[kernel]->name + "_" + name);
    return found == ints.end() ? -1 : static_cast<int>(found - ints.begin());
  };
  text.open("static bool agrees(const tessera_launch* launch)");
  text.line("if (tessera::check_counts(launch, {}, 0)) return false;", ints.size());
  for (const Sequence::Same& same : s.agree) {
    const int left = place(same.first, same.of_first), right = place(same.second, same.of_second);
    if (left < 0 || right < 0)
      return error(fail(bad_launch, "`{}` of `{}` and `{}` of `{}` are not integers of the launch",
                        same.of_first, s.kernels[same.first]->name, same.of_second,
                        s.kernels[same.second]->name));
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

/// The launch of each kernel, and where in the workspace each leaves its tensor: `at0`, `at1`, ...
void write_parts(const std::vector<std::vector<std::string>>& ints, Text& text) {
  text.line("if (!agrees(launch)) return -1;");
  std::size_t first = 0;
  std::string at = "0";
  for (std::size_t i = 0; i < ints.size(); ++i) {
    text.line(
        "const tessera_launch part{} = {{launch->tensors, launch->tensor_count, launch->ints + {}, "
        "{}}};",
        i, first, ints[i].size());
    first += ints[i].size();
    text.line("const int64_t bytes{} = {}::workspace_size(&part{});", i, sequence_space(i), i);
    text.line("if (bytes{} < 0) return -1;", i);
    text.line("[[maybe_unused]] const int64_t at{} = {};", i, at);
    at = fmt::format("at{0} + bytes{0}", i);
  }
}

/// The places of a kernel's tensors in the workspace, in its order.
std::vector<std::string> places_passed(const Sequence& s, std::size_t kernel) {
  std::vector<std::string> out;
  for (const core::Tensor& t : s.kernels[kernel]->tensors)
    for (const Sequence::Passed& p : s.passed)
      if ((p.from == kernel && p.output == t.name) || (p.to == kernel && p.input == t.name)) {
        out.push_back(fmt::format("static_cast<char*>(workspace) + at{}", p.from));
        break;
      }
  return out;
}

}  // namespace

Result<std::string> sequence_host(const Sequence& s, const Options& options,
                                  const std::vector<std::vector<std::string>>& ints) {
  Text text;
  std::vector<std::string> all;
  for (const auto& of_kernel : ints) all.insert(all.end(), of_kernel.begin(), of_kernel.end());
  const Json described = {{"abi", 1},
                          {"name", options.describe_name},
                          {"arch", "sm_90a"},
                          {"ints", all},
                          {"tensors", Json::array()}};
  text.open(R"(extern "C" const char* tessera_describe(void))");
  text.line("return R\"({})\";", described.dump());
  text.close();
  TESSERA_CHECK(write_agreement(s, all, text));
  const std::size_t last = ints.size() - 1;
  text.open(R"(extern "C" int64_t tessera_workspace_size(const tessera_launch* launch))");
  write_parts(ints, text);
  text.line("return at{0} + bytes{0};", last);
  text.close();
  text.open(
      R"(extern "C" int tessera_run(const tessera_launch* launch, void* workspace, void* stream))");
  write_parts(ints, text);
  for (std::size_t i = 0; i <= last; ++i) {
    text.line("void* const passed{}[] = {{{}}};", i, join(places_passed(s, i), ", "));
    text.line("if ({}::run(&part{}, passed{}, stream)) return -1;", sequence_space(i), i, i);
  }
  text.line("return 0;");
  text.close();
  text.open(R"(extern "C" const char* tessera_last_error(void))");
  text.line("return tessera_launch_error::last_error();");
  text.close();
  return text.text();
}

}  // namespace tessera::lower
