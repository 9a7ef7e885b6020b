"""`import discreet.pandas`: every DataFrame and Series has `.discreet`, with the questions as methods.

frame.discreet.top_k(10, dc.Budget(1.0, 1e-6), column="page", user="visitor")
"""

from __future__ import annotations

import pandas

from discreet.questions.namespace import Asker

__all__: list[str] = []

pandas.api.extensions.register_dataframe_accessor("discreet")(Asker)
pandas.api.extensions.register_series_accessor("discreet")(Asker)
