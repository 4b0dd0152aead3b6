"""What a table is: kinds of columns, the schema, reading and writing."""
