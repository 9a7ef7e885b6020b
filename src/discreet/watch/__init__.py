"""The loop of ticks: a question with a tick, asked of what comes in, and one release a tick goes out.

`tasks` says what is published and runs its mechanism, `ticks` which tick a row is in, `watcher` follows a growing input
and survives. `discreet watch` is the last; the streams of a service run the same tasks on events that came over HTTP.
"""
