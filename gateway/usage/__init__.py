"""How many calls each key makes, and how they end: counted here, summed up per minute and day."""
