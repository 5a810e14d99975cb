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
