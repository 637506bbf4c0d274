"""Speed: measures how fast a language model's server answers, and derives the time-out of a request from it.

A hosted model writes 100 tokens a second, a small one on a busy processor 5: no fixed time-out fits both.
"""

from __future__ import annotations

import threading

#: Input tokens that take as long as one output token: 2 to 3 on a processor, more on other hardware.
_INPUT_PER_OUTPUT = 3
#: A request may take so many times the expected time: a machine with other work is five times slower.
_SLACK = 4.0
_SECONDS_MIN, _SECONDS_MAX = 10.0, 280.0
#: An answer is cut off when a server that becomes that much slower would be late; a shorter answer is never cut.
_CUT_SLACK = 1.25
_ANSWER_TOKENS_MIN = 256
#: Weight of the newest request.
_WEIGHT = 0.3


class Speed:
    """The speed of one server. Safe to use from many threads.

    Parameters:
        first_seconds: the time-out until a request has been answered.
    """

    def __init__(self, first_seconds: float) -> None:
        self._first_seconds = first_seconds
        #: Output tokens a second; None before the first answer.
        self._rate: float | None = None
        #: Requests in a row that took too long; each doubles the time-out.
        self._slow = 0
        self._lock = threading.Lock()

    def seconds(self, input_tokens: int, output_tokens: int) -> float:
        """Return the time-out of a request with at most these tokens."""
        with self._lock:
            seconds = self._first_seconds
            if self._rate is not None:
                seconds = max(min(_SECONDS_MIN, seconds), _SLACK * _work(input_tokens, output_tokens) / self._rate)
            return min(seconds * 2**self._slow, max(_SECONDS_MAX, self._first_seconds))

    def answer_tokens(self, input_tokens: int, seconds: float) -> int | None:
        """Return the output tokens that surely take less than `seconds`; None before the first answer.

        A small model that repeats itself without end is cut off there, and the beginning of its answer is kept.
        """
        with self._lock:
            if self._rate is None:
                return None
            return max(_ANSWER_TOKENS_MIN, int(seconds * self._rate / _CUT_SLACK - input_tokens / _INPUT_PER_OUTPUT))

    def answered(self, input_tokens: int, output_tokens: int, seconds: float) -> None:
        """Record an answer."""
        with self._lock:
            rate = _work(input_tokens, output_tokens) / max(seconds, 1e-3)
            self._rate = rate if self._rate is None else (1 - _WEIGHT) * self._rate + _WEIGHT * rate
            self._slow = 0

    def timed_out(self) -> None:
        """Record a request without an answer in time."""
        with self._lock:
            self._slow = min(self._slow + 1, 8)

    def tokens_per_second(self) -> float | None:
        """Return the measured speed in output tokens a second; None before the first answer."""
        return self._rate


def _work(input_tokens: int, output_tokens: int) -> float:
    return max(1.0, input_tokens / _INPUT_PER_OUTPUT + output_tokens)
