package portal

import (
	"context"
	"net/http"
	"time"

	"hubcloud/domain"
)

// Readers has the readers of events that name themselves.
type Readers interface {
	// Page lists readers after an id, nil for the first page, in the order of their ids.
	Page(
		ctx context.Context, org string, has func(domain.FeedReaderID) bool, limit int,
		after *domain.FeedReaderID,
	) (domain.Page[domain.FeedReader], error)
}

// readersView is the page of the programs that read the organization's events.
type readersView struct {
	Layout
	Readers []readerRow
	More    pager
	// Retention is how long events are kept.
	Retention string
}

// readerRow is a reader.
type readerRow struct {
	domain.FeedReader
	State domain.FeedReaderState
	// Expires is when the position expires.
	Expires time.Time
}

// readers shows the readers of events that name themselves, and how far they are behind.
func (req *request) readers() error {
	readers, links, err := readPage(
		req, "readers", "readers",
		func(limit int, text string) (domain.Page[domain.FeedReader], error) {
			var after *domain.FeedReaderID
			if id, ok := domain.ParseFeedReaderID(text); ok {
				after = &id
			}
			return req.Readers.Page(
				req.ctx, req.org, func(domain.FeedReaderID) bool { return true }, limit, after,
			)
		},
		func(r domain.FeedReader) string { return r.FeedReaderID.String() },
	)
	if err != nil {
		return err
	}
	retention := req.Retention
	view := readersView{More: links, Retention: durationText(retention)}
	for _, r := range readers {
		view.Readers = append(view.Readers, readerRow{
			FeedReader: r, State: r.State(retention, req.info.At), Expires: r.At.Add(retention),
		})
	}
	view.Layout = req.layout("Readers of events", "developers")
	req.render(http.StatusOK, "readers.html", view)
	return nil
}
