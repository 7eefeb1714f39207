// CUTLASS' TMA epilogues with another number of store buffers. The builder takes two; a store waits
// until the one before the last has left shared memory, and in a cooperative kernel the tensor
// cores wait with it.
#pragma once

#include "tessera_cutlass/sm90.hpp"

namespace tessera {

/// `Built` with `StagesD` buffers for D.
template <class Built, int StagesD>
struct Restaged;
template <int StagesC, int OldStages, int Fragment, bool Reuse, bool Delayed, class Tile,
          class EpilogueTile, class C, class StrideC, class D, class StrideD, class Callbacks,
          class CopyG2S, class AtomC, class CopyS2R, class CopyS2G, class AtomD, class CopyR2S,
          class AtomR, class CopyR2R, int StagesD>
struct Restaged<
    cutlass::epilogue::collective::CollectiveEpilogue<
        cutlass::epilogue::Sm90TmaWarpSpecialized<StagesC, OldStages, Fragment, Reuse, Delayed>,
        Tile, EpilogueTile, C, StrideC, D, StrideD, Callbacks, CopyG2S, AtomC, CopyS2R, CopyS2G,
        AtomD, CopyR2S, AtomR, CopyR2R>,
    StagesD> {
  using CollectiveOp = cutlass::epilogue::collective::CollectiveEpilogue<
      cutlass::epilogue::Sm90TmaWarpSpecialized<StagesC, StagesD, Fragment, Reuse, Delayed>, Tile,
      EpilogueTile, C, StrideC, D, StrideD, Callbacks, CopyG2S, AtomC, CopyS2R, CopyS2G, AtomD,
      CopyR2S, AtomR, CopyR2R>;
};

}  // namespace tessera
