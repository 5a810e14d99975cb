package portal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

// Book has the books of organizations.
type Book interface {
	// BookPage returns the newest entries of an organization's book before a place, newest first, and
	// the place of the last one.
	BookPage(
		ctx context.Context, org string, filter domain.BookFilter, limit int, before domain.BookPlace,
	) (domain.Page[domain.BookEntry], domain.BookPlace, error)
}

// bookKinds are the kinds of entries by their labels.
var bookKinds = []filterChoice{
	{string(domain.BookDoors), "Doors and locks, also commands to them"},
	{string(domain.BookCodes), "Access codes"},
	{string(domain.BookAlarms), "Alarms and warnings"},
	{string(domain.BookCommands), "Commands to other devices"},
	{string(domain.BookDevices), "Devices: joined, removed, out of reach"},
	{string(domain.BookHubs), "Hubs: connections"},
}

// bookTimes are how long entries can be kept, in days.
var bookTimes = []filterChoice{
	{"7", "a week"}, {"30", "30 days"}, {"90", "90 days"}, {"180", "half a year"}, {"365", "a year"},
}

// bookKindOf returns the kind of an event; "" for one that no book keeps.
func bookKindOf(e logEvent) domain.BookKind {
	switch {
	case e.Type == domain.EventFeedGap:
		return domain.BookGap
	case strings.HasPrefix(e.Type, "credential."):
		return domain.BookCodes
	case strings.HasPrefix(e.Type, "device."):
		return domain.BookDevices
	case strings.HasPrefix(e.Type, "hub."):
		return domain.BookHubs
	case strings.HasPrefix(e.Type, "channel.") && isOfDoor(e):
		return domain.BookDoors
	case e.Type == "channel.desired":
		return domain.BookCommands
	case severityOf(e) >= severityWarning:
		return domain.BookAlarms
	}
	return ""
}

// BookEntries returns the entry of each event that settings keep, with the names of now. The others
// have no kind. It has no OrgID and Position.
func (p *Portal) BookEntries(
	ctx context.Context, org string, keep domain.BookSettings, events []domain.EncodedEvent,
) ([]domain.BookEntry, error) {
	req := &request{Portal: p, ctx: ctx, org: org, info: RequestInfo{At: p.Now()}}
	s := &eventSearch{
		hubs: map[domain.HubID]hubState{}, siteNames: map[string]string{},
		devices: map[domain.HubID]map[int64]string{}, units: map[domain.HubID]map[int64]deviceInfo{},
		by: req.commanders(maxCommands),
	}
	entries := make([]domain.BookEntry, len(events))
	for i, encoded := range events {
		event, ok := decode(encoded)
		kind := bookKindOf(event)
		if !ok || !keep.Kept(kind) {
			continue
		}
		if err := s.learn(event.HubID); err != nil {
			return nil, err
		}
		row, _, err := s.row(event)
		if err != nil {
			return nil, err
		}
		e := domain.BookEntry{
			Kind: kind, Stored: time.Unix(0, encoded.StoredNanos).UTC(), At: event.Time.UTC(),
			HubID: event.HubID, SiteID: row.SiteID, Site: row.Site, Hub: row.Hub, Device: row.Device,
			Text: row.Text, By: row.By, Event: json.RawMessage(encoded.Envelope),
		}
		if row.Untrusted {
			e.At = e.Stored
		}
		if len(e.Event) > domain.MaxBookEvent {
			event.Data = json.RawMessage(`{}`)
			if e.Event, err = json.Marshal(event); err != nil {
				return nil, err
			}
		}
		entries[i] = e
	}
	return entries, nil
}

// learn reads the names of a hub, its site and its devices. A hub that has left the organization
// meanwhile has none.
func (s *eventSearch) learn(hub domain.HubID) error {
	req := s.by.req
	if _, known := s.hubs[hub]; known || hub == "" {
		return nil
	}
	owned, err := req.ReadModels.Hub(req.ctx, req.org, hub)
	if errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
		s.hubs[hub] = hubState{}
		return nil
	}
	if err != nil {
		return err
	}
	site, err := req.ReadModels.Site(req.ctx, req.org, owned.SiteID)
	if err != nil {
		return err
	}
	units, err := req.deviceInfos(req.ctx, req.org, hub)
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for id, info := range units {
		names[id] = info.Name
	}
	state := hubState{ID: hub, SiteID: owned.SiteID}
	if owned.Name != nil {
		state.Name = *owned.Name
	}
	s.hubs[hub], s.siteNames[owned.SiteID], s.devices[hub], s.units[hub] = state, site.Name, names, units
	return nil
}

// bookView is the page of an organization's book.
type bookView struct {
	orgEventsView
	Settings domain.Book
	// Chosen and Days are what the form has, and Problem why it was rejected.
	Chosen       []domain.BookKind
	Days         string
	Problem      string
	BookKinds    []filterChoice
	Times        []filterChoice
	SettingsText string
	// Complete is since when the book has entries.
	Complete time.Time
}

// Has reports whether a kind is chosen.
func (v bookView) Has(kind string) bool { return slices.Contains(v.Chosen, domain.BookKind(kind)) }

// bookFilter reads the filter from the page's address.
func (req *request) bookFilter() (q orgEventsQuery, filter domain.BookFilter) {
	zone := req.typedZone()
	q = orgEventsQuery{
		Site: req.queryValue("site"), Device: truncate(req.queryValue("device"), longestSearch),
		Who: truncate(req.queryValue("who"), longestSearch),
	}
	for _, kind := range bookKinds {
		if kind.Value == req.queryValue("kind") {
			q.Kind = kind.Value
		}
	}
	q.From, _ = parseClock(req.queryValue("from"), zone) // zero for no valid time
	q.To, _ = parseClock(req.queryValue("to"), zone)
	return q, domain.BookFilter{
		SiteID: q.Site, Kind: domain.BookKind(q.Kind), Place: q.Device, Who: q.Who, From: q.From, To: q.To,
	}
}

// Filtered reports whether the page leaves entries out on a person's wish.
func (v bookView) Filtered() bool { return v.orgEventsQuery != orgEventsQuery{} }

// bookRow returns the row of an entry.
func bookRow(e domain.BookEntry) orgEventRow {
	event, _ := decode(domain.EncodedEvent{Envelope: e.Event}) // an entry without is shown too
	event.Time = e.At
	row := orgEventRow{
		logEntry: entryOf(event, nil), place: place{Site: e.Site, Hub: e.Hub, Device: e.Device},
		SiteID: e.SiteID,
	}
	row.Text, row.By = e.Text, e.By
	return row
}

// book shows the newest entries of the organization's book that the address selects.
func (req *request) book() error { return req.showBook(http.StatusOK, bookView{}) }

func (req *request) showBook(status int, view bookView) error {
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	sites, err := req.ReadModels.Sites(req.ctx, domain.Reach{OrgID: req.org}, maxSites, "")
	if err != nil {
		return err
	}
	query, filter := req.bookFilter()
	page, last, err := req.Book.BookPage(req.ctx, req.org, filter, logPageEvents, req.bookPlace())
	if err != nil {
		return err
	}
	view.orgEventsView = orgEventsView{
		orgEventsQuery: query, Sites: sites.Data, Layout: req.layout("Book", "events"),
	}
	view.Scripts = []string{"livesearch.js"}
	view.Settings, view.BookKinds, view.Times = org.Book, bookKinds, bookTimes
	if view.Problem == "" {
		view.Chosen, view.Days = org.Book.Kinds, strconv.Itoa(org.Book.Days)
	}
	var kept []string
	for _, kind := range bookKinds {
		if org.Book.Kept(domain.BookKind(kind.Value)) {
			kept = append(kept, kind.Label)
		}
	}
	view.SettingsText = strings.Join(kept, "; ")
	for _, e := range page.Data {
		view.Rows = append(view.Rows, bookRow(e))
	}
	if view.People, err = req.possibleCauses(); err != nil {
		return err
	}
	view.fillTimes(domain.MaxBookDays * 24 * time.Hour)
	view.Export = view.encode()
	if page.HasMore {
		view.Older = view.encode("before", formatInt(last.At.UnixMicro())+"."+strconv.FormatUint(last.Sequence, 10))
	}
	req.render(status, "book.html", view)
	return nil
}

// bookPlace returns the place of the page's address, the newest for none.
func (req *request) bookPlace() (place domain.BookPlace) {
	micros, seq, _ := strings.Cut(req.queryValue("before"), ".")
	if at, err := strconv.ParseInt(micros, 10, 64); err == nil && at > 0 {
		place.At = time.UnixMicro(at)
		place.Sequence, _ = strconv.ParseUint(seq, 10, 63)
	}
	return place
}

// exportBook answers with the entries that the address selects as CSV, newest first.
func (req *request) exportBook() error {
	_, filter := req.bookFilter()
	file, place := req.eventFile("book"), domain.BookPlace{}
	for exported := 0; exported < maxExport; {
		page, last, err := req.Book.BookPage(req.ctx, req.org, filter, exportFlush, place)
		for _, e := range page.Data {
			row := bookRow(e)
			if err == nil {
				err = file.add(row.logEntry, row.place)
			}
		}
		if err != nil || !page.HasMore {
			return file.end(true, err)
		}
		exported, place = exported+len(page.Data), last
	}
	return file.end(false, nil)
}

// setBook chooses what the organization keeps.
func (req *request) setBook() error {
	view := bookView{Days: req.formValue("days")}
	for _, kind := range req.http.PostForm["kind"] {
		view.Chosen = append(view.Chosen, domain.BookKind(kind))
	}
	days, _ := strconv.Atoi(view.Days) // 0 is rejected unless nothing is kept
	err := req.Directory.SetBook(req.ctx, req.origin(), req.org, domain.BookSettings{
		Kinds: view.Chosen, Days: days,
	})
	return req.finishForm(err, "book", "book-saved", func(status int, problem string) error {
		view.Problem = problem
		return req.showBook(status, view)
	})
}
