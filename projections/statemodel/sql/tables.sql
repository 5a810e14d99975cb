-- The read model of last reported states. The schema is named after the hash of this file, so any change here, also of this comment, makes
-- every installation build the read model again. {schema} stands for its name.
--
-- Revision 4. Raise it when the program comes to write something else into the same tables.

CREATE SCHEMA {schema};

-- Which process may write, counted: each that takes over raises it, and what the one before it has not committed by then fails.
CREATE TABLE {schema}.leader (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    term bigint NOT NULL DEFAULT 0
);

INSERT INTO {schema}.leader DEFAULT VALUES;

-- How far the tables are in the journal of each group of shards.
CREATE TABLE {schema}.checkpoints (
    journal int PRIMARY KEY,
    -- The last commit that the tables have; 0 for none. Its term and time tell it from the commit of another journal.
    position bigint NOT NULL DEFAULT 0,
    commit_term bigint NOT NULL DEFAULT 0,
    commit_time bigint NOT NULL DEFAULT 0,
    -- Whether the tables have been up with the journal since they were made.
    built boolean NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The fields of devicestate.Hub, Device and Channel. Most updates leave the indexed columns as they are, and find room in their pages: they
-- touch no index.
CREATE TABLE {schema}.hubs (
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
    certain boolean NOT NULL
) WITH (fillfactor = 60);

CREATE TABLE {schema}.devices (
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

CREATE TABLE {schema}.channels (
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

CREATE INDEX hubs_of_journal ON {schema}.hubs (journal);
CREATE INDEX channels_by_key ON {schema}.channels (key, hub_id, device_id, endpoint);

-- What hubs must be asked about: see hubs_in_doubt.sql in package readmodel.
CREATE INDEX hubs_in_doubt ON {schema}.hubs (hub_id) WHERE NOT certain;
CREATE INDEX devices_in_doubt ON {schema}.devices (hub_id) WHERE NOT certain;
CREATE INDEX channels_in_doubt ON {schema}.channels (hub_id) WHERE unsure OR status = 'pending';
