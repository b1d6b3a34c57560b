-- The job of a prepared object is 2 KiB and more. Beyond 2 KiB PostgreSQL moves a value to another table, where it
-- is written and deleted again for each signature in two steps. Up to a page it stays in its row instead.
{{postgres}}ALTER TABLE prepared SET (toast_tuple_target = 8160);
