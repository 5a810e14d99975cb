package httpapi

import (
	"net/http"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

// maxAuditExport is the most records of an export, and auditExportPart how many are read at once.
const maxAuditExport, auditExportPart = 10_000, 500

// auditBody is a record of an audit log.
type auditBody struct {
	Cursor    string       `json:"cursor"`
	Type      string       `json:"type"`
	Time      string       `json:"time"`
	Actor     auditActor   `json:"actor"`
	Subject   auditSubject `json:"subject"`
	Detail    *string      `json:"detail"`
	Address   *string      `json:"address"`
	RequestID *string      `json:"request_id"`
}

// auditActor is who or what made a change.
type auditActor struct {
	Kind string  `json:"kind"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// auditSubject is what was changed.
type auditSubject struct {
	ID    string  `json:"id"`
	Name  *string `json:"name"`
	HubID *string `json:"hub_id"`
}

func newAuditBody(a domain.Activity, cursor string) auditBody {
	return auditBody{
		Cursor: cursor, Type: a.Type, Time: domain.FormatTime(a.At),
		Actor: auditActor{a.Actor.Kind, nonEmpty(a.Actor.ID), nonEmpty(a.ActorName)},
		Subject: auditSubject{
			a.SubjectID, nonEmpty(a.SubjectName), nonEmpty(string(a.Hub)),
		},
		Detail: nonEmpty(a.Detail), Address: nonEmpty(a.Address), RequestID: nonEmpty(a.RequestID),
	}
}

// nonEmpty returns nil for the empty text.
func nonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// auditRoutes returns the routes of the audit log.
func (a *api) auditRoutes() []*route {
	const read = domain.ScopeAuditRead
	filter := []string{"after", "since", "last", "type", "hub_id", "actor_id", "subject_id"}
	with := func(more ...string) option { return takes(append(more, filter...)...) }
	return []*route{
		keyRoute("GET", "/v1/audit", read, a.readAudit, longLived, with("until", "limit", "wait")),
		keyRoute("GET", "/v1/audit.csv", read, a.exportAudit, longLived, with("until")),
		keyRoute(
			"GET", "/v1/audit/stream", read, a.streamAudit, longLived, with("positions", "caught_up"),
		),
	}
}

// readAudit answers with a page of the audit log.
func (a *api) readAudit(req *request) error {
	events, q, err := a.auditOf(req)
	if err != nil {
		return err
	}
	return a.readFeed(req, events, q)
}

// streamAudit streams the audit log.
func (a *api) streamAudit(req *request) error {
	events, q, err := a.auditOf(req)
	if err != nil {
		return err
	}
	return a.streamFeed(req, events, q, nil)
}

// auditOf reads the parameters of a read of the audit log.
func (a *api) auditOf(req *request) (events auditFeed, q query, err error) {
	chosen, q, err := req.readEventFilter()
	if err != nil {
		return events, nil, err
	}
	filter := domain.ActivityFilter{Types: chosen.Types, Hubs: chosen.Hubs}
	filter.ActorID, _ = q.get("actor_id")
	filter.SubjectID, _ = q.get("subject_id")
	if filter.Until, _, err = q.timestamp("until"); err != nil {
		return events, nil, err
	}
	return auditFeed{a.Audit, req.key.Reach.OrgID, filter}, q, nil
}

// exportAudit answers with the chosen records as CSV, the oldest first. A failure after the first
// part breaks the connection off.
func (a *api) exportAudit(req *request) error {
	events, q, err := a.auditOf(req)
	if err != nil {
		return err
	}
	begin, err := q.feedStart(a.Now())
	if err != nil {
		return err
	}
	release, err := a.acquireStream(req)
	if err != nil {
		return err
	}
	defer release()
	after, err := begin.cursor(req.ctx, events)
	if err != nil {
		return err
	}
	at, err := events.resume(req.ctx, after)
	if err != nil {
		return err
	}
	out := portal.NewCSV(req)
	for rows, more := 0, true; more && rows < maxAuditExport; {
		page, err := a.Audit.ActivityAfter(
			req.ctx, req.key.Reach.OrgID, min(auditExportPart, maxAuditExport-rows), at.sequence, time.Time{},
		)
		if err != nil && req.status == 0 {
			return err
		}
		if req.status == 0 {
			req.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
			err = out.Row(append(portal.ActivityColumns(), "cursor")...)
		}
		for _, record := range page.Data {
			at = positionOf(record)
			if err == nil && events.filter.Chooses(&record) {
				rows++
				err = out.Row(append(portal.ActivityFields(record), at.String())...)
			}
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil || isClosed(req.key.Revoked) {
			req.err = err
			panic(http.ErrAbortHandler) // part of the file is sent
		}
		more = page.HasMore
	}
	return nil
}

// encodeLine returns the JSON of a value as one line.
func encodeLine(value any) []byte {
	var text strings.Builder
	if err := jsonEncoder(&text).Encode(value); err != nil {
		panic(err) // texts only
	}
	return []byte(strings.TrimSuffix(text.String(), "\n"))
}
