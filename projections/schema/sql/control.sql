-- The records about read models, in the schema `hubcloud`. Programs of all versions share these tables: they may gain columns that inserts can leave
-- out, and nothing else may change.

CREATE SCHEMA IF NOT EXISTS hubcloud;

-- One row: the installation that the database belongs to.
CREATE TABLE IF NOT EXISTS hubcloud.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The schemas of read models. A schema is `building` until all its projections have reached the ends of their streams once, then `live`.
CREATE TABLE IF NOT EXISTS hubcloud.schemas (
    name text PRIMARY KEY,
    -- SHA-256 of the definition, in hexadecimal digits.
    definition_hash text NOT NULL,
    state text NOT NULL DEFAULT 'building' CHECK (state IN ('building', 'live')),
    created_at timestamptz NOT NULL DEFAULT now(),
    live_at timestamptz
);

-- Projections that an operator has stopped, in every schema, until they are resumed.
CREATE TABLE IF NOT EXISTS hubcloud.stops (
    projection text PRIMARY KEY,
    why text NOT NULL,
    stopped_at timestamptz NOT NULL DEFAULT now()
);

-- The last build beside each schema.
CREATE TABLE IF NOT EXISTS hubcloud.builds (
    -- The schema that is built. No other build has the same name.
    target text PRIMARY KEY,
    -- The schema that it is to replace, or that it is compared with.
    schema text NOT NULL,
    -- install, rebuild or verify.
    purpose text NOT NULL,
    -- load, follow, compare, held or switch; done or failed at the end.
    phase text NOT NULL,
    -- How far it is in the directory, and how far it has to go.
    sequence bigint NOT NULL,
    head bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Schemas that rebuilds have replaced, until they are dropped.
CREATE TABLE IF NOT EXISTS hubcloud.retired (
    name text PRIMARY KEY,
    definition_hash text NOT NULL,
    retired_at timestamptz NOT NULL DEFAULT now()
);
