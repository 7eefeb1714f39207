#include "check/origin.h"

#include <algorithm>

#include "term/rules.h"

namespace tessera::check {
namespace {

class Finder {
 public:
  Finder(const core::Kernel& kernel, const Place& reader, core::SharedId shared,
         const std::vector<const core::For*>& later)
      : kernel_(kernel), reader_(reader), shared_(shared), later_(later) {
    out_.ring.assign(static_cast<std::size_t>(kernel[shared].layout.rank()), false);
  }

  void from(const Place& writer, const ReadsFrom& r) {
    if (!out_.why.empty()) return;
    const auto* to = argument<core::SharedAt>(writer.issue(), "to");
    if (to == nullptr) out_.why = "what is neither a store nor a copy to its place is not followed";
    if (to == nullptr || to->shared != shared_) return;
    const auto* map = argument<core::MapRef>(writer.issue(), "map");
    if (map == nullptr) {
      if (r.turns != 0 || writer.role != reader_.role || r.reader != r.writer)
        out_.why = "what another turn or role has stored is not followed";
      else
        out_.stores.push_back(writer.op);
      return;
    }
    const auto* blocks = argument<core::Integers>(writer.issue(), "blocks");
    if (blocks == nullptr && r.reader != r.writer) {
      out_.why = "what another block has copied is not followed";
      return;
    }
    if (!same_turn(writer, r.turns)) return;
    for (Known turn : turns_of(writer.unrolled))
      for (int rank = 0; rank < (blocks != nullptr ? kernel_.cluster : 1); ++rank) {
        if (blocks != nullptr) {
          turn[kernel_.at.rank.node()] = rank;
          if (value_of(blocks->values[0], turn) != (int64_t{1} << kernel_.cluster) - 1) {
            out_.why = "a copy goes to some blocks of the cluster alone";
            return;
          }
        }
        box(writer, *to, kernel_[map->map], turn);
      }
  }

  Origins take() {
    if (out_.why.empty() && out_.boxes.empty() && out_.stores.empty())
      out_.why = "no copy is seen that fills it";
    return std::move(out_);
  }

 private:
  /// What stands for the counters of the writer's loops, where the reader is.
  bool same_turn(const Place& writer, int64_t turns) {
    as_.clear();
    const std::size_t common = std::min(writer.loops.size(), reader_.loops.size());
    for (std::size_t i = 0; i < common; ++i)
      if (writer.loops[i]->counter != reader_.loops[i]->counter)
        return out_.why = "a copy and its reader stand in loops of different counters", false;
    if (writer.loops.size() > reader_.loops.size()) {
      // Behind the loop: the last of its turns.
      const core::For& l = *writer.loops.back();
      if (writer.loops.size() != reader_.loops.size() + 1 || turns != 1 || !by_one(l))
        return out_.why = "an earlier turn's copy is read behind its loop", false;
      as_.emplace_back(l.counter, l.upper - 1);
      return true;
    }
    if (turns == 0) return true;
    out_.by_turn = true;
    const core::For* l = writer.loops.empty() ? nullptr : writer.loops.back();
    if (l == nullptr || turns != 1 || !by_one(*l) ||
        std::find(later_.begin(), later_.end(), reader_.loops[writer.loops.size() - 1]) ==
            later_.end())
      return out_.why = "a copy of an earlier turn is read", false;
    as_.emplace_back(l->counter, l->counter - 1);
    return true;
  }
  static bool by_one(const core::For& l) {
    return l.step->op == term::Op::constant && l.step->value == 1;
  }
  [[nodiscard]] Term here(Term t, const Known& turn) const {
    Term out = with_values(t, turn);
    for (const auto& [counter, by] : as_) out = with_term(out, counter, by);
    return out;
  }

  void box(const Place& writer, const core::SharedAt& to, const core::TensorMap& map,
           const Known& turn) {
    const auto* at = argument<core::Integers>(writer.issue(), "at");
    const core::Shared& s = kernel_[shared_];
    CopiedBox p{.map = &map, .copy = writer.op};
    p.corner.resize(map.dims.size());
    for (std::size_t m = 0; m < map.dims.size() && m < at->values.size(); ++m)
      p.corner[static_cast<std::size_t>(map.dims[m])] = here(at->values[m], turn);
    std::vector<int64_t> place;
    for (std::size_t i = 0; i < to.at.size(); ++i) {
      const std::optional<int64_t> v = value_of(with_values(to.at[i], turn), {});
      if (!v) {
        out_.ring[i] = true;
        const int64_t stride =
            size_of(s.element) * s.layout.stride().mode(static_cast<int>(i)).value;
        if (!s.layout.stride().mode(static_cast<int>(i)).is_leaf || stride % 1024 != 0) {
          out_.why = "slots do not lie a multiple of 1024 bytes apart";
          return;
        }
      }
      place.push_back(v.value_or(0));
    }
    if (!byte_of(s, place)) {
      out_.why = "a copy leaves its shared memory";
      return;
    }
    p.start = s.at + size_of(s.element) * s.layout.at(place);
    out_.boxes.push_back(std::move(p));
  }

  const core::Kernel& kernel_;
  const Place& reader_;
  core::SharedId shared_;
  const std::vector<const core::For*>& later_;
  std::vector<std::pair<Term, Term>> as_;
  Origins out_;
};

}  // namespace

Origins origins(const core::Kernel& kernel, const Runs& runs, const std::vector<Place>& places,
                const Place& reader, core::SharedId shared,
                const std::vector<const core::For*>& later) {
  Finder finder(kernel, reader, shared, later);
  std::set<std::pair<const core::Op*, int64_t>> seen;
  for (const ReadsFrom& r : runs.reads_from) {
    if (r.read != reader.op) continue;
    const auto writer =
        std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.op == r.write; });
    if (writer == places.end() || writer->op->as<core::Issue>() == nullptr) continue;
    // Each block of a cluster sees its own, or what one has copied for all.
    if (seen.emplace(r.write, r.turns).second) finder.from(*writer, r);
  }
  return finder.take();
}

}  // namespace tessera::check
