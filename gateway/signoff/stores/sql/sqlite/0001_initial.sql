-- Every table keeps the whole row as JSON, beside the columns it is looked up by (signoff/rows.py). A column that is
-- null is in no index, so an index over what is pending stays small however long the history grows.
--   ord     the row's place in the table's own order: seconds since the epoch
--   due_at  when somebody must look at the row next: seconds since the epoch
-- Ties are broken by key: rows of one instant are few, so look-ups sort them, and the indexes stay a third smaller.
-- A mass decision makes thousands of rows due in one instant, so the indexes over due_at do hold the key.
-- The document comes last in a row, so that reading the columns never follows its overflow pages.

CREATE TABLE requests (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    due_at REAL,
    short TEXT,
    profile TEXT,
    session TEXT,
    pending_profile TEXT,
    live_session TEXT,
    live_turn TEXT,
    pending_action TEXT,
    leader_key TEXT,
    follower_of TEXT,
    row BLOB NOT NULL
);
CREATE INDEX requests_due ON requests (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX requests_short ON requests (short, ord) WHERE short IS NOT NULL;
CREATE INDEX requests_profile ON requests (profile, ord) WHERE profile IS NOT NULL;
CREATE INDEX requests_session ON requests (session, ord) WHERE session IS NOT NULL;
CREATE INDEX requests_pending_profile ON requests (pending_profile, ord) WHERE pending_profile IS NOT NULL;
CREATE INDEX requests_live_session ON requests (live_session, ord) WHERE live_session IS NOT NULL;
CREATE INDEX requests_live_turn ON requests (live_turn, ord) WHERE live_turn IS NOT NULL;
CREATE INDEX requests_pending_action ON requests (pending_action, ord) WHERE pending_action IS NOT NULL;
CREATE UNIQUE INDEX requests_leader_key ON requests (leader_key) WHERE leader_key IS NOT NULL;
CREATE INDEX requests_follower_of ON requests (follower_of, ord) WHERE follower_of IS NOT NULL;

CREATE TABLE sessions (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    profile TEXT,
    place TEXT,
    parent TEXT,
    row BLOB NOT NULL
);
CREATE INDEX sessions_profile ON sessions (profile, ord) WHERE profile IS NOT NULL;
CREATE INDEX sessions_place ON sessions (place, ord) WHERE place IS NOT NULL;
CREATE INDEX sessions_parent ON sessions (parent, ord) WHERE parent IS NOT NULL;

CREATE TABLE turns (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    due_at REAL,
    open_session TEXT,
    row BLOB NOT NULL
);
CREATE INDEX turns_due ON turns (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX turns_open_session ON turns (open_session, ord) WHERE open_session IS NOT NULL;

CREATE TABLE notifiers (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    due_at REAL,
    session TEXT,
    row BLOB NOT NULL
);
CREATE INDEX notifiers_due ON notifiers (due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX notifiers_session ON notifiers (session, ord) WHERE session IS NOT NULL;

CREATE TABLE copies (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    due_at REAL,
    urgency INTEGER NOT NULL,
    request TEXT,
    place TEXT,
    message TEXT,
    open_chat TEXT,
    row BLOB NOT NULL
);
CREATE INDEX copies_due ON copies (urgency, due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX copies_request ON copies (request, ord) WHERE request IS NOT NULL;
CREATE INDEX copies_place ON copies (place, ord) WHERE place IS NOT NULL;
CREATE INDEX copies_message ON copies (message, ord) WHERE message IS NOT NULL;
CREATE INDEX copies_open_chat ON copies (open_chat, ord) WHERE open_chat IS NOT NULL;

CREATE TABLE grants (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    profile TEXT,
    live_profile TEXT,
    covers TEXT,
    live_session TEXT,
    request TEXT,
    row BLOB NOT NULL
);
CREATE INDEX grants_profile ON grants (profile, ord) WHERE profile IS NOT NULL;
CREATE INDEX grants_live_profile ON grants (live_profile, ord) WHERE live_profile IS NOT NULL;
CREATE INDEX grants_covers ON grants (covers, ord) WHERE covers IS NOT NULL;
CREATE INDEX grants_live_session ON grants (live_session, ord) WHERE live_session IS NOT NULL;
CREATE INDEX grants_request ON grants (request, ord) WHERE request IS NOT NULL;

CREATE TABLE keys (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    profile TEXT,
    row BLOB NOT NULL
);
CREATE INDEX keys_profile ON keys (profile, ord) WHERE profile IS NOT NULL;

CREATE TABLE notes (
    key TEXT NOT NULL PRIMARY KEY,
    ord REAL NOT NULL,
    row BLOB NOT NULL
);

-- pos is the place in the whole log, in commit order; seq counts within a profile without a gap.
CREATE TABLE events (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    profile TEXT NOT NULL,
    seq INTEGER NOT NULL,
    session TEXT,
    event BLOB NOT NULL
);
CREATE UNIQUE INDEX events_seq ON events (profile, seq);
CREATE INDEX events_session ON events (profile, session, seq) WHERE session IS NOT NULL;
