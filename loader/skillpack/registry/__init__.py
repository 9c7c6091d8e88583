"""The registry of tools: declarations, versions, intents, dependencies. It executes nothing of a skill."""
