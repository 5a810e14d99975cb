package schema

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
)

// AttentionChannel is the channel of PostgreSQL on which projectors announce the hubs of which
// something may need attention, or does no longer.
const AttentionChannel = "hubcloud_attention"

// PostgreSQL allows 8,000 bytes in an announcement: it has at most announcedHubs ids of at most
// maxAnnounced bytes. No hub has a longer one.
const (
	announcedHubs = 100
	maxAnnounced  = 64
)

// urgentAnnouncement begins the announcement of hubs of which a device reports an alarm.
const urgentAnnouncement = "urgent "

// AnnounceAttention returns the statement that announces hubs when its transaction is committed.
// urgent means that a device of each reports an alarm.
func AnnounceAttention(hubs []string, urgent bool) Statement {
	begin := ""
	if urgent {
		begin = urgentAnnouncement
	}
	s := Statement{
		What: "announce hubs that may need attention",
		SQL:  "SELECT pg_notify('" + AttentionChannel + "', hubs) FROM unnest($1::text[]) hubs",
		Args: func() []any {
			hubs := slices.DeleteFunc(slices.Clone(hubs), func(id string) bool {
				return len(id) > maxAnnounced
			})
			var payloads []string
			for some := range slices.Chunk(hubs, announcedHubs) {
				payloads = append(payloads, begin+strings.Join(some, " "))
			}
			return []any{payloads}
		},
	}
	if len(hubs) > 0 {
		s.Rows = AnyRows
	}
	return s
}

// AwaitNotification returns the payload of the next notification that a listening session gets;
// false if none comes in time.
func AwaitNotification(
	ctx context.Context, conn *pgx.Conn, within time.Duration,
) (payload string, ok bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	received, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		return received.Payload, true, nil
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case waiting.Err() != nil:
		return "", false, nil
	}
	return "", false, err
}

// ReadAnnouncement returns what AnnounceAttention has announced.
func ReadAnnouncement(payload string) (hubs []domain.HubID, urgent bool) {
	payload, urgent = strings.CutPrefix(payload, urgentAnnouncement)
	for id := range strings.FieldsSeq(payload) {
		hubs = append(hubs, domain.HubID(id))
	}
	return hubs, urgent
}
