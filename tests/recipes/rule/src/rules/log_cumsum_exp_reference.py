"""y = log of the running sum of exp(x) along a dim."""

from bodies import Storage


def run(body: dict, s: Storage) -> None:
    s.write(body["y"], s.view(body["x"]).exp().cumsum(body["dim"]).log())
