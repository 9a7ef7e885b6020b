"""Questions as methods of a data frame: `discreet.pandas` and `discreet.polars` register this class."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from discreet.questions.count import count
from discreet.questions.distinct import distinct
from discreet.questions.histogram import histogram
from discreet.questions.quantiles import quantiles
from discreet.questions.sums import mean, sum, variance
from discreet.questions.top import top_k


class Asker:
    """The questions that can be asked of a data frame or a column: `frame.discreet.top_k(10, budget, column="url")`."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __repr__(self) -> str:
        return f".discreet: {', '.join(name for name in dir(self) if not name.startswith('_'))}"


def _method_of(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def method(self: Asker, *given: Any, **words: Any) -> Any:
        return function(self._data, *given, **words)

    return method


for _each in (top_k, count, distinct, histogram, quantiles, sum, mean, variance):
    setattr(Asker, _each.__name__, _method_of(_each))
