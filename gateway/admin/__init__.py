"""The panel: pages for the clinic's administrators, rendered here, with nothing from elsewhere.

`panel` makes the application, `guard` checks each request, and `views` answer it, from `templates`
and `static`. `texts` holds every word.
"""
