"""Write a new skill, and check skills against the specification and the rules of hosts."""
