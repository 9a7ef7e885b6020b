"""Questions as methods of a data frame: `discreet.pandas` and `discreet.polars` register this class."""

from __future__ import annotations

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

    @wraps(top_k)
    def top_k(self, *given: Any, **words: Any) -> Any:
        return top_k(self._data, *given, **words)

    @wraps(count)
    def count(self, *given: Any, **words: Any) -> Any:
        return count(self._data, *given, **words)

    @wraps(distinct)
    def distinct(self, *given: Any, **words: Any) -> Any:
        return distinct(self._data, *given, **words)

    @wraps(histogram)
    def histogram(self, *given: Any, **words: Any) -> Any:
        return histogram(self._data, *given, **words)

    @wraps(quantiles)
    def quantiles(self, *given: Any, **words: Any) -> Any:
        return quantiles(self._data, *given, **words)

    @wraps(sum)
    def sum(self, *given: Any, **words: Any) -> Any:
        return sum(self._data, *given, **words)

    @wraps(mean)
    def mean(self, *given: Any, **words: Any) -> Any:
        return mean(self._data, *given, **words)

    @wraps(variance)
    def variance(self, *given: Any, **words: Any) -> Any:
        return variance(self._data, *given, **words)
