"""Ready-made application tools, written as a user would write their own: examples to copy, and bodies for scenarios.

Left out: anything that the simulator needs; nothing in ``pipelines`` knows them.
"""
