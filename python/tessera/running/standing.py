"""What captured graphs rely on and Dynamo does not look at: what parameters and buffers are taken for, hooks, and the forwards of
classes. Asked before every call of a module in parts.

Where the same tensors still stand at the same places, as nearly always, the extension says so (some microseconds for 200
parameters). Else all is compared in Python: another tensor that lies as the first does is none of this file's concern.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from tessera.common.laid import is_strided
from tessera.running import fast_guard
from tessera.running.plain_tensors import is_plain
from tessera.running.state_guard import lies_of


class Standing:
    def __init__(self, module: nn.Module):
        self._module, self._then = module, _looked(module)
        self._same: Callable[[], bool] | None = None  # whether nothing moved since the last look

    def stands(self) -> bool:
        if self._same is not None and self._same():
            return True
        if _looked(self._module) != self._then:
            return False
        self._same = _watch(self._module)
        return True


def _looked(module: nn.Module) -> list:
    laid = [
        (t.dtype, t.shape, t.stride(), t.device) if is_strided(t) else (t.dtype, t.layout, t.device)
        for t in (*module.parameters(), *module.buffers())
        if not nn.parameter.is_lazy(t)
    ]
    code = [(type(m).forward, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in module.modules()]
    return [laid, code]


def _watch(module: nn.Module) -> Callable[[], bool] | None:
    """None where there is no extension, or something is of a kind that it does not compare."""
    modules, tensors = list(module.modules()), [*module.parameters(), *module.buffers()]
    dictionaries = [d for m in modules for d in (m._parameters, m._buffers, m._modules)]
    if not all(type(d) is dict for d in dictionaries):
        return None
    if any(nn.parameter.is_lazy(t) or not is_plain(t) for t in tensors):
        return None
    classes = list(dict.fromkeys(map(type, modules)))
    of_classes = [(kind, "forward", kind.forward) for kind in classes]
    hooks = [h for m in modules for h in (m._forward_hooks, m._forward_pre_hooks)]
    return fast_guard.unmoved(
        list(zip(tensors, zip(*lies_of(tensors), strict=True), strict=True)) if tensors else [],
        fields=[(m, "__class__", type(m)) for m in modules] + of_classes,
        sizes=[(h, len(h)) for h in hooks],
        wholes=[(d, [x for item in d.items() for x in item]) for d in dictionaries],
    )
