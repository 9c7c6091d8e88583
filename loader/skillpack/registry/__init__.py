"""Which tools there are: declarations, versions, intents, dependencies. Nothing of a skill is executed here."""
