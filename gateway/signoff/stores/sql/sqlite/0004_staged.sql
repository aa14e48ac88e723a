-- Actions that are kept for a later yes: `staged` lists the questions about them by profile, `to_run` finds those that
-- were approved and that nobody has started. No row from before is one.

ALTER TABLE requests ADD COLUMN staged TEXT;
ALTER TABLE requests ADD COLUMN to_run TEXT;
CREATE INDEX requests_staged ON requests (staged, ord) WHERE staged IS NOT NULL;
CREATE INDEX requests_to_run ON requests (to_run, ord) WHERE to_run IS NOT NULL;
