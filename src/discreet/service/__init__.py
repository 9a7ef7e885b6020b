"""Events in over HTTP, continual releases out, on a live page: private numbers that people can watch.

`definitions` says what is published, `streams` when, `event_spool` and `store` keep what must last, `runtime` has the
threads, `routes` speaks HTTP, and `shapes` has the JSON. Needs the extra `discreet[service]`. docs/service.md has how
it survives a crash.
"""
