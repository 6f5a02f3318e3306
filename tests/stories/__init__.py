"""The documented crashes as whole stories: files in tests/runs/, told headless and through the app."""
