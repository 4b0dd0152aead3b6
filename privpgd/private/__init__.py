"""All that sees rows or spends budget: noise, accounting, counting, selection."""
