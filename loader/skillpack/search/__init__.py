"""Find the skills, and the pages in them, that fit words of a user."""
