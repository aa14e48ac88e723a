"""Stories told from outside: a gateway, a chat platform and agents, each a process of its own."""
