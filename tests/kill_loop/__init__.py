"""SIGKILL of real nodes in a loop under load, and the proof that nothing acknowledged is lost."""
