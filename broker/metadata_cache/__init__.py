"""What a broker shows of the cluster: the current image, and the answers to Metadata that are made from it."""
