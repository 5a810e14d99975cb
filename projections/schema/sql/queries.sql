-- name: Checkpoints :many
SELECT projection, sequence, event_id, built, stopped_sequence, stopped_type, stopped_error, term FROM checkpoints ORDER BY projection;

-- name: Checkpoint :one
SELECT sequence, event_id, built, stopped_sequence, term FROM checkpoints WHERE projection = @projection;

-- RecordStop records the event that stops a projection, and notifies all listeners. It records nothing if the checkpoint is not where the projection
-- read the event: a rebuild may have replaced the read models.
-- name: RecordStop :execrows
WITH stopped AS (
    UPDATE checkpoints SET stopped_sequence = @sequence, stopped_type = @type, stopped_error = @error
    WHERE projection = @projection AND checkpoints.sequence = @checkpoint AND event_id = @event_id AND term = @term
    RETURNING projection
)
SELECT pg_notify(@channel, 'look') FROM stopped;

-- name: SetCheckpoint :execrows
UPDATE checkpoints SET sequence = @sequence, event_id = @event_id WHERE projection = @projection;

-- name: ClearStop :exec
UPDATE checkpoints SET stopped_sequence = NULL, stopped_type = NULL, stopped_error = NULL WHERE projection = @projection AND term = @term;

-- TakeOver begins the next term. It waits for open transactions of the projector before; its later transactions fail.
-- name: TakeOver :one
WITH next AS (SELECT max(term) + 1 AS term FROM checkpoints),
taken AS (UPDATE checkpoints SET term = next.term FROM next RETURNING checkpoints.term)
SELECT max(term)::bigint FROM taken;

-- name: SetBuilt :exec
UPDATE checkpoints SET built = true WHERE projection = @projection AND NOT built AND term = @term;

-- name: SiteSequence :one
SELECT created_sequence FROM sites
WHERE org_id = @org_id AND id = @id AND (@within::text[] IS NULL OR id = ANY (@within));

-- name: Sites :many
SELECT s.id, s.name, s.created_at,
    (SELECT count(*) FROM hubs h WHERE h.org_id = s.org_id AND h.site_id = s.id) AS hub_count
FROM sites s
WHERE s.org_id = @org_id AND s.created_sequence > @after AND (@within::text[] IS NULL OR s.id = ANY (@within))
ORDER BY s.created_sequence
LIMIT @row_limit;

-- name: Site :one
SELECT s.id, s.name, s.created_at,
    (SELECT count(*) FROM hubs h WHERE h.org_id = s.org_id AND h.site_id = s.id) AS hub_count
FROM sites s
WHERE s.org_id = @org_id AND s.id = @id;

-- name: OrgHasHub :one
SELECT EXISTS (
    SELECT FROM hubs WHERE org_id = @org_id AND id = @id AND (@within::text[] IS NULL OR site_id = ANY (@within))
);

-- name: HubsOfOrg :many
SELECT h.id, h.name, h.site_id, h.registered_at, h.connected_when_added, p.online, p.since
FROM hubs h
LEFT JOIN hub_presence p ON p.hub_id = h.id
WHERE h.org_id = @org_id AND h.id > @after AND (@within::text[] IS NULL OR h.site_id = ANY (@within))
ORDER BY h.id
LIMIT @row_limit;

-- name: HubsOfSite :many
SELECT h.id, h.name, h.site_id, h.registered_at, h.connected_when_added, p.online, p.since
FROM hubs h
LEFT JOIN hub_presence p ON p.hub_id = h.id
WHERE h.org_id = @org_id AND h.site_id = @site_id AND h.id > @after
ORDER BY h.id
LIMIT @row_limit;

-- name: Hub :one
SELECT h.id, h.name, h.site_id, h.registered_at, h.connected_when_added, p.online, p.since, p.public_ip, p.reason, p.firmware, p.network,
    EXISTS (SELECT FROM reported_hubs r WHERE r.hub_id = h.id AND r.epoch = h.epoch AND r.omitted > 0) AS omitted
FROM hubs h
LEFT JOIN hub_presence p ON p.hub_id = h.id
WHERE h.org_id = @org_id AND h.id = @id;

-- name: MemberPosition :one
SELECT (role <> 'owner')::boolean AS below_owners, joined_sequence FROM members WHERE org_id = @org_id AND id = @id;

-- Owners come first, since false sorts before true. Every address contains the empty text.
-- name: Members :many
SELECT id, email, role, joined_at FROM members
WHERE org_id = @org_id AND (role <> 'owner', joined_sequence) > (@below_owners::boolean, @joined_after::bigint)
    AND strpos(lower(email), lower(@text::text)) > 0
ORDER BY (role <> 'owner'), joined_sequence
LIMIT @row_limit;

-- name: Member :one
SELECT id, email, role, joined_at FROM members WHERE org_id = @org_id AND id = @id;

-- name: InvitationSequence :one
SELECT created_sequence FROM invitations WHERE org_id = @org_id AND id = @id;

-- name: PendingInvitations :many
SELECT id, email, role, created_at, expires_at FROM invitations
WHERE org_id = @org_id AND status = 'pending' AND expires_at > @at AND created_sequence < @before
ORDER BY created_sequence DESC
LIMIT @row_limit;

-- name: DeviceLabels :many
SELECT device_id, name, room FROM device_labels WHERE org_id = @org_id AND hub_id = @hub_id;

-- name: KeysInForce :many
SELECT id, org_id, environment, scopes, sites, expires_at, secret_hash, former_secrets FROM api_keys WHERE revoked_at IS NULL;

-- name: HubLogs :many
SELECT id, org_id, site_id, epoch, log_after, log_former FROM hubs;

-- name: OrgNames :many
SELECT id, name FROM orgs;

-- name: AllMembers :many
SELECT org_id, id, email, role FROM members;

-- Keys in force come first, since false sorts before true, then the newest.
-- name: KeysOfOrg :many
SELECT id, label, environment, scopes, sites, expires_at, former_secrets, created_at, revoked_at FROM api_keys
WHERE org_id = @org_id AND (
    (revoked_at IS NOT NULL) > @revoked::boolean
    OR (revoked_at IS NOT NULL) = @revoked AND (created_at < @created_before::timestamptz OR created_at = @created_before AND id > @after::text)
)
ORDER BY (revoked_at IS NOT NULL), created_at DESC, id
LIMIT @row_limit;

-- name: Key :one
SELECT id, label, environment, scopes, sites, expires_at, former_secrets, created_at, revoked_at FROM api_keys WHERE org_id = @org_id AND id = @id;

-- Empty texts match every hub. Texts match the name, and the id with or without dashes.
-- name: FindHubs :many
SELECT h.id, h.name, h.site_id, h.registered_at, h.connected_when_added, p.online, p.since
FROM hubs h
LEFT JOIN hub_presence p ON p.hub_id = h.id
WHERE h.org_id = @org_id AND h.id > @after AND (@site_id::text = '' OR h.site_id = @site_id)
    AND (strpos(replace(h.id, '-', ''), replace(lower(@text::text), '-', '')) > 0 OR strpos(lower(h.name), lower(@text)) > 0)
ORDER BY h.id
LIMIT @row_limit;

-- The newest before a sequence, or the oldest after one. Names are the present ones, which the reader knows. Removed
-- members still have an address.
-- name: Activity :many
WITH chosen AS (
    (SELECT * FROM activity newest
    WHERE NOT @ascending::boolean AND newest.org_id = @org_id AND newest.sequence < @before AND newest.at >= @since
    ORDER BY newest.sequence DESC LIMIT @row_limit)
    UNION ALL
    (SELECT * FROM activity oldest
    WHERE @ascending AND oldest.org_id = @org_id AND oldest.sequence > @after AND oldest.at >= @since
    ORDER BY oldest.sequence LIMIT @row_limit)
)
SELECT a.sequence, a.at, a.type, a.actor_kind, a.actor_id, a.subject_id, a.hub_id, coalesce(detail_sites.name, a.detail)::text AS detail, a.request_id, a.address,
    coalesce(people.email, keys.label, hubs_acting.name, '')::text AS actor_name,
    coalesce(subject_people.email, subject_keys.label, subject_sites.name, subject_hubs.name, subject_invitations.email, '')::text AS subject_name
FROM chosen a
LEFT JOIN people ON a.actor_kind = 'member' AND people.org_id = a.org_id AND people.id = a.actor_id
LEFT JOIN api_keys keys ON a.actor_kind = 'key' AND keys.org_id = a.org_id AND keys.id = a.actor_id
LEFT JOIN hubs hubs_acting ON a.actor_kind = 'hub' AND hubs_acting.org_id = a.org_id AND hubs_acting.id = a.actor_id
LEFT JOIN people subject_people ON subject_people.org_id = a.org_id AND subject_people.id = a.subject_id
LEFT JOIN api_keys subject_keys ON subject_keys.org_id = a.org_id AND subject_keys.id = a.subject_id
LEFT JOIN sites subject_sites ON subject_sites.org_id = a.org_id AND subject_sites.id = a.subject_id
LEFT JOIN hubs subject_hubs ON subject_hubs.org_id = a.org_id AND subject_hubs.id = coalesce(a.hub_id, a.subject_id)
LEFT JOIN invitations subject_invitations ON subject_invitations.org_id = a.org_id AND subject_invitations.id = a.subject_id
LEFT JOIN sites detail_sites ON a.type = 'hub.moved' AND detail_sites.org_id = a.org_id AND detail_sites.id = a.detail
ORDER BY a.sequence;

-- The hubs that must be asked for their devices, because not everything that they reported is known, or the outcome of a command: it is pending for
-- longer than in states.sql, or its status is a guess.
-- name: HubsInDoubt :many
SELECT hub_id FROM reported_hubs WHERE NOT certain
UNION
SELECT hub_id FROM reported_devices WHERE NOT certain
UNION
SELECT hub_id FROM reported_channels
WHERE (unsure OR status = 'pending') AND (unsure OR desired_logged < extract(epoch FROM now() - interval '30 seconds') * 1e9);

-- The hubs of an organization that are not connected, and some of its others. certain is whether all devices of a hub are known.
-- name: HubsObserved :many
SELECT hub.id, coalesce(hub.name, '')::text AS name, hub.site_id, coalesce(site.name, '')::text AS site, hub.registered_at, hub.connected_when_added,
    presence.online, presence.since, coalesce(state.certain AND state.epoch = hub.epoch, false)::boolean AS certain
FROM hubs hub
LEFT JOIN sites site ON site.id = hub.site_id AND site.org_id = hub.org_id
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
LEFT JOIN reported_hubs state ON state.hub_id = hub.id
WHERE hub.org_id = @org_id AND (presence.online = false OR hub.id = ANY (@hubs::text[]))
ORDER BY hub.id;

-- The organizations with a hub that is not connected, or with a channel that may need attention.
-- name: OrgsNeedingAttention :many
SELECT DISTINCT hub.org_id
FROM hubs hub
LEFT JOIN hub_presence presence ON presence.hub_id = hub.id
WHERE presence.online = false
    OR EXISTS (SELECT FROM reported_channels reported WHERE reported.hub_id = hub.id AND reported.suspect);

-- name: OrgsOfHubs :many
SELECT id, org_id FROM hubs WHERE id = ANY (@hubs::text[]);

-- The last commits of the journals that the last reported states have, in the order of the journals.
-- name: ReportedCommits :many
SELECT event_id FROM checkpoints WHERE projection LIKE 'devices/%' ORDER BY split_part(projection, '/', 2)::int;

-- Whether the first build of a projection is complete, for all its checkpoints.
-- name: IsBuilt :one
SELECT coalesce(bool_and(built), false)::boolean FROM checkpoints WHERE split_part(projection, '/', 1) = @projection::text;

-- The hubs of an organization from one on that have reported channels, with how many. Rows of another epoch than the hub's are what an earlier owner or an
-- earlier life of the hub reported; those of a former epoch of a restored log may lack what was lost.
-- name: HubsWithStates :many
SELECT hub.id, state.channels
FROM hubs hub
JOIN reported_hubs state ON state.hub_id = hub.id
    AND (state.epoch = hub.epoch OR position(state.epoch || ':' IN hub.log_former) > 0)
WHERE hub.org_id = @org_id
    AND (sqlc.narg(site_id)::text IS NULL OR hub.site_id = sqlc.narg(site_id))
    AND (sqlc.narg(hub_id)::text IS NULL OR hub.id = sqlc.narg(hub_id))
    AND hub.id >= @start
    AND (@within::text[] IS NULL OR hub.site_id = ANY (@within))
ORDER BY hub.id
LIMIT @row_limit;

-- How many channels each organization has in the tables.
-- name: ChannelsOfOrgs :many
SELECT hub.org_id, sum(state.channels)::bigint AS channels
FROM reported_hubs state
JOIN hubs hub ON hub.id = state.hub_id
GROUP BY hub.org_id;

-- Changes nothing, and finds no row if another projector has taken over, or if an operator has stopped the projection. Neither can happen before the
-- transaction has ended.
-- name: HoldCheckpoint :execrows
UPDATE checkpoints SET term = term
WHERE checkpoints.projection = @projection AND term = @term
    AND NOT EXISTS (SELECT FROM hubcloud.stops WHERE stops.projection = split_part(@projection, '/', 1));

-- Hubs of a journal whose rows no organization can see: theirs are of another epoch than the hub's, or no organization has the hub. The
-- read models have the directory up to a moment ago; those that reported since may be of an epoch that has begun since.
-- name: ReleasedHubs :many
SELECT state.hub_id
FROM reported_hubs state
LEFT JOIN hubs hub ON hub.id = state.hub_id
WHERE state.journal = @journal AND state.at < now() - interval '10 minutes'
    AND (hub.id IS NULL OR hub.epoch <> state.epoch AND position(state.epoch || ':' IN hub.log_former) = 0)
    AND EXISTS (SELECT FROM hubcloud.schemas WHERE name = current_schema() AND schemas.state = 'live')
LIMIT 1000;

-- Deletes what hubs reported.
-- name: DeleteReportedHubs :exec
WITH devices AS (DELETE FROM reported_devices WHERE hub_id = ANY (@hubs::text[])),
    channels AS (DELETE FROM reported_channels WHERE hub_id = ANY (@hubs::text[]))
DELETE FROM reported_hubs WHERE hub_id = ANY (@hubs::text[]);
