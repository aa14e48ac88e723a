-- Every table keeps the whole row as JSON, beside the columns it is looked up by (signoff/rows.py). A column that is
-- null is in no index, so an index over what is pending stays small however long the history grows.
--   ord     the row's place in the table's own order: seconds since the epoch
--   due_at  when somebody must look at the row next: seconds since the epoch
--   row     the JSON in UTF-8. To read it by hand: convert_from(row, 'UTF8')::jsonb
-- Texts are compared byte by byte, so that rows come in the same order whatever language the database speaks.

CREATE TABLE signoff.requests (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    due_at double precision,
    short text COLLATE "C",
    profile text COLLATE "C",
    session text COLLATE "C",
    pending_profile text COLLATE "C",
    live_session text COLLATE "C",
    live_turn text COLLATE "C",
    pending_action text COLLATE "C",
    leader_key text COLLATE "C",
    follower_of text COLLATE "C",
    answered text COLLATE "C",
    denied_like text COLLATE "C",
    staged text COLLATE "C",
    to_run text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX requests_due ON signoff.requests (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX requests_short ON signoff.requests (short, ord, key) WHERE short IS NOT NULL;
CREATE INDEX requests_profile ON signoff.requests (profile, ord, key) WHERE profile IS NOT NULL;
CREATE INDEX requests_session ON signoff.requests (session, ord, key) WHERE session IS NOT NULL;
CREATE INDEX requests_pending_profile ON signoff.requests (pending_profile, ord, key)
    WHERE pending_profile IS NOT NULL;
CREATE INDEX requests_live_session ON signoff.requests (live_session, ord, key) WHERE live_session IS NOT NULL;
CREATE INDEX requests_live_turn ON signoff.requests (live_turn, ord, key) WHERE live_turn IS NOT NULL;
CREATE INDEX requests_pending_action ON signoff.requests (pending_action, ord, key) WHERE pending_action IS NOT NULL;
CREATE UNIQUE INDEX requests_leader_key ON signoff.requests (leader_key) WHERE leader_key IS NOT NULL;
CREATE INDEX requests_follower_of ON signoff.requests (follower_of, ord, key) WHERE follower_of IS NOT NULL;
CREATE INDEX requests_answered ON signoff.requests (answered, ord, key) WHERE answered IS NOT NULL;
CREATE INDEX requests_denied_like ON signoff.requests (denied_like, ord, key) WHERE denied_like IS NOT NULL;
CREATE INDEX requests_staged ON signoff.requests (staged, ord, key) WHERE staged IS NOT NULL;
CREATE INDEX requests_to_run ON signoff.requests (to_run, ord, key) WHERE to_run IS NOT NULL;

CREATE TABLE signoff.sessions (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    due_at double precision,
    profile text COLLATE "C",
    place text COLLATE "C",
    parent text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX sessions_due ON signoff.sessions (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX sessions_profile ON signoff.sessions (profile, ord, key) WHERE profile IS NOT NULL;
CREATE INDEX sessions_place ON signoff.sessions (place, ord, key) WHERE place IS NOT NULL;
CREATE INDEX sessions_parent ON signoff.sessions (parent, ord, key) WHERE parent IS NOT NULL;

CREATE TABLE signoff.turns (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    due_at double precision,
    open_session text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX turns_due ON signoff.turns (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX turns_open_session ON signoff.turns (open_session, ord, key) WHERE open_session IS NOT NULL;

CREATE TABLE signoff.notifiers (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    due_at double precision,
    session text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX notifiers_due ON signoff.notifiers (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX notifiers_session ON signoff.notifiers (session, ord, key) WHERE session IS NOT NULL;

CREATE TABLE signoff.copies (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    due_at double precision,
    urgency bigint NOT NULL,
    request text COLLATE "C",
    place text COLLATE "C",
    message text COLLATE "C",
    open_chat text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX copies_due ON signoff.copies (urgency, due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX copies_request ON signoff.copies (request, ord, key) WHERE request IS NOT NULL;
CREATE INDEX copies_place ON signoff.copies (place, ord, key) WHERE place IS NOT NULL;
CREATE INDEX copies_message ON signoff.copies (message, ord, key) WHERE message IS NOT NULL;
CREATE INDEX copies_open_chat ON signoff.copies (open_chat, ord, key) WHERE open_chat IS NOT NULL;

CREATE TABLE signoff.grants (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    profile text COLLATE "C",
    live_profile text COLLATE "C",
    covers text COLLATE "C",
    live_session text COLLATE "C",
    request text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX grants_profile ON signoff.grants (profile, ord, key) WHERE profile IS NOT NULL;
CREATE INDEX grants_live_profile ON signoff.grants (live_profile, ord, key) WHERE live_profile IS NOT NULL;
CREATE INDEX grants_covers ON signoff.grants (covers, ord, key) WHERE covers IS NOT NULL;
CREATE INDEX grants_live_session ON signoff.grants (live_session, ord, key) WHERE live_session IS NOT NULL;
CREATE INDEX grants_request ON signoff.grants (request, ord, key) WHERE request IS NOT NULL;

CREATE TABLE signoff.keys (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    profile text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX keys_profile ON signoff.keys (profile, ord, key) WHERE profile IS NOT NULL;

CREATE TABLE signoff.allowlist (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    profile text COLLATE "C",
    live_profile text COLLATE "C",
    row bytea NOT NULL
);
CREATE INDEX allowlist_profile ON signoff.allowlist (profile, ord, key) WHERE profile IS NOT NULL;
CREATE INDEX allowlist_live_profile ON signoff.allowlist (live_profile, ord, key) WHERE live_profile IS NOT NULL;

CREATE TABLE signoff.notes (
    key text COLLATE "C" PRIMARY KEY,
    ord double precision NOT NULL,
    row bytea NOT NULL
);

-- pos is the place in the whole log, in commit order; seq counts within a profile without a gap. `request` is the key
-- of the request that the event is about.
CREATE TABLE signoff.events (
    pos bigint PRIMARY KEY,
    profile text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    session text COLLATE "C",
    request text COLLATE "C",
    event bytea NOT NULL
);
CREATE UNIQUE INDEX events_seq ON signoff.events (profile, seq);
CREATE INDEX events_session ON signoff.events (profile, session, seq) WHERE session IS NOT NULL;

-- The one row that every change locks first, so that changes follow each other: `pos` is the last in the log.
CREATE TABLE signoff.head (
    single boolean PRIMARY KEY CHECK (single),
    pos bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO signoff.head VALUES (true, 0);
