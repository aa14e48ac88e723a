-- A session whose questions are switched off is looked at again when that ends. No row from before has such a time.

ALTER TABLE sessions ADD COLUMN due_at REAL;
CREATE INDEX sessions_due ON sessions (due_at, key) WHERE due_at IS NOT NULL;
