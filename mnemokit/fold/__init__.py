"""From passings to weights: the rule of edges, pure, on frames and arrays."""
