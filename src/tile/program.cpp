#include "tile/program.h"

#include <stdexcept>

#include "tile/op_record.h"

namespace tessera::tile {

int64_t Tensor::extent() const {
  int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

const OpRecord* find_op(std::string_view name) {
  for (const OpFamily* family : ops::all())
    for (const OpRecord& r : family->records)
      if (r.name == name) return &r;
  return nullptr;
}

KernelBuilder::KernelBuilder(Program& program, std::string name, int threads) : program_(program) {
  kernel_.name = std::move(name);
  kernel_.threads = threads;
}

VarId KernelBuilder::var(std::string name, int64_t total, int64_t step) {
  return var_until(std::move(name), total, step, VarId(), 0);
}

VarId KernelBuilder::var_until(std::string name, int64_t total, int64_t step, VarId until,
                               int64_t offset) {
  auto taken = [&](const std::string& n) {
    for (const Tensor& t : program_.tensors)
      if (t.name == n) return true;
    for (const TileVar& v : kernel_.vars)
      if (v.name == n) return true;
    return false;
  };
  while (taken(name)) name += "_";
  kernel_.vars.push_back({std::move(name), total, step, until, offset});
  return VarId(kernel_.vars.size() - 1);
}

ValueId KernelBuilder::define(Type type, std::string_view hint) {
  for (const Tensor& t : program_.tensors) name_counts_.try_emplace(t.name, 1);
  for (const TileVar& v : kernel_.vars) name_counts_.try_emplace(v.name, 1);
  int n = name_counts_[std::string(hint)]++;
  std::string name = n == 0 ? std::string(hint) : fmt::format("{}_{}", hint, n);
  kernel_.values.push_back({std::move(name), std::move(type)});
  return ValueId(kernel_.values.size() - 1);
}

std::vector<ValueId> KernelBuilder::add(std::string_view name, std::vector<ValueId> operands,
                                        Payload payload, std::string_view hint) {
  if (failure_) return {ValueId(), ValueId(), ValueId(), ValueId()};
  Op op;
  op.record = find_op(name);
  if (op.record == nullptr) throw std::logic_error(fmt::format("no tile operation `{}`", name));
  op.operands = std::move(operands);
  op.payload = std::move(payload);
  Result<std::vector<Type>> types = op.record->infer(program_, kernel_, op);
  if (!types) {
    failure_ = types.error();
    return {ValueId(), ValueId(), ValueId(), ValueId()};
  }
  for (Type& t : *types) op.results.push_back(define(std::move(t), hint));
  std::vector<ValueId> results = op.results;
  Region& region = open_.empty() ? kernel_.body : open_.back().regions.back();
  region.ops.push_back(std::move(op));
  return results;
}

ValueId KernelBuilder::one(std::string_view op, std::vector<ValueId> operands, Payload payload,
                           std::string_view name) {
  return add(op, std::move(operands), std::move(payload), name).at(0);
}

std::vector<ValueId> KernelBuilder::open(std::string_view name, std::vector<ValueId> carried,
                                         Payload payload) {
  Op op;
  op.record = find_op(name);
  if (op.record == nullptr) throw std::logic_error(fmt::format("no tile operation `{}`", name));
  op.payload = std::move(payload);
  Region region;
  for (ValueId v : carried) {
    if (failure_) {
      region.arguments.emplace_back();
      continue;
    }
    region.arguments.push_back(define(type(v), kernel_.values[v.index].name));
  }
  op.operands = std::move(carried);
  std::vector<ValueId> arguments = region.arguments;
  op.regions.push_back(std::move(region));
  open_.push_back(std::move(op));
  return arguments;
}

std::vector<ValueId> KernelBuilder::close(std::vector<ValueId> yields) {
  Op op = std::move(open_.back());
  open_.pop_back();
  std::vector<ValueId> results(yields.size());
  if (failure_) return results;
  op.regions.back().yields = std::move(yields);
  Result<std::vector<Type>> types = op.record->infer(program_, kernel_, op);
  if (!types) {
    failure_ = types.error();
    return results;
  }
  op.results.clear();
  for (std::size_t i = 0; i < types->size(); ++i)
    op.results.push_back(define((*types)[i], kernel_.values[op.operands[i].index].name));
  results = op.results;
  Region& region = open_.empty() ? kernel_.body : open_.back().regions.back();
  region.ops.push_back(std::move(op));
  return results;
}

Status KernelBuilder::finish() {
  if (failure_) return error(*failure_);
  if (!open_.empty()) throw std::logic_error("a region is still open");
  program_.kernels.push_back(std::move(kernel_));
  return {};
}

}  // namespace tessera::tile
