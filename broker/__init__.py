"""A broker without data: registers, follows the metadata log, and answers clients from its image of it."""
