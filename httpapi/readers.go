package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
)

// readerName returns the name in the header Reader, "" if there is none.
func readerName(header http.Header) (string, error) {
	values := header["Reader"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], domain.CheckReaderName(values[0])
	default:
		return "", invalid("Reader: must be given once")
	}
}

// seen records what a reader was given. Nothing is recorded of a reader without a name.
type seen struct {
	readers FeedReaders
	org     string
	id      domain.FeedReaderID
}

// newSeen reads the name of the reader that reads a feed.
func (a *api) newSeen(req *request, events feed) (seen, error) {
	name, err := readerName(req.http.Header)
	return seen{a.FeedReaders, req.key.Reach.OrgID, events.Reader(name)}, err
}

// at records that the reader was given everything up to a position.
func (s *seen) at(position string, lag domain.FeedLag) {
	if s.id.Name != "" {
		s.readers.Saw(s.org, s.id, position, lag)
	}
}

// by records that the reader was given what an EventReader has returned.
func (s *seen) by(ctx context.Context, reader EventReader) {
	if s.id.Name != "" {
		s.readers.Saw(s.org, s.id, reader.Cursor(), reader.Lag(ctx))
	}
}

// setLag sets the headers of a page of at most limit events, of which first has been read already.
// The page may have more events than first: these are not behind it.
func (req *request) setLag(first domain.EventPage, limit int) {
	if first.Lag == (domain.FeedLag{}) { // a feed whose readers are not listed
		return
	}
	behind := first.Lag.Behind
	if first.HasMore {
		behind -= min(behind, uint64(max(limit-len(first.Events), 0)))
	}
	header := req.w.Header()
	header["Events-Behind"] = []string{strconv.FormatUint(behind, 10)}
	left := domain.ExpiresIn(first.Lag.At, req.api.Retention, req.api.Now())
	if first.Lag.Behind > 0 && left < req.api.Retention/domain.EndangeredShare {
		header["Events-Expire-In"] = []string{
			strconv.FormatInt(max(int64(left/time.Second), 0), 10),
		}
	}
}

// readerBody is a reader of events.
type readerBody struct {
	ID            string        `json:"id"`
	Name          string        `json:"name"`
	HubID         *domain.HubID `json:"hub_id"`
	Part          *string       `json:"part"`
	Position      string        `json:"position"`
	State         string        `json:"state"`
	EventsBehind  *uint64       `json:"events_behind"`
	SecondsBehind int64         `json:"seconds_behind"`
	ExpiresIn     int64         `json:"expires_in"`
	LastSeenAt    string        `json:"last_seen_at"`
}

func (a *api) newReaderBody(r domain.FeedReader) readerBody {
	now := a.Now()
	body := readerBody{
		ID: r.String(), Name: r.Name, Position: r.Position,
		State: string(r.State(a.Retention, now)), EventsBehind: r.Behind,
		SecondsBehind: r.SecondsBehind(now),
		ExpiresIn:     int64(r.ExpiresIn(a.Retention, now) / time.Second),
		LastSeenAt:    domain.FormatTime(r.LastSeen),
	}
	if r.Hub != "" {
		body.HubID = &r.Hub
	}
	if r.Part != "" {
		body.Part = &r.Part
	}
	return body
}

// listReaders answers with the readers of events that name themselves.
func (a *api) listReaders(req *request) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	limit, err := q.integer("limit", 1, maxListPage, maxListPage)
	if err != nil {
		return err
	}
	var after *domain.FeedReaderID
	if text, given := q.get("starting_after"); given {
		id, ok := domain.ParseFeedReaderID(text)
		if !ok {
			return invalid("starting_after: must be an id from the list of readers")
		}
		after = &id
	}
	reach := req.key.Reach
	page, err := a.FeedReaders.Page(
		req.ctx, reach.OrgID, func(id domain.FeedReaderID) bool {
			if id.Hub != "" {
				return isWithin(a.Hubs, reach, id.Hub)
			}
			return !reach.Limited() || id.Key == req.key.ID
		}, limit, after,
	)
	return req.answer(http.StatusOK, listOf(page, a.newReaderBody), err)
}
