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
