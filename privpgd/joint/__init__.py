"""Beyond the paper: one prior for all tables, and rows that have them."""
