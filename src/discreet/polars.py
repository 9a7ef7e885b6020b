"""`import discreet.polars`: every DataFrame, LazyFrame and Series has `.discreet`, with the questions as methods.

frame.discreet.top_k(10, dc.Budget(1.0, 1e-6), column="page", user="visitor")
"""

from __future__ import annotations

import polars

from discreet.questions.namespace import Asker

__all__: list[str] = []

polars.api.register_dataframe_namespace("discreet")(Asker)
polars.api.register_lazyframe_namespace("discreet")(Asker)
polars.api.register_series_namespace("discreet")(Asker)
