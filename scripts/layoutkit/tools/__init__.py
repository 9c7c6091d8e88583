"""What each tool does with its JSON: request, engine, answer."""
