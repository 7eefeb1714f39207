// What attention on Hopper takes and how long it should run: for all realizers of it that keep
// scores in registers, one warpgroup to 64 queries, with keys and values in rings.
#pragma once

#include <optional>
#include <string_view>

#include "realize/realize.h"
#include "rules/attention.h"

namespace tessera::realize {

inline constexpr Code unsupported_attention{"TS0447", "realize.wgmma_attention_unsupported"};

struct AttentionTile {
  int queries = 128;  // of a tile, 64 a warpgroup
  int keys = 128;     // of a block
  bool turns = true;  // warpgroups issue their products in turns
  int key_stages = 2;
  int value_stages = 2;
  int query_slots = 1;  // tiles of queries that have room; a result as wide takes its queries' room
};

/// As wgmma takes it: a multiple of 16.
int64_t rounded_dim(int64_t dim);

/// One output, 16-bit elements that TMA can follow, head dims of at most 256. No mask but a band of
/// known content, unless `masks`: then also one that lies as loads of single threads can take it.
Status check_attention(const rules::Pattern& pattern, const rules::AttentionBody& body,
                       const arch::Arch& arch, bool masks = false);

/// A mask that a kernel reads: there is one, and no band that says the same.
bool reads_mask(const rules::AttentionBody& body);

/// How it is read: its strides, with 0 where a dimension has one element; whether all queries have
/// one row; so many elements at a time, which its strides and the keys are multiples of.
struct MaskReads {
  int64_t batch = 0, head = 0, row = 0;
  bool one_row = false;
  int64_t multiple = 1;
};
MaskReads mask_reads(const rules::AttentionBody& body);

/// Whether the registers of a multiplying thread and the block's shared memory are enough; else by
/// which of them it is not: "registers", "shared memory".
std::optional<std::string_view> too_large(const rules::AttentionBody& body, const AttentionTile& t,
                                          const arch::Arch& arch);

/// Bytes of shared memory, at least.
int64_t shared_bytes(const rules::AttentionBody& body, const AttentionTile& t);

/// Milliseconds: a block takes the longer of its products and its powers, part of the shorter, and
/// its waits; a tile what is before its first block and after its last. The shares and clocks are
/// fitted to head dims 64 to 256 on an H200 (tests/gpu/wgmma_attention.py prints both).
double predict_ms(const rules::AttentionBody& body, const AttentionTile& t, const arch::Arch& arch);

}  // namespace tessera::realize
