"""The edge memory in a store: single calls, bulk, reads, walks, and files of another system."""
