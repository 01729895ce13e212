"""The example's cloud, as the tests of the adapter itself have it."""

from tests.adapters.rest.conftest import adapter, cloud, url

__all__ = ["adapter", "cloud", "url"]
