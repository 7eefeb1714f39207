"""torch.export prints the graph that it has so far to stderr, once or twice, where a trace fails: hundreds of lines before the
error that says what to do."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def unprinted() -> Iterator[None]:
    """What is written to stderr in here passes at the end, in its order, but for the graph of a trace that failed."""
    written, graph = io.StringIO(), None
    try:
        with contextlib.redirect_stderr(written):
            yield
    except Exception as e:
        graph = getattr(e, "partial_fx_graph", None)
        raise
    finally:
        text = written.getvalue()
        if text and sys.stderr is not None:
            sys.stderr.write(text if graph is None else text.replace(f"{graph}\n", ""))
