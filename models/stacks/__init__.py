"""Other people's stacks on the virtual clock: a framework's own session, with models standing in for its services.

Each framework has a file and an extra of its name; ``loop`` is what they share. Left out: changing a framework. It
runs as it is installed.
"""
