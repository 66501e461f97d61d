"""What checks of several areas, and other rooms, share: no checks."""
