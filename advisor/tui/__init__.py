"""The terminal app. It shows a sitting and asks its questions; everything it knows comes from the session below it."""
