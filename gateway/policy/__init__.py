"""How much is seen: the clinic's policy, read once and compiled into one redactor per view."""
