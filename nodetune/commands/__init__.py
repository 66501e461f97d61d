"""The commands: one file each, named as it is typed. Short: parse, call the workflow, print, exit code."""
