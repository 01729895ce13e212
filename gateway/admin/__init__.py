"""The panel: pages for the clinic's administrators, rendered here, with nothing from elsewhere.

`panel` makes the application, `guard` lets in, and `views` answer, each page with the right that it
takes. `templates` and `static` are what they answer with; `texts` holds every word.
"""
