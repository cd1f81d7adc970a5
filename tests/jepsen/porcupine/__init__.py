"""A second opinion on the versioned register: a small Go program around the linearizability checker Porcupine."""
