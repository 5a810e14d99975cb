package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

// feed is what pages and streams of events read: one hub's log, or an organization's feed.
type feed interface {
	// Part and Follow are as in Events.
	Part(
		ctx context.Context, after string, limit, bytes int, wait time.Duration,
	) (domain.EventPage, error)
	Follow(ctx context.Context, after string) (EventReader, error)
	// Since and Last are as in Events.
	Since(ctx context.Context, t time.Time) (string, error)
	Last(ctx context.Context, n int) (string, error)
	// Reader returns the id of a reader with that name.
	Reader(name string) domain.FeedReaderID
}

// hubFeed is the event log of one hub, for a caller that reaches the hub.
type hubFeed struct {
	events Events
	hubs   Hubs
	hub    domain.HubID
	reach  domain.Reach
}

func (f hubFeed) Part(
	ctx context.Context, after string, limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	page, err := f.events.Part(ctx, f.hub, after, limit, bytes, wait)
	if err == nil && !isWithin(f.hubs, f.reach, f.hub) {
		return domain.EventPage{}, domain.ErrHubNotFound()
	}
	return page, err
}

func (f hubFeed) Follow(ctx context.Context, after string) (EventReader, error) {
	reader, err := f.events.Follow(ctx, f.hub, after)
	if err == nil && !isWithin(f.hubs, f.reach, f.hub) {
		reader.Close()
		return nil, domain.ErrHubNotFound()
	}
	if err != nil || !f.reach.Limited() {
		return reader, err // it ends when the organization loses the hub
	}
	return limitedReader{reader, f}, nil
}

// limitedReader is the reader of a hub's log that also ends when the hub moves out of the reach.
type limitedReader struct {
	EventReader
	feed hubFeed
}

func (r limitedReader) Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error) {
	events, err := r.EventReader.Next(ctx, limit)
	if err == nil && !isWithin(r.feed.hubs, r.feed.reach, r.feed.hub) {
		return nil, domain.ErrHubNotFound()
	}
	return events, err
}

func (f hubFeed) Since(ctx context.Context, t time.Time) (string, error) {
	return f.events.Since(ctx, f.hub, t)
}

func (f hubFeed) Last(ctx context.Context, n int) (string, error) {
	return f.events.Last(ctx, f.hub, n)
}

func (f hubFeed) Reader(name string) domain.FeedReaderID {
	return domain.FeedReaderID{Name: name, Hub: f.hub}
}

// orgFeed is the feed of an organization.
type orgFeed struct {
	events OrgEvents
	key    domain.KeyAccess
	filter domain.EventFilter
}

func (f orgFeed) Part(
	ctx context.Context, after string, limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	return f.events.Part(ctx, f.key.Reach, f.filter, after, limit, bytes, wait)
}

func (f orgFeed) Follow(ctx context.Context, after string) (EventReader, error) {
	return f.events.Follow(ctx, f.key.Reach, f.filter, after)
}

func (f orgFeed) Since(_ context.Context, t time.Time) (string, error) {
	return f.events.Since(t), nil
}

func (f orgFeed) Last(ctx context.Context, n int) (string, error) {
	return f.events.Last(ctx, f.key.Reach, f.filter, n)
}

func (f orgFeed) Reader(name string) domain.FeedReaderID {
	id := domain.FeedReaderID{Name: name}
	if f.key.Reach.Limited() {
		id.Key = f.key.ID
	}
	if f.filter.Parts > 0 {
		id.Part = strconv.Itoa(f.filter.Part) + "/" + strconv.Itoa(f.filter.Parts)
	}
	return id
}

// readOrgEvents answers with a page of the organization's events.
func (a *api) readOrgEvents(req *request) error {
	filter, q, err := req.readEventFilter()
	if err != nil {
		return err
	}
	return a.readFeed(req, orgFeed{a.OrgEvents, req.key, filter}, q)
}

// streamOrgEvents streams the organization's events.
func (a *api) streamOrgEvents(req *request) error {
	filter, q, err := req.readEventFilter()
	if err != nil {
		return err
	}
	states, err := a.newSnapshot(req, q, filter)
	if err != nil {
		return err
	}
	return a.streamFeed(req, orgFeed{a.OrgEvents, req.key, filter}, q, states)
}

const (
	// maxFilterValues is how often site_id, hub_id and type may each be given.
	maxFilterValues = 100
	// maxFilterText is the most characters of a site_id or type.
	maxFilterText = 100
	// maxParts is the most parts that the hubs of an organization can be divided into.
	maxParts = 256
)

// readEventFilter reads the parameters that choose events, and the others of the route.
func (req *request) readEventFilter() (filter domain.EventFilter, q query, err error) {
	return readEventFilter(req.http.URL.RawQuery, req.route.query)
}

func readEventFilter(
	raw string, known []string,
) (filter domain.EventFilter, q query, err error) {
	var others []string
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := cutPair(pair)
		if !slices.Contains([]string{"site_id", "hub_id", "type"}, name) {
			others = append(others, pair)
			continue
		}
		if q, err = readQuery(pair, known); err != nil {
			return filter, nil, err
		}
		value, _ := q.get(name)
		if err := addToFilter(&filter, name, value); err != nil {
			return filter, nil, err
		}
	}
	if q, err = readQuery(strings.Join(others, "&"), known); err != nil {
		return filter, nil, err
	}
	if part, ok := q.get("part"); ok {
		if filter.Part, filter.Parts, err = parsePart(part); err != nil {
			return filter, nil, err
		}
	}
	return filter, q, nil
}

// addToFilter adds a value of a parameter that may be repeated.
func addToFilter(filter *domain.EventFilter, name, value string) error {
	if len(value) > maxFilterText {
		return invalid("%s: must be at most %d characters", name, maxFilterText)
	}
	given := 0
	switch name {
	case "site_id":
		filter.Sites = append(filter.Sites, value)
		given = len(filter.Sites)
	case "hub_id":
		hub, ok := domain.ParseHubID(value)
		if !ok {
			return invalid("hub_id: must be a hub id")
		}
		filter.Hubs = append(filter.Hubs, hub)
		given = len(filter.Hubs)
	case "type":
		if strings.Contains(strings.TrimSuffix(value, ".*"), "*") {
			return invalid("type: must be an event type, or the first part of types and `.*`")
		}
		filter.Types = append(filter.Types, value)
		given = len(filter.Types)
	}
	if given > maxFilterValues {
		return invalid("%s: must be given at most %d times", name, maxFilterValues)
	}
	return nil
}

// parsePart reads a part as in `2/8`.
func parsePart(text string) (part, parts int, err error) {
	first, second, _ := strings.Cut(text, "/")
	n, nErr := strconv.ParseUint(first, 10, 16)
	of, ofErr := strconv.ParseUint(second, 10, 16)
	if nErr != nil || ofErr != nil || n < 1 || n > of || of > maxParts {
		return 0, 0, invalid(
			"part: must be a part and the number of parts, as in 2/8, with 1 to %d parts", maxParts,
		)
	}
	return int(n), int(of), nil
}
