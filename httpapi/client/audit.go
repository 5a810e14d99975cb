package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"
)

// AuditRecord is a change in the organization: who changed what, when, and from where.
type AuditRecord struct {
	// Cursor is the record's position: store it to resume after the record.
	Cursor string `json:"cursor"`
	// Type is what was done, such as site.created.
	Type    string       `json:"type"`
	Time    time.Time    `json:"time"`
	Actor   AuditActor   `json:"actor"`
	Subject AuditSubject `json:"subject"`
	// Detail is the new value, such as a name or a role; nil if there is none.
	Detail *string `json:"detail"`
	// Address is the IP address that the request came from, and RequestID the request's id; nil
	// without one.
	Address   *string `json:"address"`
	RequestID *string `json:"request_id"`
}

// AuditActor is who or what made a change.
type AuditActor struct {
	// Kind is member, key, hub, operator or service.
	Kind string `json:"kind"`
	// ID is nil for the service. Name is the present one; nil if there is none.
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// AuditSubject is what was changed.
type AuditSubject struct {
	// ID is an id, or the number of a device, whose hub is HubID then.
	ID    string  `json:"id"`
	Name  *string `json:"name"`
	HubID *string `json:"hub_id"`
}

// AuditFilter selects records. The zero value selects all.
type AuditFilter struct {
	// Types selects types, such as key.created, or prefixes, such as key.*.
	Types []string
	// HubIDs selects the changes of hubs and their devices.
	HubIDs []string
	// ActorID and SubjectID select who made the change and what was changed.
	ActorID, SubjectID string
	// Until selects changes before a time. Client.Audit ignores it.
	Until time.Time
}

// source returns the audit log with the filter.
func (f AuditFilter) source() source {
	return source{path: "/audit", filter: parameters{
		"type": f.Types, "hub_id": f.HubIDs, "actor_id": f.ActorID, "subject_id": f.SubjectID,
	}}
}

// withUntil returns the audit log with the filter, for reads that end.
func (f AuditFilter) withUntil() source {
	s := f.source()
	s.filter["until"] = f.Until
	return s
}

// AuditPage is one page of the audit log.
type AuditPage struct {
	Data []AuditRecord `json:"data"`
	// NextCursor is the position to continue from, even if there are no records.
	NextCursor string `json:"next_cursor"`
	// HasMore reports that more records are stored.
	HasMore bool `json:"has_more"`
}

// AuditPage reads one page of the organization's audit log, the oldest records first. Scope
// audit:read. Returns ErrInvalidRequest for a malformed position or filter, and ErrCursorExpired.
func (c *Client) AuditPage(
	ctx context.Context, filter AuditFilter, query EventQuery,
) (AuditPage, error) {
	var p AuditPage
	_, err := c.do(ctx, filter.withUntil().pageCall(query), &p)
	return p, err
}

// Audit yields the records of the organization's audit log after a position, and continues with new
// ones until ctx ends or the loop is left. It reads, resumes and ends as Client.Events does, and
// takes the same options except AsReader. after is the Cursor of the last processed record; ""
// starts at the oldest. ErrResync means that the record at the position is no longer kept. Scope
// audit:read.
func (c *Client) Audit(
	ctx context.Context, filter AuditFilter, after string, options ...EventsOption,
) iter.Seq2[AuditRecord, error] {
	o := optionsOf(options)
	return func(yield func(AuditRecord, error) bool) {
		c.follow(ctx, filter.source(), after, o, func(event FeedEvent, err error) bool {
			var record AuditRecord
			if event.Raw != nil {
				if invalid := json.Unmarshal(event.Raw, &record); invalid != nil && err == nil {
					err = fmt.Errorf("%w: a record that is not valid: %w", ErrProtocol, invalid)
				}
			}
			return yield(record, err)
		})
	}
}

// AuditCSV writes the selected records after a position to w, as a file for spreadsheets: at most
// 10,000. Scope audit:read. After an error w may have a part of the file.
func (c *Client) AuditCSV(
	ctx context.Context, filter AuditFilter, query EventQuery, w io.Writer,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := filter.withUntil()
	from.path += ".csv"
	response, err := c.request(ctx, from.pageCall(query), nil, func(header http.Header) {
		header.Set("Accept", "text/csv")
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		content, err := io.ReadAll(io.LimitReader(response.Body, maxBlock))
		if err != nil {
			return err
		}
		return errorOf(response, content, time.Now())
	}
	_, err = io.Copy(w, response.Body)
	return err
}
