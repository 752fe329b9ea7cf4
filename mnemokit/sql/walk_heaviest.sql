SELECT max(weight) FROM mnests WHERE list_contains($states, state)
