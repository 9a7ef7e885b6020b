"""Events: files, tables, lists of people, growing inputs; one assembler of rows, one reader of items."""
