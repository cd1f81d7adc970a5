"""Questions about the metadata that any node answers from its own image, brokers and controllers alike."""
