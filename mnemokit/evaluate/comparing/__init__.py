"""Two groups of sessions, and the questions that researchers ask of them."""
