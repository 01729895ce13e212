"""The audit: records who was shown what, in chained day files that are verified and indexed."""
