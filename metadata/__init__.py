"""The metadata of a cluster: images, the loader that advances them, and the controller that decides."""
