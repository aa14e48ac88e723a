-- What people answered in a session: `answered` finds it by the action's digest (what was denied is not asked again,
-- what was approved three times may be offered a time box), `denied_like` what was denied about actions like it.
-- Rows from before stay in neither: both only look back minutes, or count on from now.

ALTER TABLE requests ADD COLUMN answered TEXT;
ALTER TABLE requests ADD COLUMN denied_like TEXT;
CREATE INDEX requests_answered ON requests (answered, ord) WHERE answered IS NOT NULL;
CREATE INDEX requests_denied_like ON requests (denied_like, ord) WHERE denied_like IS NOT NULL;
