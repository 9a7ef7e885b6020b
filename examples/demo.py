"""The first five minutes."""

import discreet

print("discreet", discreet.__version__)
