// Branches and roles as C++.
#include <utility>

#include "lower/codes.h"
#include "lower/device.h"
#include "lower/walk.h"

namespace tessera::lower {

void Device::write(const core::If& b) {
  if (const auto known = known_.find(b.condition.node()); known != known_.end())
    return write(known->second ? b.body : b.otherwise);
  const bool lanes = depends_on_lane(kernel_, b.condition);
  const bool before = apart_;
  text_.open("if ({})", expressions_.text(b.condition));
  const Flight flight = flight_;
  write(b.body);
  const bool after = apart_;
  apart_ = before;
  const Flight one = std::exchange(flight_, flight);
  if (!b.otherwise.empty()) {
    text_.turn("} else {");
    write(b.otherwise);
  }
  flight_.meet(one);
  text_.close();
  apart_ = lanes || after || apart_;
}

void Device::write(const core::Elected& e) {
  meet();
  if (elected_.empty()) {
    const arch::Form* const form = arch::find_form("warp.elect");
    const Result<std::string> call =
        instructions_.call(*form, {},
                           {{Passed::By::reference, "uint32_t", {"one"}},
                            {Passed::By::value, "uint32_t", {"0xffffffffu"}}});
    if (!call) return refuse(call.error());
    elected_ = fmt::format(
        "/// True in one thread of a warp that is whole.\n"
        "__device__ __forceinline__ bool elected() {{\n  uint32_t one;\n  {}\n"
        "  return one != 0;\n}}\n",
        *call);
  }
  text_.open("if (elected())");
  write(e.body);
  text_.close();
  apart_ = true;
}

/// One role or the other, not one after the other: ptxas then knows that the lanes of a warp that
/// went apart in one do not come to the next. Returns the last of those that stand together.
std::size_t Device::write_roles(const core::Body& body, std::size_t first) {
  std::size_t last = first;
  while (last + 1 < body.size() && body[last + 1].as<core::Role>() != nullptr)
    declare_before(&body, static_cast<int>(++last));
  write_origin(body[first]);
  for (std::size_t i = first; i <= last; ++i) {
    const core::Role& r = *body[i].as<core::Role>();
    if (i == first)
      text_.open("if ({})", condition_of(r));
    else
      text_.turn(fmt::format("}} else if ({}) {{", condition_of(r)));
    if (i != first) write_origin(body[i]);
    write(r);
  }
  text_.close();
  return last;
}

std::string Device::condition_of(const core::Role& r) {
  const std::string warp = expressions_.operand(kernel_.at.warp);
  const int end = r.first_warp + r.warps;
  const std::string from = r.first_warp > 0 ? fmt::format("{} >= {}", warp, r.first_warp) : "";
  const std::string to = end < kernel_.threads / 32 ? fmt::format("{} < {}", warp, end) : "";
  return from.empty() ? (to.empty() ? "true" : to) : to.empty() ? from : from + " && " + to;
}

void Device::write(const core::Role& r) {
  const std::string warp = expressions_.operand(kernel_.at.warp);
  text_.line("// {}", r.name);
  const std::string own = names_.claim(r.warp->symbol->name);
  if (uses_->symbols().count(r.warp->symbol) != 0)
    text_.line("const int {} = {}{};", own, warp,
               r.first_warp > 0 ? fmt::format(" - {}", r.first_warp) : "");
  expressions_.name(r.warp, own);
  const bool before = apart_;
  write(r.body);
  apart_ = before;
}

}  // namespace tessera::lower
