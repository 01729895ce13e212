"""The panel: pages for the clinic's administrators, rendered here, with nothing from elsewhere.

`panel` makes the application, `routes` names each page and the right that it takes, `views` answer,
`templates` and `static` are what they answer with, and `texts` holds every word in each language.
"""
