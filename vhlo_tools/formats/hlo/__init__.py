"""HLO modules as protocol buffers: recognition, and a reader of signature, aliases and shardings."""
