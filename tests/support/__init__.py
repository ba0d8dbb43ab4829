"""What tests share: programs, processes, servers and readings of others."""
