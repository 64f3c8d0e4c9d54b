"""The agent's memory of the conversation: messages, the context and its rules, assembly, and the request."""
