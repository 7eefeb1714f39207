// Tags move with values: what moves bytes is done again with each byte of their tags' numbers, and
// what computes elements joins the tags of what it computes them of.
#include <algorithm>

#include "simulate/machine.h"
#include "simulate/values.h"

namespace tessera::simulate {

using arch::Space;

namespace {

TagId number(const TagBytes& bytes, int64_t at) {
  TagId out = 0;
  for (std::size_t p = 0; p < bytes.size(); ++p)
    out |= static_cast<TagId>(bytes[p][static_cast<std::size_t>(at)]) << (8 * p);
  return out;
}

void put(TagBytes& bytes, int64_t at, int64_t size, TagId tag) {
  for (std::size_t p = 0; p < bytes.size(); ++p)
    std::fill_n(bytes[p].begin() + at, size, static_cast<uint8_t>(tag >> (8 * p)));
}

void clear(TagBytes& bytes, std::size_t size) {
  for (std::vector<uint8_t>& b : bytes) b.assign(size, 0);
}

}  // namespace

void Machine::begin_tags() {
  if (program_.tag_names.empty()) return;
  tags_ = std::make_unique<Tags>(program_.tag_names.size());
  for (Block& b : blocks_) clear(b.tags, b.shared.size());
  for (TensorState& t : tensors_) clear(t.tags, t.bytes.size());
}

void Machine::begin_tags(RegisterFile& f) const {
  if (tags_ != nullptr) clear(f.tags, f.bytes.size());
}

void Machine::move_tags(Call& call, void (*what)(Call&)) {
  for (plane_ = 0; plane_ < static_cast<int>(sizeof(TagId)); ++plane_) {
    std::vector<uint8_t>& taken = call.tags_taken[static_cast<std::size_t>(plane_)];
    std::swap(call.taken, taken);
    what(call);
    std::swap(call.taken, taken);
  }
  plane_ = -1;
}

/// After what an instruction has done with values, at once or on its way.
void Machine::follow(Call& call, bool puts) {
  if (tags_ == nullptr) return;
  const Semantics& s = *call.code->semantics;
  if (!puts && s.computed != nullptr) return s.computed(call);
  void (*const what)(Call&) = puts ? s.put : s.take;
  if (what != nullptr && s.moves) move_tags(call, what);
}

uint8_t* Machine::tag_byte(Space space, int place, int64_t at) {
  const auto p = static_cast<std::size_t>(plane_);
  if (space != Space::global) return blocks_[place].tags[p].data() + at;
  TensorState& t = tensors_[place];
  if (t.bytes.empty() && t.tags[p].empty()) {  // an input that is moved as a run of bytes
    const core::Tensor& tensor = program_.kernel.tensors[place];
    const int64_t size = size_of(tensor.element), elements = program_.tensors[place].elements;
    clear(t.tags, static_cast<std::size_t>(elements * size));
    for (int64_t e = 0; e < elements; ++e) put(t.tags, e * size, size, tensor_tag(place, e));
  }
  return t.tags[p].data() + at;
}

TagId Machine::memory_tag(Space space, int place, int64_t at, int64_t size) {
  const TagBytes& bytes = space == Space::global ? tensors_[place].tags : blocks_[place].tags;
  if (bytes[0].empty()) return 0;
  TagId out = number(bytes, at);
  for (int64_t i = 1; i < size; ++i) out = tags_->join(out, number(bytes, at + i));
  return out;
}

void Machine::set_memory_tag(Space space, int place, int64_t at, int64_t size, TagId tag) {
  put(space == Space::global ? tensors_[place].tags : blocks_[place].tags, at, size, tag);
}

TagId Machine::slot_tag(const Call& call, int registers, int lane, int64_t slot) {
  const RegisterFile& f = warps_[call.warp].registers[registers];
  const int64_t size = size_of(program_.kernel.registers[registers].element);
  const int64_t at = (lane * program_.slots[registers] + slot) * size;
  TagId out = number(f.tags, at);
  for (int64_t i = 1; i < size; ++i) out = tags_->join(out, number(f.tags, at + i));
  return out;
}

void Machine::set_slot_tag(const Call& call, int registers, int lane, int64_t slot, TagId tag) {
  const int64_t size = size_of(program_.kernel.registers[registers].element);
  put(warps_[call.warp].registers[registers].tags, (lane * program_.slots[registers] + slot) * size,
      size, tag);
}

TagId Machine::tensor_tag(int tensor, const std::vector<int64_t>& index) {
  TagId out = 0;
  Frame frame = program_.frame;
  for (const TensorTags& t : program_.tensor_tags[tensor]) {
    for (std::size_t d = 0; d < index.size(); ++d) frame[t.places[d]] = index[d];
    out = tags_->with(out, t.name, t.value(frame));
  }
  return out;
}

TagId Machine::tensor_tag(int tensor, int64_t element) {
  TensorState& state = tensors_[tensor];
  const TensorCode& code = program_.tensors[tensor];
  if (program_.tensor_tags[tensor].empty()) return 0;
  if (state.elements.empty()) {
    state.elements.assign(static_cast<std::size_t>(code.elements), 0);
    std::vector<int64_t> index(code.extents.size(), 0);
    for (std::size_t d = 0; d < index.size();) {
      int64_t at = 0;
      for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * code.strides[i];
      state.elements[static_cast<std::size_t>(at)] = tensor_tag(tensor, index);
      for (d = 0; d < index.size() && ++index[d] == code.extents[d]; ++d) index[d] = 0;
    }
  }
  return state.elements[static_cast<std::size_t>(element)];
}

void Machine::begin_tags(Call& call, int64_t bytes) {
  clear(call.tags_taken, static_cast<std::size_t>(bytes));
}

void Machine::take_tag(Call& call, int64_t at, int64_t size, TagId tag) {
  put(call.tags_taken, at, size, tag);
}

void Machine::load_tags(const Call& call, int to, int from, int lane) {
  const OperandCode& o = call.code->operands[from];
  const core::Tensor& tensor = program_.kernel.tensors[o.storage];
  Frame frame = events_[call.event].frame;
  frame[program_.lane] = lane;
  std::vector<int64_t> index;
  for (const Expression& e : o.at) index.push_back(e(frame));
  std::size_t along = 0;
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) along = d;
  const int64_t size = size_of(tensor.element);
  for (int64_t e = 0; e < call.code->operands[to].elements; ++e) {
    TagId tag = 0;
    if (tensor.access == core::Access::input)
      tag = tensor_tag(o.storage, index);
    else if (happens(call, call.code->accesses.front(), lane))
      tag = memory_tag(Space::global, o.storage, call.given[from](lane) + e * size, size);
    set_register_tag(call, to, lane, e, tag);
    ++index[along];
  }
}

/// One element's results, of a lane. `first`: as Machine::compute_lane has it.
void Machine::compute_tags(const Call& call, const ComputeCode& code, int lane, int64_t element,
                           const std::vector<int64_t>& first) {
  std::vector<TagId> results;
  const auto e = static_cast<std::size_t>(element);
  for (const std::vector<int>& inputs : code.made_of) {
    TagId tag = 0;
    for (const int i : inputs) {
      const auto n = static_cast<std::size_t>(i);
      if (const auto* r = std::get_if<RunCode>(&code.inputs[n]))
        tag = tags_->join(tag, slot_tag(call, r->registers, lane, first[n] + r->steps[e]));
    }
    results.push_back(tag);
  }
  for (std::size_t n = 0; n < results.size(); ++n) {
    const RunCode& r = code.results[n];
    set_slot_tag(call, r.registers, lane, first[code.inputs.size() + n] + r.steps[e], results[n]);
  }
}

}  // namespace tessera::simulate
