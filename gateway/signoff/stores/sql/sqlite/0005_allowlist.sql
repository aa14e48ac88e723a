-- The lines of allowlists. With this engine they stand in a file beside the store, and the table stays empty: every engine
-- has the same tables.

CREATE TABLE allowlist (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    profile TEXT,
    live_profile TEXT,
    row BLOB NOT NULL
);
CREATE INDEX allowlist_profile ON allowlist (profile, ord) WHERE profile IS NOT NULL;
CREATE INDEX allowlist_live_profile ON allowlist (live_profile, ord) WHERE live_profile IS NOT NULL;
