package portal

import (
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// attentionPart answers with what needs attention, for the page's script. The query parameters hub
// and site restrict it.
func (req *request) attentionPart() error {
	hub, site := domain.HubID(req.queryValue("hub")), req.queryValue("site")
	var states []hubState
	var err error
	if site != "" && hub == "" {
		states, err = req.siteStates(req.ctx, req.org, site)
	} else {
		states, err = req.hubStates(req.ctx, req.org, hub)
	}
	if err != nil {
		return err
	}
	sites, err := req.allSites()
	if err != nil {
		return err
	}
	up := 0
	if hub != "" || site != "" {
		up = 2
	}
	view, err := req.needsAttention(req.fragment(up), states, siteNames(sites), site, hub)
	if err != nil {
		return err
	}
	req.render(http.StatusOK, "attention", view)
	return nil
}

// seeCondition records that the member has seen a condition, or all of an entry, or takes that back,
// and returns to the page.
func (req *request) seeCondition() error {
	since, err := time.Parse(time.RFC3339Nano, req.formValue("since"))
	if err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "since: must be a time")
	}
	hub, ok := domain.ParseHubID(req.formValue("hub"))
	kind, undo := attention.Kind(req.formValue("kind")), req.formValue("undo") != ""
	if !ok && (kind == "" || req.formValue("hub") != "") {
		return domain.ErrHubNotFound()
	}
	seen := []domain.Occurrence{
		{HubID: hub, Condition: req.formValue("condition"), Since: since},
	}
	if kind != "" {
		seen, err = req.occurrences(kind, req.formValue("site"), hub, since, undo)
	}
	if err == nil && len(seen) > 0 {
		err = req.Directory.SeeConditions(req.ctx, req.origin(), req.org, seen, undo)
	}
	page, notice := "", "condition-seen"
	if undo {
		notice = "condition-unseen"
	}
	switch req.formValue("from") {
	case "hub":
		page = hubAddress(hub)
	case "site":
		page = "sites/" + req.formValue("site")
	}
	return req.finishAction(err, page, notice)
}

// occurrences returns the conditions of a kind at a site, or at one hub of it, that began until a
// time, the newest that the member's page had: if seen is set those that somebody has seen, otherwise
// those that nobody has seen.
func (req *request) occurrences(
	kind attention.Kind, site string, hub domain.HubID, until time.Time, seen bool,
) (all []domain.Occurrence, err error) {
	var states []hubState
	if hub != "" {
		states, err = req.hubStates(req.ctx, req.org, hub)
	} else {
		states, err = req.siteStates(req.ctx, req.org, site)
	}
	if err != nil {
		return nil, err
	}
	view := attentionView{Hub: hub, SiteID: site}
	rows, err := req.conditions(req.ctx, &view, states, nil)
	if err == nil && view.Unknown && !kind.OfHub() {
		err = domain.Unavailable("the last reports of the devices cannot be read; try again later")
	}
	for _, row := range rows {
		if row.Kind == kind && row.SeenAt.IsZero() != seen && !row.Began.After(until) &&
			len(all) < domain.MaxSeenAtOnce {
			all = append(all, domain.Occurrence{
				HubID: row.Hub, Condition: row.ID, Since: row.Began,
			})
		}
	}
	return all, err
}
