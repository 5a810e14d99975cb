package portal

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/httpapi/portal/live"
	"hubcloud/httpapi/portal/text"
)

const (
	// attentionTimeout is how long a page waits for what needs attention. Without an answer the
	// page says so.
	attentionTimeout = 1500 * time.Millisecond
	// shownConditions is how many conditions of each severity a page shows.
	shownConditions = 50
)

// attentionView is the part of a page with what needs attention.
type attentionView struct {
	Layout
	// Hub is the hub of the page, and SiteID its site; "" for more than one.
	Hub    domain.HubID
	SiteID string
	// Urgent and Others are the alarms and the warnings that nobody has seen, Seen those that
	// somebody has seen. Each has at most shownConditions.
	Urgent, Others, Seen []conditionRow
	// Alarms, Warnings and SeenAll count them all.
	Alarms, Warnings, SeenAll int
	// Unknown reports that the reported states could not be read: only hubs are shown.
	Unknown bool
}

// conditionRow is a condition for display.
type conditionRow struct {
	attention.Condition
	Title, Advice string
	SiteID, Site  string
	HubName       string
	// HubSince is since when the hub of a device is offline; zero if it is online.
	HubSince time.Time
	// SeenBy is the member who has seen the condition, "" if nobody has, and SeenAt when.
	SeenBy string
	SeenAt time.Time
}

// conditionView is a condition on a page. From is the page that its form returns to: hub, site, or
// "" for the dashboard.
type conditionView struct {
	Layout
	conditionRow
	From string
}

// condition is the template function that returns a condition on a page.
func condition(view attentionView, row conditionRow) conditionView {
	shown := conditionView{Layout: view.Layout, conditionRow: row}
	switch {
	case view.Hub != "":
		shown.From = "hub"
	case view.SiteID != "":
		shown.From = "site"
	}
	return shown
}

// Red reports whether the condition is an alarm.
func (r conditionRow) Red() bool { return r.Severity == domain.SeverityAlarm }

// Stamp returns Since as a value of a form.
func (r conditionRow) Stamp() string { return r.Began.UTC().Format(time.RFC3339Nano) }

// Total returns how many conditions nobody has seen.
func (v attentionView) Total() int { return v.Alarms + v.Warnings }

// MoreUrgent, MoreOthers and MoreSeen return how many conditions are not shown.
func (v attentionView) MoreUrgent() int { return v.Alarms - len(v.Urgent) }
func (v attentionView) MoreOthers() int { return v.Warnings - len(v.Others) }
func (v attentionView) MoreSeen() int   { return v.SeenAll - len(v.Seen) }

// Counts returns the counts for the page's title, "" for none.
func (v attentionView) Counts() string {
	switch {
	case v.Alarms > 0 && v.Warnings > 0:
		return text.Count(v.Alarms, "alarm") + ", " + text.Count(v.Warnings, "warning")
	case v.Alarms > 0:
		return text.Count(v.Alarms, "alarm")
	case v.Warnings > 0:
		return text.Count(v.Warnings, "warning")
	}
	return ""
}

// Query returns the address query of the part.
func (v attentionView) Query() string {
	switch {
	case v.Hub != "":
		return "?hub=" + string(v.Hub)
	case v.SiteID != "":
		return "?site=" + v.SiteID
	}
	return ""
}

// needsAttention returns what needs attention at hubs. site and hub restrict the reported states
// that are read; "" does not.
func (req *request) needsAttention(
	layout Layout, hubs []live.HubState, siteNames map[string]string, site string, hub domain.HubID,
) (attentionView, error) {
	view := attentionView{Layout: layout, Hub: hub, SiteID: site}
	ctx, cancel := context.WithTimeout(req.http.Context(), attentionTimeout)
	defer cancel()
	states, err := req.portal.Reported.StatesNeedingAttention(ctx, req.member.OrgID, site, hub)
	if err != nil {
		view.Unknown = true
		req.portal.Logger.WarnContext(
			ctx, "reported states unknown", "request_id", req.info.RequestID, "error", err,
		)
	}
	org, err := req.portal.Directory.Org(req.http.Context(), req.member.OrgID)
	if err != nil {
		return view, err
	}
	var silent map[domain.HubID]time.Time
	if hub == "" { // the hub's own page shows its faults anyway
		silent = req.silentHubs(ctx)
	}
	byHub := map[domain.HubID][]domain.ReportedState{}
	for _, state := range states {
		byHub[state.HubID] = append(byHub[state.HubID], state)
	}
	var rows []conditionRow
	for _, state := range hubs {
		for _, condition := range attention.Of(attention.HubState{
			ID: state.ID, Status: state.Status, Since: state.Since, SilentSince: silent[state.ID],
			Known: state.AddedAt, Devices: attention.Devices(byHub[state.ID]),
		}) {
			row := conditionRow{
				Condition: condition, SiteID: state.SiteID, Site: siteNames[state.SiteID],
				HubName: cmp.Or(state.Name, string(state.ID)),
			}
			if state.Status == domain.HubOffline && !condition.Kind.OfHub() {
				row.HubSince = state.Since
			}
			row.Title, row.Advice = conditionTexts(condition)
			if seen, ok := condition.SeenBy(org.Seen); ok {
				row.SeenBy, row.SeenAt = seenBy(org, seen), seen.At
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b conditionRow) int {
		return attention.Compare(a.Condition, b.Condition)
	})
	view.add(rows)
	return view, nil
}

// add counts the rows and keeps those that are shown.
func (v *attentionView) add(rows []conditionRow) {
	keep := func(list *[]conditionRow, counter *int, row conditionRow) {
		if *counter++; len(*list) < shownConditions {
			*list = append(*list, row)
		}
	}
	for _, row := range rows {
		switch {
		case !row.SeenAt.IsZero():
			keep(&v.Seen, &v.SeenAll, row)
		case row.Red():
			keep(&v.Urgent, &v.Alarms, row)
		default:
			keep(&v.Others, &v.Warnings, row)
		}
	}
}

// silentHubs returns the hubs that are connected but do not report events, and since when. Without
// an answer it returns none.
func (req *request) silentHubs(ctx context.Context) map[domain.HubID]time.Time {
	silent, err := req.portal.Faults.SilentHubs(ctx)
	if err != nil {
		req.portal.Logger.DebugContext(
			ctx, "faults of hubs unknown", "request_id", req.info.RequestID, "error", err,
		)
	}
	return silent
}

// seenBy returns the name of the member who has seen a condition.
func seenBy(org domain.OrgState, seen domain.SeenCondition) string {
	if member, ok := org.Member(seen.MemberID); ok {
		return member.DisplayName()
	}
	return text.Pages["former-member"]
}

// conditionTexts returns the title of a condition, and what to do.
func conditionTexts(c attention.Condition) (title, advice string) {
	texts := text.Conditions[string(c.Kind)]
	_, value := live.Describe(c.Key, c.Value)
	channel, wanted := live.Describe(c.Key, c.Wanted)
	switch {
	case c.Kind == attention.Battery && c.Key == "battery":
		value += " %"
	case c.Kind == attention.Battery:
		value = texts.Other
	}
	fill := []string{"value", value, "wanted", wanted, "channel", channel, "event", alarmTitle(c)}
	return text.Fill(texts.Title, fill...), text.Fill(texts.Advice, fill...)
}

// alarmTitle returns the text of what an alarm channel reports.
func alarmTitle(c attention.Condition) string {
	if c.Event == "" {
		return text.Conditions[string(attention.Alarm)].Other
	}
	return live.AlarmText(c.Event)
}

// siteNames returns the names of the organization's sites, by id.
func siteNames(sites []domain.Site) map[string]string {
	names := make(map[string]string, len(sites))
	for _, site := range sites {
		names[site.ID] = site.Name
	}
	return names
}

// attentionPart answers with what needs attention, for the page's script. The query parameters hub
// and site restrict it.
func (req *request) attentionPart() error {
	hub, site := domain.HubID(req.queryValue("hub")), req.queryValue("site")
	var states []live.HubState
	var err error
	if site != "" && hub == "" {
		states, err = req.portal.Live.SiteStates(req.http.Context(), req.member.OrgID, site)
	} else {
		states, err = req.portal.Live.States(req.http.Context(), req.member.OrgID, hub)
	}
	if err != nil {
		return err
	}
	sites, err := req.portal.ReadModels.Sites(req.http.Context(), req.member.OrgID, maxSites, "")
	if err != nil {
		return err
	}
	up := 0
	if hub != "" || site != "" {
		up = 2
	}
	view, err := req.needsAttention(req.fragment(up), states, siteNames(sites.Data), site, hub)
	if err != nil {
		return err
	}
	req.render(http.StatusOK, "attention", view)
	return nil
}

// seeCondition records that the member has seen a condition, and returns to the page.
func (req *request) seeCondition() error {
	since, err := time.Parse(time.RFC3339Nano, req.formValue("since"))
	if err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "since: must be a time")
	}
	hub, ok := domain.ParseHubID(req.formValue("hub"))
	if !ok {
		return domain.ErrHubNotFound()
	}
	err = req.portal.Directory.SeeCondition(
		req.http.Context(), req.origin(), req.member.OrgID, hub, req.formValue("condition"), since,
	)
	page := ""
	switch req.formValue("from") {
	case "hub":
		page = hubAddress(hub)
	case "site":
		page = "sites/" + req.formValue("site")
	}
	return req.finishAction(err, page, "condition-seen")
}
