package portal

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

const (
	// attentionTimeout is how long a page waits for what needs attention. Without an answer the
	// page says so.
	attentionTimeout = 1500 * time.Millisecond
	// shownConditions is how many conditions of each severity a page shows, and how many of a
	// group.
	shownConditions = 50
	// groupFrom is from how many conditions of one kind at one site on a page shows one entry for
	// them.
	groupFrom = 5
)

// attentionView is the part of a page with what needs attention.
type attentionView struct {
	Layout
	// Hub is the hub of the page, and SiteID its site; "" for more than one.
	Hub    domain.HubID
	SiteID string
	// Urgent and Others are the alarms and the warnings that nobody has seen, Seen those that
	// somebody has seen. Each has at most shownConditions entries.
	Urgent, Others, Seen []conditionRow
	// Alarms, Warnings and SeenAll count all entries.
	Alarms, Warnings, SeenAll int
	// Reconnecting is how many hubs are expected back after a restart of the service.
	Reconnecting int
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
	// Count is how many conditions of the kind at the site the entry stands for, of which Each has
	// at most shownConditions; 0 for a single condition. Since is the newest one's.
	Count int
	Each  []conditionRow
}

// MoreEach returns how many conditions of a group are not shown.
func (r conditionRow) MoreEach() int { return r.Count - len(r.Each) }

// Key returns what identifies the entry on the page.
func (r conditionRow) Key() string {
	if r.Count > 0 {
		return string(r.Kind) + " " + r.SiteID + " " + r.Stamp()
	}
	return string(r.Hub) + " " + r.ID + " " + r.Stamp()
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

// Life reports whether lives may be in danger: the banner of every page shows the condition until it
// is seen.
func (r conditionRow) Life() bool {
	switch r.Kind {
	case attention.Smoke, attention.CO, attention.Gas, attention.Heat, attention.Emergency:
		return r.Red()
	}
	return false
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
		return counted(v.Alarms, "alarm") + ", " + counted(v.Warnings, "warning")
	case v.Alarms > 0:
		return counted(v.Alarms, "alarm")
	case v.Warnings > 0:
		return counted(v.Warnings, "warning")
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
	layout Layout, hubs []hubState, siteNames map[string]string, site string, hub domain.HubID,
) (attentionView, error) {
	view := attentionView{Layout: layout, Hub: hub, SiteID: site}
	ctx, cancel := context.WithTimeout(req.ctx, attentionTimeout)
	defer cancel()
	rows, err := req.conditions(ctx, &view, hubs, siteNames)
	if err != nil {
		return view, err
	}
	view.add(rows)
	return view, nil
}

// Attention is a condition as the API lists it.
type Attention struct {
	attention.Condition
	SiteID string
	// Title is the condition in a few words, for people.
	Title string
	// SeenAt is when a member has seen it; zero if nobody has.
	SeenAt time.Time
}

// Attention returns what needs attention at the hubs within a reach, the most urgent first: what pages
// show. site and hub restrict it; "" does not. It returns service_unavailable while the last reports
// of the devices cannot be read.
func (p *Portal) Attention(
	ctx context.Context, reach domain.Reach, site string, hub domain.HubID, info RequestInfo,
) ([]Attention, error) {
	var at *string
	if site != "" {
		at = &site
	}
	states, err := p.readStates(ctx, reach, at)
	if err != nil {
		return nil, err
	}
	if hub != "" {
		states = slices.DeleteFunc(states, func(s hubState) bool { return s.ID != hub })
	}
	req := &request{Portal: p, ctx: ctx, org: reach.OrgID, info: info}
	view := attentionView{SiteID: site}
	rows, err := req.conditions(ctx, &view, states, nil)
	if err == nil && view.Unknown {
		err = domain.Unavailable("the last reports of the devices cannot be read; try again later")
	}
	all := make([]Attention, 0, len(rows))
	for _, row := range rows {
		all = append(all, Attention{row.Condition, row.SiteID, row.Title, row.SeenAt})
	}
	return all, err
}

// conditions returns the conditions of hubs, the most urgent first, and notes in the view what is
// unknown and how many hubs are reconnecting.
func (req *request) conditions(
	ctx context.Context, view *attentionView, hubs []hubState, siteNames map[string]string,
) ([]conditionRow, error) {
	states, err := req.Reported.StatesNeedingAttention(ctx, req.org, view.SiteID, view.Hub)
	if err != nil {
		view.Unknown = true
		req.Logger.WarnContext(
			ctx, "reported states unknown", "request_id", req.info.RequestID, "error", err,
		)
	}
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return nil, err
	}
	var silent map[domain.HubID]time.Time
	if view.Hub == "" { // the hub's own page shows its faults anyway
		silent = req.silentHubs(ctx)
	}
	byHub := map[domain.HubID][]domain.ReportedState{}
	for _, state := range states {
		byHub[state.HubID] = append(byHub[state.HubID], state)
	}
	var rows []conditionRow
	for _, state := range hubs {
		reconnecting := state.Shown(req.info.At) == statusReconnecting
		if reconnecting {
			view.Reconnecting++
		}
		for _, condition := range attention.Of(attention.HubState{
			ID: state.ID, Status: state.Status, Since: state.Since, SilentSince: silent[state.ID],
			Reconnecting: reconnecting, Known: state.AddedAt,
			Devices: attention.Devices(byHub[state.ID]),
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
	return rows, nil
}

// add counts the entries and keeps those that are shown. Many conditions of one kind at one site
// are one entry.
func (v *attentionView) add(rows []conditionRow) {
	type groupKey struct {
		kind     attention.Kind
		severity domain.Severity
		site     string
		seen     bool
	}
	keyOf := func(row conditionRow) groupKey {
		return groupKey{row.Kind, row.Severity, row.SiteID, !row.SeenAt.IsZero()}
	}
	groups := map[groupKey][]conditionRow{}
	for _, row := range rows {
		groups[keyOf(row)] = append(groups[keyOf(row)], row)
	}
	keep := func(list *[]conditionRow, counter *int, row conditionRow) {
		if *counter++; len(*list) < shownConditions {
			*list = append(*list, row)
		}
	}
	for _, row := range rows {
		key := keyOf(row)
		if group := groups[key]; len(group) >= groupFrom {
			row = groupRow(group)
			groups[key] = []conditionRow{} // the entry is there
		} else if group != nil && len(group) == 0 {
			continue
		}
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

// groupRow returns the entry of a group.
func groupRow(group []conditionRow) conditionRow {
	row := group[0]
	row.Count, row.Each = len(group), group[:min(len(group), shownConditions)]
	for _, r := range group {
		if r.Since.After(row.Since) {
			row.Since = r.Since
		}
		if r.Title != row.Title {
			row.Title = cmp.Or(attention.Texts[row.Kind].Many, row.Title)
		}
		if r.Advice != group[0].Advice {
			row.Advice = ""
		}
	}
	return row
}

// silentHubs returns the hubs that are connected but do not report events, and since when. Without
// an answer it returns none.
func (req *request) silentHubs(ctx context.Context) map[domain.HubID]time.Time {
	silent, err := req.Faults.SilentHubs(ctx)
	if err != nil {
		req.Logger.DebugContext(
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
	return "a former member"
}

// conditionTexts returns the title of a condition, and what to do.
func conditionTexts(c attention.Condition) (title, advice string) {
	texts := attention.Texts[c.Kind]
	_, value := describeValue(c.Key, c.Value)
	channel, wanted := describeValue(c.Key, c.Wanted)
	switch {
	case c.Kind == attention.Battery && c.Key == "battery":
		value += " %"
	case c.Kind == attention.Battery:
		value = texts.Other
	}
	pairs := []string{"value", value, "wanted", wanted, "channel", channel, "event", alarmTitle(c)}
	return fill(texts.Title, pairs...), fill(texts.Advice, pairs...)
}

// alarmTitle returns the text of what an alarm channel reports.
func alarmTitle(c attention.Condition) string {
	if c.Event == "" {
		return attention.Texts[attention.Alarm].Other
	}
	return alarmText(c.Event)
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
	states, err := req.statesAt(req.ctx, req.org, site, hub)
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

// seeCondition records that the member has seen a condition, or all of an entry, or takes that
// back, and returns to the page.
func (req *request) seeCondition() error {
	since, err := time.Parse(time.RFC3339Nano, req.formValue("since"))
	if err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "since: must be a time")
	}
	hub, ok := domain.ParseHubID(req.formValue("hub"))
	kind, undo := attention.Kind(req.formValue("kind")), req.formValue("undo") != ""
	site := req.formValue("site")
	if !ok && (kind == "" || site == "" || req.formValue("hub") != "") {
		return domain.ErrHubNotFound()
	}
	seen := []domain.Occurrence{
		{HubID: hub, Condition: req.formValue("condition"), Since: since},
	}
	if kind != "" {
		seen, err = req.occurrences(kind, site, hub, since, undo)
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
		page = "sites/" + site
	}
	return req.finishAction(err, page, notice)
}

// occurrences returns the conditions of a kind at a site, or at one hub of it, that began until a
// time, the newest that the member's page had: if seen is set those that somebody has seen,
// otherwise those that nobody has seen.
func (req *request) occurrences(
	kind attention.Kind, site string, hub domain.HubID, until time.Time, seen bool,
) (all []domain.Occurrence, err error) {
	states, err := req.statesAt(req.ctx, req.org, site, hub)
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
