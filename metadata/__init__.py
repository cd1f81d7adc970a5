"""The metadata of a cluster: images, the loader that advances them, and the controller that decides.

Read `image/image.py` first, then `loader.py` (log to image) and `controller/controller.py` (requests to log).
"""
