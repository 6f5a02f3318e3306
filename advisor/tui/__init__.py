"""Shows a session in the terminal and asks its questions; everything it knows comes from the session below it."""
