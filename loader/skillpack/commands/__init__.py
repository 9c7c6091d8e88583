"""The subcommands of ``skillpack``, one module each, named as the subcommand and holding it as ``command``."""
