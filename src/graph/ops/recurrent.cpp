// Recurrent layers.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.lstm", OpKind::recurrent},          {"aten.gru", OpKind::recurrent},
    {"aten.rnn_tanh", OpKind::recurrent},      {"aten.rnn_relu", OpKind::recurrent},
    {"aten.lstm_cell", OpKind::recurrent},     {"aten.gru_cell", OpKind::recurrent},
    {"aten.rnn_tanh_cell", OpKind::recurrent}, {"aten.rnn_relu_cell", OpKind::recurrent},
};

}  // namespace

extern const OpFamily recurrent{"recurrent", records};

}  // namespace tessera::graph::ops
