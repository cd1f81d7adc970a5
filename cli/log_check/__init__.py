"""Reading the files of a metadata folder for the commands that examine it."""
