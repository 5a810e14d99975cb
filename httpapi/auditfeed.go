package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

const (
	// auditPart is how many records are read at once.
	auditPart = 100
	// lastScanned is how many of the newest records are looked at for the last that a filter chooses.
	lastScanned = 5000
	// auditWait is how long a reader waits for the read models to have what it was woken for.
	auditWait = 10 * time.Second
	// auditSkew is how much later than another record an earlier one may say it was made: replicas
	// differ in their clocks.
	auditSkew = time.Minute
	// auditVersion differs from the versions of other cursors.
	auditVersion = 3
)

// auditPosition is a position in an audit log: after a record. The zero value is before all.
type auditPosition struct {
	sequence uint64
	// at is the record's time in microseconds since 1970. A record with the same sequence and
	// another time is of another history: the installation was restored from a backup.
	at int64
}

func positionOf(a domain.Activity) auditPosition {
	return auditPosition{a.Sequence, a.At.UnixMicro()}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// String returns the position's cursor: base64url of version, sequence, time and CRC-32C.
func (p auditPosition) String() string {
	raw := binary.BigEndian.AppendUint64([]byte{auditVersion}, p.sequence)
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.at))
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// parseAuditPosition reads a cursor. The error is invalid_request.
func parseAuditPosition(text string) (p auditPosition, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(raw) == 21 {
		p.sequence = binary.BigEndian.Uint64(raw[1:])
		p.at = int64(binary.BigEndian.Uint64(raw[9:]))
	}
	if p.String() != text {
		return auditPosition{}, invalid(
			"after, or Last-Event-ID: must be a cursor of a record, or a next_cursor, of this audit " +
				"log, unchanged",
		)
	}
	return p, nil
}

// auditFeed is the audit log of an organization.
type auditFeed struct {
	audit  Audit
	org    string
	filter domain.ActivityFilter
}

// resume returns the position of a cursor, the beginning for "".
func (f auditFeed) resume(ctx context.Context, after string) (at auditPosition, err error) {
	if after == "" {
		return at, nil
	}
	if at, err = parseAuditPosition(after); err != nil || at == (auditPosition{}) {
		return at, err
	}
	page, err := f.audit.ActivityAfter(ctx, f.org, 1, at.sequence-1, time.Time{})
	if err == nil && (len(page.Data) == 0 || positionOf(page.Data[0]) != at) {
		err = domain.Errorf(
			domain.CodeCursorExpired,
			"after, or Last-Event-ID: the record at this position is no longer kept; records after "+
				"it may be missing: read on without it",
		)
	}
	return at, err
}

// read returns the chosen records among the next ones after a position, and moves the position.
func (f auditFeed) read(
	ctx context.Context, at *auditPosition, limit int,
) (page domain.EventPage, err error) {
	records, err := f.audit.ActivityAfter(ctx, f.org, auditPart, at.sequence, time.Time{})
	if err != nil {
		return page, err
	}
	page.HasMore = records.HasMore
	for _, record := range records.Data {
		if until := f.filter.Until; !until.IsZero() && record.At.After(until.Add(auditSkew)) {
			page.HasMore = false
			break
		}
		if len(page.Events) == limit {
			page.HasMore = true
			break
		}
		*at = positionOf(record)
		page.Scanned++
		if f.filter.Chooses(&record) {
			page.Events = append(page.Events, encodeRecord(record))
		}
	}
	page.Next = at.String()
	return page, nil
}

// Part returns the next records, as Events.Part does. bytes does not matter: auditPart records are
// few.
func (f auditFeed) Part(
	ctx context.Context, after string, limit, _ int, wait time.Duration,
) (domain.EventPage, error) {
	at, err := f.resume(ctx, after)
	if err != nil {
		return domain.EventPage{}, err
	}
	over := time.After(wait)
	for {
		changed := f.audit.ActivityChanged(f.org)
		if wait > 0 { // what was signalled before is not signalled again
			if err := f.await(ctx); err != nil {
				return domain.EventPage{}, err
			}
		}
		page, err := f.read(ctx, &at, limit)
		if err != nil || len(page.Events) > 0 || page.HasMore || wait == 0 {
			return page, err
		}
		select {
		case <-changed:
		case <-over:
			return page, nil
		case <-ctx.Done():
			return page, nil
		}
	}
}

// await waits until the read models have what ActivityChanged has signalled.
func (f auditFeed) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditWait)
	defer cancel()
	if err := f.audit.AwaitActivity(ctx); err != nil {
		return domain.UnavailableBecause(err, "the audit log is not up to date at the moment")
	}
	return nil
}

func (f auditFeed) Follow(ctx context.Context, after string) (EventReader, error) {
	if after == "" {
		var err error
		if after, err = f.Last(ctx, 0); err != nil {
			return nil, err
		}
	}
	at, err := f.resume(ctx, after)
	if err != nil {
		return nil, err
	}
	return &auditReader{feed: f, at: at}, nil
}

func (f auditFeed) Since(ctx context.Context, t time.Time) (string, error) {
	page, err := f.audit.ActivityAfter(ctx, f.org, 1, 0, t)
	if err != nil {
		return "", err
	}
	first := uint64(0) // the end, if there is no later record
	if len(page.Data) > 0 {
		first = page.Data[0].Sequence
	}
	return f.before(ctx, 0, first)
}

// Last returns the cursor before the newest n records that the filter chooses, or before the oldest of
// lastScanned records if it chooses fewer among them.
func (f auditFeed) Last(ctx context.Context, n int) (string, error) {
	if n == 0 {
		return f.before(ctx, 0, 0)
	}
	var at auditPosition
	for scanned := 0; scanned < lastScanned; scanned += auditPart {
		page, err := f.audit.Activity(ctx, f.org, auditPart, at.sequence)
		if err != nil {
			return "", err
		}
		for _, record := range page.Data {
			if at = positionOf(record); n == 0 {
				return at.String(), nil
			}
			if f.filter.Chooses(&record) {
				n--
			}
		}
		if !page.HasMore {
			return auditPosition{}.String(), nil
		}
	}
	return at.String(), nil
}

// before returns the cursor before the newest n records before a sequence; 0 is the end.
func (f auditFeed) before(ctx context.Context, n int, sequence uint64) (string, error) {
	page, err := f.audit.Activity(ctx, f.org, n+1, sequence)
	if err != nil || len(page.Data) <= n {
		return auditPosition{}.String(), err
	}
	return positionOf(page.Data[n]).String(), nil
}

// Reader returns no id: readers of audit logs are not listed.
func (f auditFeed) Reader(string) domain.FeedReaderID { return domain.FeedReaderID{} }

// auditReader follows an audit log.
type auditReader struct {
	feed auditFeed
	at   auditPosition
	// changed is closed once there may be records after those that Next has returned.
	changed <-chan struct{}
}

func (r *auditReader) Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error) {
	r.changed = r.feed.audit.ActivityChanged(r.feed.org)
	if err := r.feed.await(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, managementTimeout)
	defer cancel()
	page, err := r.feed.read(ctx, &r.at, limit)
	if page.HasMore {
		r.changed = closedChannel
	}
	return page.Events, err
}

// closedChannel is what is ready at once.
var closedChannel = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (r *auditReader) Ready() <-chan struct{} { return r.changed }
func (r *auditReader) Cursor() string         { return r.at.String() }

func (r *auditReader) CaughtUp(ctx context.Context) (reached func() bool, err error) {
	end, err := r.feed.Last(ctx, 0)
	if err != nil {
		return nil, err
	}
	at, err := parseAuditPosition(end)
	return func() bool { return r.at.sequence >= at.sequence }, err
}

// Lag returns nothing: readers of audit logs are not listed.
func (r *auditReader) Lag(context.Context) domain.FeedLag { return domain.FeedLag{} }
func (r *auditReader) Close()                             {}

// encodeRecord returns a record in the form that readers get.
func encodeRecord(a domain.Activity) domain.EncodedEvent {
	cursor := positionOf(a).String()
	body := newAuditBody(a, cursor)
	envelope := encodeLine(body)
	frame := append([]byte("id: "), cursor...)
	frame = response.AppendEvent(append(frame, '\n'), a.Type, envelope)
	return domain.EncodedEvent{Frame: frame, Envelope: envelope, Cursor: cursor}
}
