"""Watch busy hosts for some seconds, and name what each GPU's job waits for."""
