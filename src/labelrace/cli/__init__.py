"""The command ``labelrace``: one file a subcommand, put together in ``main``."""
