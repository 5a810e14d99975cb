-- What is kept about read models, in the schema `hubcloud`. Every program of every version finds these tables as they are here:
-- they may gain columns that can be left out, and nothing else may change.

CREATE SCHEMA IF NOT EXISTS hubcloud;

-- The installation that the database belongs to; one row.
CREATE TABLE IF NOT EXISTS hubcloud.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The schemas of read models. One is `building` until all its projections have been up with their streams once, then `live`.
CREATE TABLE IF NOT EXISTS hubcloud.schemas (
    name text PRIMARY KEY,
    -- SHA-256 of the definition, in hexadecimal digits.
    definition_hash text NOT NULL,
    state text NOT NULL DEFAULT 'building' CHECK (state IN ('building', 'live')),
    created_at timestamptz NOT NULL DEFAULT now(),
    live_at timestamptz
);

-- Projections that an operator has stopped, in every schema: they go no further until they are resumed.
CREATE TABLE IF NOT EXISTS hubcloud.stops (
    projection text PRIMARY KEY,
    why text NOT NULL,
    stopped_at timestamptz NOT NULL DEFAULT now()
);

-- Read models that are built beside those in use, or were: the last of each schema.
CREATE TABLE IF NOT EXISTS hubcloud.builds (
    -- The schema that is built, of a name that no other build has.
    target text PRIMARY KEY,
    -- The schema whose place it is to take, or that it is compared with.
    schema text NOT NULL,
    -- install, rebuild or verify.
    purpose text NOT NULL,
    -- What it is doing: load, follow, compare, held, switch; done or failed at its end.
    phase text NOT NULL,
    -- How far it is in the directory, and how far it has to go.
    sequence bigint NOT NULL,
    head bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Schemas that others have taken the place of, kept until they are dropped.
CREATE TABLE IF NOT EXISTS hubcloud.retired (
    name text PRIMARY KEY,
    definition_hash text NOT NULL,
    retired_at timestamptz NOT NULL DEFAULT now()
);
