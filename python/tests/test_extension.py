import os
import threading

from tessera.running import extension
from tessera.tracer_process import Tracer


def test_a_tracer_begins_to_build_the_extension(monkeypatch):
    found = threading.Event()
    niceness = []

    def backend():
        niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        found.set()

    monkeypatch.setattr(extension, "backend", backend)
    Tracer()
    assert found.wait(10)
    # It gives way to what is measured; this thread does not.
    assert niceness[0] > os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) or niceness[0] == 19


def test_threads_share_one_backend():
    found = []
    threads = [threading.Thread(target=lambda: found.append(extension.backend())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(b) for b in found}) == 1
