#include "lower/host.h"

#include <algorithm>
#include <map>

#include "base/integers.h"
#include "base/json.h"
#include "base/text.h"

#include "lower/codes.h"
#include "lower/walk.h"

namespace tessera::lower {
namespace {

using core::Access;
using core::Kernel;
using term::Op;

std::string_view swizzle_name(arch::SwizzleMode s) {
  static constexpr std::string_view names[] = {
      "CU_TENSOR_MAP_SWIZZLE_NONE", "CU_TENSOR_MAP_SWIZZLE_32B", "CU_TENSOR_MAP_SWIZZLE_64B",
      "CU_TENSOR_MAP_SWIZZLE_128B"};
  return names[static_cast<std::size_t>(s)];
}

std::string quoted(const std::string& s) {
  return Json(s).dump();
}

class Host {
 public:
  Host(const Kernel& kernel, Ranges& ranges, const DeviceSide& device, const Options& options)
      : kernel_(kernel),
        device_(device),
        options_(options),
        expressions_(
            ranges,
            [this](Diagnostic d) {
              if (!failure_) failure_ = std::move(d);
            },
            true),
        device_types_(ranges, [](const Diagnostic&) {}) {
    for (const std::string_view own :
         {std::string_view(device.symbol), std::string_view("shape"), std::string_view("rooms"),
          std::string_view("blocks"), std::string_view("passed")})
      names_.claim(own);
  }

  Result<HostSide> write() {
    for (Term t : kernel_.parameters) {
      out_.ints.push_back(t->symbol->name);
      expressions_.name(t, names_.claim(t->symbol->name));
    }
    expressions_.name(kernel_.at.multiprocessors, names_.claim("multiprocessors"));
    TESSERA_CHECK(bind());
    for (const core::TensorMap& m : kernel_.maps) TESSERA_CHECK(check_map(m));
    const bool alone = options_.in_workspace.empty();
    if (alone) describe();
    open_function(alone
                      ? R"(extern "C" int64_t tessera_workspace_size(const tessera_launch* launch))"
                      : "int64_t workspace_size(const tessera_launch* launch)");
    text_.line("return {};", join(workspace_sizes(), " + "));
    text_.close();
    alone ? run(R"(extern "C" int tessera_run)", "void* workspace")
          : run("int run", "void* const* passed");
    if (alone) {
      text_.open(R"(extern "C" const char* tessera_last_error(void))");
      text_.line("return tessera_launch_error::last_error();");
      text_.close();
    }
    if (failure_) return error(*failure_);
    out_.text = text_.text();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool in_workspace(const core::Tensor& t) const {
    return t.access == Access::workspace || passes(t);
  }
  /// From one kernel of a sequence to another.
  [[nodiscard]] bool passes(const core::Tensor& t) const {
    return std::find(options_.in_workspace.begin(), options_.in_workspace.end(), t.name) !=
           options_.in_workspace.end();
  }

  /// Which tensor of the launch each of the kernel's is.
  Status bind() {
    for (const core::Tensor& t : kernel_.tensors) {
      tensors_.push_back(names_.claim(t.name));
      if (in_workspace(t)) {
        if (t.extents.empty() || t.strides.empty())
          return error(fail(bad_launch, "the workspace `{}` has no extent", t.name));
        continue;
      }
      if (options_.places_at_launch) {
        for (const char* what : {"tensor", "offset"})
          out_.ints.push_back(fmt::format("{}_{}", t.name, what));
        continue;
      }
      const std::size_t place = bindings_.size();
      const bool own = options_.tensors.empty();
      bindings_.push_back(own                               ? Binding{static_cast<int>(place), 0}
                          : place < options_.tensors.size() ? options_.tensors[place]
                                                            : Binding{-1, 0});
      const Binding& b = bindings_.back();
      if (b.launch_tensor < 0 || b.offset < 0)
        return error(fail(bad_launch, "`{}` is bound to tensor {} at element {}", t.name,
                          b.launch_tensor, b.offset)
                         .expect("a binding for each input and output, none below 0"));
      const auto at = static_cast<std::size_t>(b.launch_tensor);
      if (out_.tensors.size() <= at) out_.tensors.resize(at + 1);
      if (out_.tensors[at].empty()) out_.tensors[at] = t.name;
    }
    if (options_.tensors.size() > bindings_.size())
      return error(fail(bad_launch, "{} bindings for {} inputs and outputs",
                        options_.tensors.size(), bindings_.size()));
    return {};
  }

  Status check_map(const core::TensorMap& m) const {
    const core::Tensor& t = kernel_[m.tensor];
    for (const int d : m.dims)
      if (d < 0 || d >= static_cast<int>(t.extents.size()))
        return error(fail(bad_launch, "the map `{}` has a dimension {} of `{}`", m.name, d, t.name)
                         .expect("0 to {}", t.extents.size() - 1));
    const arch::TensorMap of{
        t.element, m.box,     std::vector<int64_t>(m.dims.empty() ? 0 : m.dims.size() - 1, 16),
        m.box,     m.swizzle, m.fill};
    TESSERA_CHECK(arch::check(of, 16));
    const Term stride = t.strides[static_cast<std::size_t>(m.dims.front())];
    if (stride->op != Op::constant || stride->value != 1)
      return error(fail(bad_launch, "the first dimension of the map `{}` is not contiguous", m.name)
                       .expect("a stride of 1")
                       .but_found("{}", term::to_string(stride)));
    return {};
  }

  /// Bytes of each workspace, and of what is left for a later kernel; "0" where there is none.
  std::vector<std::string> workspace_sizes() {
    std::vector<std::string> all;
    for (const core::Tensor& t : kernel_.tensors)
      if (in_workspace(t) && t.access != Access::input)
        all.push_back(fmt::format("({} * {} * {} + 255) / 256 * 256",
                                  expressions_.operand(t.extents.at(0)),
                                  expressions_.operand(t.strides.at(0)), size_of(t.element)));
    if (all.empty()) all.emplace_back("0");
    return all;
  }

  void describe() {
    const Json j = {
        {"abi", 1},
        {"name", options_.describe_name.empty() ? kernel_.name : options_.describe_name},
        {"arch", "sm_90a"},
        {"ints", out_.ints},
        {"tensors", out_.tensors}};
    text_.open(R"(extern "C" const char* tessera_describe(void))");
    text_.line("return R\"({})\";", j.dump());
    text_.close();
    text_.raw("");
  }

  /// With the launch's integers read and checked.
  void open_function(const std::string& head) {
    text_.open("{}", head);
    text_.line("if (tessera::check_counts(launch, {}, {})) return -1;", out_.ints.size(),
               out_.tensors.size());
    for (std::size_t i = 0; i < kernel_.parameters.size(); ++i)
      text_.line("[[maybe_unused]] const int64_t {} = launch->ints[{}];",
                 expressions_.operand(kernel_.parameters[i]), i);
    for (Term t : kernel_.parameters) {
      const term::Symbol& s = *t->symbol;
      const std::string lower = s.bounds.lower ? expressions_.text(s.bounds.lower) : "INT64_MIN";
      const std::string upper = s.bounds.upper ? expressions_.text(s.bounds.upper) : "INT64_MAX";
      text_.line("if (tessera::check_integer({}, {}, {}, {}, {}, {})) return -1;", quoted(s.name),
                 expressions_.operand(t), lower, upper, s.bounds.modulus, s.bounds.residue);
    }
  }

  void name_tensors() {
    std::size_t at = 0, place = kernel_.parameters.size();
    std::string offset = "0";
    const std::vector<std::string> sizes = workspace_sizes();
    std::size_t workspace = 0;
    for (std::size_t i = 0; i < kernel_.tensors.size(); ++i) {
      const bool in_launch = !in_workspace(kernel_.tensors[i]);
      if (in_launch && options_.places_at_launch) {
        text_.line("[[maybe_unused]] void* {} = nullptr;", tensors_[i]);
        text_.line("if (tessera::find_tensor(launch, {}, {}, {}, &{})) return -1;",
                   quoted(kernel_.tensors[i].name), place, size_of(kernel_.tensors[i].element),
                   tensors_[i]);
        place += 2;
        continue;
      }
      if (in_launch) {
        const Binding& b = bindings_[at++];
        const int64_t bytes = b.offset * size_of(kernel_.tensors[i].element);
        const std::string start = fmt::format("launch->tensors[{}]", b.launch_tensor);
        text_.line("[[maybe_unused]] void* {} = {};", tensors_[i],
                   bytes == 0 ? start : fmt::format("static_cast<char*>({}) + {}", start, bytes));
        continue;
      }
      if (passes(kernel_.tensors[i])) {
        text_.line("[[maybe_unused]] void* {} = passed[{}];", tensors_[i], workspace++);
        continue;
      }
      text_.line("[[maybe_unused]] void* {} = static_cast<char*>(workspace) + {};", tensors_[i],
                 offset);
      offset += " + " + sizes[workspace++];
    }
  }

  std::string encode_map(const core::TensorMap& m) {
    const core::Tensor& t = kernel_[m.tensor];
    const std::string name = names_.claim(m.name);
    std::vector<std::string> extents, strides, box;
    for (std::size_t i = 0; i < m.dims.size(); ++i) {
      const auto d = static_cast<std::size_t>(m.dims[i]);
      const auto unsigned_of = [](const std::string& s) {
        return fmt::format("static_cast<cuuint64_t>({})", s);
      };
      extents.push_back(unsigned_of(expressions_.text(t.extents[d])));
      if (i > 0)
        strides.push_back(unsigned_of(
            fmt::format("{} * {}", expressions_.operand(t.strides[d]), size_of(t.element))));
      box.push_back(std::to_string(m.box[i]));
    }
    text_.line("CUtensorMap {};", name);
    text_.line("if (tessera::encode({}, {{{}, {}, {}, {},", name, quoted(t.name),
               arch::driver_type(t.element, m.rounded), m.dims.size(),
               tensors_.at(static_cast<std::size_t>(m.tensor.index)));
    const std::string more(20, ' ');
    text_.line("{}{{{}}},", more, join(extents, ", "));
    text_.line("{}{{{}}},", more, join(strides, ", "));
    text_.line("{}{{{}}}, {},", more, join(box, ", "), swizzle_name(m.swizzle));
    text_.line("{}CU_TENSOR_MAP_FLOAT_OOB_FILL_{}, CU_TENSOR_MAP_L2_PROMOTION_L2_{}B}}))", more,
               m.fill == arch::OutOfBounds::nan ? "NAN_REQUEST_ZERO_FMA" : "NONE",
               options_.fetch_bytes);
    text_.line("  return -1;");
    return name;
  }

  /// Gives names to the terms that `whole` has in several places, the inner ones first.
  void name_repeated(Term whole) {
    std::map<int32_t, int> times;  // by the term
    std::vector<Term> inner_first;
    count(whole, times, inner_first);
    for (Term t : inner_first)
      if (times.at(t->id) > 1) {
        const std::string name = names_.claim("n");
        text_.line("const int64_t {} = {};", name, expressions_.text(t));
        expressions_.name(t, name);
      }
  }

  // NOLINTNEXTLINE(misc-no-recursion): terms are trees
  static void count(Term t, std::map<int32_t, int>& times, std::vector<Term>& inner_first) {
    if (t->leaf() || times[t->id]++ > 0) return;
    for (Term a : t->args) count(a, times, inner_first);
    inner_first.push_back(t);
  }

  void run(std::string_view function, std::string_view workspace) {
    text_.raw("");
    open_function(fmt::format("{}(const tessera_launch* launch, [[maybe_unused]] {}, void* stream)",
                              function, workspace));
    text_.line("constexpr tessera::Shape shape{{{}, {}, {}, {}}};", kernel_.threads,
               kernel_.cluster, kernel_.shared_bytes(), waits_for_grids(kernel_));
    text_.line("static tessera::PerDevice<tessera::Room> rooms;");
    text_.line("const void* kernel = nullptr;");
    const std::string mps = expressions_.operand(kernel_.at.multiprocessors);
    text_.line("int64_t {} = 0;", mps);
    text_.line("if (tessera::prepare(TESSERA_ENTRY({}), rooms, shape, &kernel, &{})) return -1;",
               device_.symbol, mps);
    name_tensors();
    std::vector<std::string> arguments;
    for (const core::MapId m : device_.parameters.maps)
      arguments.push_back("&" + encode_map(kernel_[m]));
    for (const core::TensorId t : device_.parameters.tensors)
      arguments.push_back("&" + tensors_.at(static_cast<std::size_t>(t.index)));
    for (Term t : device_.parameters.integers) {
      const std::string name = names_.claim(t->symbol->name + "_argument");
      const std::string type = device_types_.type_of(t);
      text_.line("{0} {1} = static_cast<{0}>({2});", type, name, expressions_.operand(t));
      arguments.push_back("&" + name);
    }
    name_repeated(kernel_.grid);
    text_.line("const int64_t blocks = {};", expressions_.text(kernel_.grid));
    if (arguments.empty()) arguments.emplace_back("nullptr");
    text_.line("void* arguments[] = {{{}}};", join(arguments, ", "));
    text_.line("return tessera::enqueue(kernel, shape, blocks, arguments, stream);");
    text_.close();
    text_.raw("");
  }

  const Kernel& kernel_;
  const DeviceSide& device_;
  const Options& options_;
  std::vector<Binding> bindings_;  // of inputs and outputs, in the kernel's order
  Expressions expressions_;
  Expressions device_types_;
  Names names_;
  std::vector<std::string> tensors_;
  Text text_;
  HostSide out_;
  std::optional<Diagnostic> failure_;
};

}  // namespace

Result<HostSide> host_side(const Kernel& kernel, Ranges& ranges, const DeviceSide& device,
                           const Options& options) {
  return Host(kernel, ranges, device, options).write();
}

}  // namespace tessera::lower
