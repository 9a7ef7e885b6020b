"""Events in over HTTP, continual releases out, on a live page: private numbers that people can watch.

`definitions` says what is published, `streams` when, `spool` and `store` keep what must last, `app` speaks HTTP. Needs
the extra `discreet[service]`. docs/service.md has how it survives a crash.
"""
