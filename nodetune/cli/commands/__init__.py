"""The commands, one file each, named like the command: parse options, call a function, print, return the exit code."""
