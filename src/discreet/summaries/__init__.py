"""Streaming summaries. They are NOT private: nothing leaves them but through a release."""
