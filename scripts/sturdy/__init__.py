"""What every other package of the pack builds on: strict JSON, atomic files, near names, child processes.

It uses the standard library only, and knows nothing of skills, graphs or layouts. Import its modules, such as
``sturdy.strict_json``; importing the package itself loads none of them.
"""
