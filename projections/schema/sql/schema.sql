-- The read models. This file and indexes.sql are their definition: the schema that they are built in is named after their hash, so any change
-- here, also of this comment, makes a schema of its own, built from the streams beside the others.
--
-- Revision 3. Raise it when the program comes to write something else into the same tables.
--
-- Ids are ordered by their bytes whatever the database's collation: lists of hubs depend on it.

-- How far each projection is. The rows of `directory` and `presence` are there from the beginning. That of last reported states has one for each
-- journal, `devices/0` and so on, from its start.
CREATE TABLE checkpoints (
    projection text PRIMARY KEY,
    -- The last event of the projection's stream that the tables have.
    sequence bigint NOT NULL DEFAULT 0,
    -- That event's id, where events have one: a stream with another event in its place is another stream. Of a commit of a journal, its term and its
    -- time in nanoseconds.
    event_id text NOT NULL DEFAULT '',
    -- Whether it has been up with its stream since the schema was made: from then on the tables are complete.
    built boolean NOT NULL DEFAULT false,
    -- The event that stops the line, and why; null while it runs.
    stopped_sequence bigint,
    stopped_type text,
    stopped_error text,
    -- Which projector may write, counted: each that takes over raises it, and what the one before it has not committed by then fails.
    term bigint NOT NULL DEFAULT 0
);

INSERT INTO checkpoints (projection) VALUES ('directory'), ('presence');

CREATE TABLE orgs (
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE members (
    org_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    email text NOT NULL,
    role text NOT NULL,
    joined_at timestamptz NOT NULL,
    -- The sequence of the event that made it one: the order of joining, with no two the same.
    joined_sequence bigint NOT NULL
);

-- All invitations there ever were: a list that is being paged through goes on after one that was accepted meanwhile.
CREATE TABLE invitations (
    org_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    email text NOT NULL,
    role text NOT NULL,
    -- One that is pending has expired once expires_at has come.
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'accepted', 'revoked')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The sequence of the event that made it: the order of creation, with no two the same.
    created_sequence bigint NOT NULL
);

CREATE TABLE sites (
    id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    -- The sequence of the event that began it: the order of creation, with no two the same.
    created_sequence bigint NOT NULL
);

-- The hubs that an organization has added.
CREATE TABLE hubs (
    id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    site_id text COLLATE "C" NOT NULL,
    name text,
    registered_at timestamptz NOT NULL,
    -- Whether it was connected at the moment when it was added.
    connected_when_added boolean NOT NULL,
    -- The event log that readers see: its tag, and the sequence of the hub's stream that it begins after.
    epoch text NOT NULL,
    log_after bigint NOT NULL,
    -- The tags of its older events, when the installation was restored from a backup since.
    log_former text NOT NULL
);

-- Names and rooms of devices that were set through the API; a device of which nothing is set has no row.
CREATE TABLE device_labels (
    org_id text COLLATE "C" NOT NULL,
    hub_id text COLLATE "C" NOT NULL,
    device_id bigint NOT NULL,
    name text,
    room text
);

CREATE TABLE api_keys (
    id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    label text NOT NULL,
    environment text NOT NULL,
    scopes text[] NOT NULL,
    -- The sites that the key reaches; empty for all.
    sites text[] NOT NULL,
    expires_at timestamptz,
    -- SHA-256 of the key's secret part.
    secret_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    -- The secrets that still work for a time, a JSON array of domain.KeySecret; NULL for a key that was not rotated.
    former_secrets text,
    revoked_at timestamptz
);

-- Everybody who ever was a member: who did something is still known when that person has gone.
CREATE TABLE people (
    org_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    email text NOT NULL
);

-- Who did what in an organization: one row for each event of the directory that concerns one, without what is secret in it. Rows that are
-- older than the newest by domain.ActivityRetention are deleted.
CREATE TABLE activity (
    org_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    at timestamptz NOT NULL,
    type text NOT NULL,
    actor_kind text NOT NULL,
    actor_id text COLLATE "C" NOT NULL,
    -- What it was done to: a member, an invitation, a key, a site, a hub, or the number of a device of hub_id.
    subject_id text COLLATE "C" NOT NULL,
    hub_id text COLLATE "C",
    -- What the subject became: a role, a name, scopes, or the id of a site.
    detail text NOT NULL,
    request_id text NOT NULL,
    -- The IP address of the request; empty without one.
    address text NOT NULL
);

-- What the broker and the hub said last, for every hub that has ever connected, added or not.
CREATE TABLE hub_presence (
    hub_id text COLLATE "C" PRIMARY KEY,
    online boolean NOT NULL,
    since timestamptz NOT NULL,
    public_ip text,
    reason text,
    -- JSON objects as the hub sent them. They are text here because PostgreSQL's JSON types refuse some of what JSON allows,
    -- and no hub may stop the line.
    firmware text,
    network text
);

-- What hubs reported last: the fields of devicestate.Hub, Device and Channel. Most updates leave the indexed columns as they are, and find room in their pages: they
-- touch no index.
CREATE TABLE reported_hubs (
    hub_id text COLLATE "C" PRIMARY KEY,
    journal int NOT NULL,
    epoch text NOT NULL,
    seq bigint NOT NULL,
    event_seq bigint NOT NULL,
    at timestamptz NOT NULL,
    since timestamptz NOT NULL,
    doubt bigint NOT NULL,
    doubt_number bigint NOT NULL,
    read_after bigint NOT NULL,
    read_number bigint NOT NULL,
    was_read boolean NOT NULL,
    forgotten text NOT NULL,
    certain boolean NOT NULL,
    -- How many channels it has: pages of states look at some number of them.
    channels bigint NOT NULL,
    omitted bigint NOT NULL
) WITH (fillfactor = 60);

CREATE TABLE reported_devices (
    hub_id text COLLATE "C" NOT NULL,
    device_id bigint NOT NULL,
    name text NOT NULL,
    manufacturer text NOT NULL,
    model text NOT NULL,
    available boolean NOT NULL,
    available_since timestamptz,
    -- Times of the log are nanoseconds since 1970, 0 for none.
    available_logged bigint NOT NULL,
    doubt bigint NOT NULL,
    doubt_number bigint NOT NULL,
    read_after bigint NOT NULL,
    read_number bigint NOT NULL,
    was_read boolean NOT NULL,
    named_seq bigint NOT NULL,
    named_number bigint NOT NULL,
    reached_seq bigint NOT NULL,
    reached_number bigint NOT NULL,
    event_seq bigint NOT NULL,
    event_number bigint NOT NULL,
    seq bigint NOT NULL,
    certain boolean NOT NULL,
    PRIMARY KEY (hub_id, device_id)
) WITH (fillfactor = 80);

CREATE TABLE reported_channels (
    hub_id text COLLATE "C" NOT NULL,
    device_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    endpoint bigint NOT NULL,
    was_read boolean NOT NULL,
    kind text NOT NULL,
    unit text,
    readable boolean NOT NULL,
    writable boolean NOT NULL,
    -- JSON is text here because PostgreSQL's JSON types refuse some of what JSON allows.
    capabilities text,
    available boolean NOT NULL,
    value text,
    -- The alarms that stand, a JSON array; NULL for none.
    standing text,
    observed_at timestamptz,
    changed_at timestamptz,
    desired text,
    desired_at timestamptz,
    status text NOT NULL,
    -- Whether it may need attention, as devicestate.Channel.IsSuspect decides.
    suspect boolean NOT NULL,
    unsure boolean NOT NULL,
    basis text NOT NULL,
    observed_logged bigint NOT NULL,
    changed_logged bigint NOT NULL,
    desired_logged bigint NOT NULL,
    seq bigint NOT NULL,
    event_seq bigint NOT NULL,
    event_number bigint NOT NULL,
    PRIMARY KEY (hub_id, device_id, key, endpoint)
) WITH (fillfactor = 60);

CREATE INDEX reported_hubs_of_journal ON reported_hubs (journal);
CREATE INDEX reported_channels_by_key ON reported_channels (key, hub_id, device_id, endpoint);

-- What hubs must be asked about: see the query HubsInDoubt.
CREATE INDEX reported_hubs_in_doubt ON reported_hubs (hub_id) WHERE NOT certain;
CREATE INDEX reported_devices_in_doubt ON reported_devices (hub_id) WHERE NOT certain;
CREATE INDEX reported_channels_suspect ON reported_channels (hub_id, device_id) WHERE suspect;
CREATE INDEX reported_channels_in_doubt ON reported_channels (hub_id) WHERE unsure OR status = 'pending';

-- What organizations keep of their events: the entries of the stream BOOK. place is what an entry is found by where it happened, what by who and what, in
-- lower case.
CREATE TABLE book (
    seq bigint NOT NULL,
    org_id text COLLATE "C" NOT NULL,
    hub_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    site_id text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    place text NOT NULL,
    what text NOT NULL,
    -- A domain.BookEntry as JSON.
    entry text NOT NULL,
    PRIMARY KEY (seq)
);

CREATE INDEX book_newest_first ON book (org_id, at DESC, seq DESC);
