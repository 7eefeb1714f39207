"""The process in which `tessera optimize --mind llm` asks a language model: `python -m tessera.mind_process`.

The key of the provider is read here and stays here: it is taken out of whatever this process says.
"""

from __future__ import annotations

import os
import sys
import time

# The providers' packages would write their requests to stderr, which is a log of ours.
for name in ("ANTHROPIC_LOG", "OPENAI_LOG"):
    os.environ.pop(name, None)

from tessera.common import protocol  # noqa: E402
from tessera.common.errors import Error, fail  # noqa: E402
from tessera.minds import patience  # noqa: E402
from tessera.minds.keys import Secrets, key_of  # noqa: E402
from tessera.minds.provider import Asked, check_package, provider_of  # noqa: E402

BYTES_A_TOKEN = 3  # as llm/message.cpp estimates


def estimated(text: str) -> int:
    return -(-len(text.encode()) // BYTES_A_TOKEN)


class Mind:
    def __init__(self) -> None:
        self.connection = protocol.over_stdio({"open": self.open, "ask": self.ask})
        self.secrets = Secrets("")

    def open(self, params: dict) -> dict:
        provider = provider_of(params["provider"], params["model"])
        check_package(provider)
        key, origin = key_of(provider, params["endpoint"])
        self.secrets = Secrets(key)
        self.retries = int(params["retries"])
        self.call = self.quietly(lambda: provider.connect(params["model"], key, params["endpoint"]))
        return {"provider": provider.NAME, "key": origin}

    def quietly(self, what):
        """Its result; what it raises loses the key, with the exceptions behind it."""
        try:
            return what()
        except Error as e:
            raise Error(self.secrets.hide(e.diagnostic)) from None
        except patience.Unwanted:
            raise fail("TS0743", "mind.stopped", "stopped while the model was asked") from None
        except Exception as e:
            raise fail("TS0901", "internal.exception", self.secrets.hide(f"{type(e).__name__}: {e}")[:2000]) from None

    def wanted(self) -> bool:
        return self.connection.call("wanted")["wanted"]

    def told(self, text: str) -> None:
        self.connection.notify("progress", {"stage": "mind", "message": self.secrets.hide(text)})

    def ask(self, params: dict) -> dict:
        asked = Asked(params["system"], params["view"], int(params["max_tokens"]))
        patient = patience.Patience(retries=self.retries, wanted=self.wanted, told=self.told)
        begin = time.monotonic()
        answer = self.quietly(lambda: patience.ask(self.call, asked, patient))
        said = answer.said
        # What broke off was paid for as well, and nobody tells how much.
        sent = estimated(asked.system) + estimated(asked.view)
        lost_in, lost_out = sent * len(answer.broken), sum(map(estimated, answer.broken))
        exact = said.input is not None and said.output is not None and not answer.broken
        return {
            "text": self.secrets.hide(said.text),
            "ending": said.ending,
            "input": (said.input if said.input is not None else sent) + lost_in,
            "output": (said.output if said.output is not None else estimated(said.text)) + lost_out,
            "exact": exact,
            "seconds": time.monotonic() - begin,
            "attempts": answer.attempts,
        }


def main() -> int:
    Mind().connection.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
