package portal

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"

	"hubcloud/domain"
)

// activityPageSize is how many activities a page shows.
const activityPageSize = 100

// activityView is the page of the organization's activity.
type activityView struct {
	Layout
	Rows []activityRow
	// Manages reports whether the member sees the addresses of requests, and may export them.
	Manages bool
	// Older is the sequence that the next older page ends before; 0 for none.
	Older uint64
}

// activityRow is one activity. Sentence says who did what, and Site where the hub that it is about
// is now; "" for none.
type activityRow struct {
	domain.Activity
	Sentence template.HTML
	Site     string
}

// activity shows what members, keys and operators changed, newest first.
func (req *request) activity() error {
	var before uint64
	if typed := req.http.URL.Query().Get("before"); typed != "" {
		var err error
		if before, err = strconv.ParseUint(typed, 10, 63); err != nil {
			return domain.Errorf(domain.CodeInvalidRequest, "before: must be a number")
		}
	}
	page, err := req.ReadModels.Activity(req.ctx, req.org, activityPageSize, before)
	if err != nil {
		return err
	}
	devices, err := req.devicesOf(page.Data)
	if err != nil {
		return err
	}
	view := activityView{Manages: req.member.Manages()}
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	sites, err := req.allSites()
	if err != nil {
		return err
	}
	names := siteNames(sites)
	for _, a := range page.Data {
		if member, ok := org.Member(a.Actor.ID); ok && a.Actor.Kind == domain.ActorMember {
			a.ActorName = member.DisplayName()
		}
		device, _ := strconv.ParseInt(a.SubjectID, 10, 64) // 0 for other subjects, which have no hub
		row := activityRowOf(a, devices[a.Hub][device].Name)
		hub, ok := req.Hubs.Hub(cmp.Or(a.Hub, domain.HubID(a.SubjectID)))
		if ok && hub.OrgID == req.org {
			row.Site = names[hub.SiteID]
		}
		view.Rows = append(view.Rows, row)
	}
	if page.HasMore {
		view.Older = page.Data[len(page.Data)-1].Sequence
	}
	view.Layout = req.layout("Activity", "events")
	req.render(http.StatusOK, "activity.html", view)
	return nil
}

// maxActivityExport is the most activities of an export.
const maxActivityExport = 10_000

// exportActivity answers with the newest activity as CSV, newest first. A failure after the first
// part breaks the connection off, so that the browser reports it.
func (req *request) exportActivity() error {
	out, begun, before := NewCSV(req.w), false, uint64(0)
	for rows, more := 0, true; more && rows < maxActivityExport; {
		page, err := req.ReadModels.Activity(req.ctx, req.org, exportFlush, before)
		if err != nil && !begun {
			return err
		}
		if !begun {
			begun = true
			req.csvHeaders("activity", req.zone())
			err = out.Row(ActivityColumns()...)
		}
		for _, a := range page.Data {
			before, rows = a.Sequence, rows+1
			if err == nil {
				err = out.Row(ActivityFields(a)...)
			}
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			req.recordError(err)
			panic(http.ErrAbortHandler) // part of the file is sent
		}
		more = page.HasMore
	}
	return nil
}

// ActivityColumns returns the columns of a file of activity.
func ActivityColumns() []string {
	return []string{
		"time", "type", "actor_kind", "actor_id", "actor_name", "subject_id", "subject_name",
		"hub_id", "detail", "address", "request_id",
	}
}

// ActivityFields returns the fields of the columns of ActivityColumns.
func ActivityFields(a domain.Activity) []string {
	return []string{
		domain.FormatTime(a.At), a.Type, a.Actor.Kind, a.Actor.ID, a.ActorName, a.SubjectID,
		a.SubjectName, string(a.Hub), a.Detail, a.Address, a.RequestID,
	}
}

// devicesOf returns the devices that activities are about, by hub.
func (req *request) devicesOf(
	activities []domain.Activity,
) (map[domain.HubID]map[int64]deviceInfo, error) {
	var hubs []domain.HubID
	for _, a := range activities {
		// The names of the hubs that left the organization are not asked for.
		owner, ok := req.Hubs.Hub(a.Hub)
		if ok && owner.OrgID == req.org && !slices.Contains(hubs, a.Hub) {
			hubs = append(hubs, a.Hub)
		}
	}
	return req.deviceInfosOf(hubs)
}

// activityRowOf returns the row of an activity. device is the name of the device that it is about,
// "" if the name is unknown or if it is about something else.
func activityRowOf(a domain.Activity, device string) activityRow {
	what := cmp.Or(a.SubjectName, a.SubjectID)
	variant := ""
	switch {
	case a.Type == domain.SiteRenamed{}.EventType() && a.SubjectName == a.Detail,
		a.Type != domain.SiteRenamed{}.EventType() && a.SubjectID == a.Actor.ID:
		variant = " own"
	case a.Detail == "":
		variant = " plain"
	}
	switch {
	case a.Type == domain.MemberInvitationRevoked{}.EventType(),
		a.Type == domain.MemberInvitationRestored{}.EventType():
		what = a.SubjectName
	case a.Hub != "":
		what = cmp.Or(device, "Device "+a.SubjectID) +
			" (" + cmp.Or(a.SubjectName, string(a.Hub)) + ")"
	case a.Type == domain.HubRenamed{}.EventType():
		// Not SubjectName: that is the hub's current name, not the one before this change.
		what = a.SubjectID
	}
	pattern := cmp.Or(
		activityTexts[a.Type+variant], activityTexts[a.Type], "{who}: "+a.Type+" {what}",
	)
	return activityRow{Activity: a, Sentence: fillMarkup(
		pattern, "who", bold(actorText(a.Actor, a.ActorName)), "what", bold(what), "detail", a.Detail,
	)}
}

// actorText returns how a page calls an actor with that name, which may be empty.
func actorText(actor domain.Actor, name string) string {
	switch actor.Kind {
	case domain.ActorOperator:
		return actorTexts["operator"]
	case domain.ActorService:
		return actorTexts["service"]
	case domain.ActorKey:
		return fill(actorTexts["key"], "name", cmp.Or(name, actor.ID))
	case domain.ActorHub:
		return fill(actorTexts["hub"], "name", cmp.Or(name, actor.ID))
	}
	return cmp.Or(name, actorTexts["former"])
}

// activityTexts are the sentences of the organization's activity, by the type of the event. {who}
// is the person or program, {what} what was changed, and {detail} the new value. "own" follows the
// type if members change their own membership, and "plain" if there is no new value.
var activityTexts = map[string]string{
	"org.created":              "{who} created the organization {detail}",
	"org.renamed":              "{who} renamed the organization to {detail}",
	"org.condition_seen":       "{who} has seen a problem of the hub {what}",
	"org.condition_unseen":     "{who} marked a problem of the hub {what} as not seen",
	"org.mail_preferences_set": "{who} changed their alarm mails, now {detail}",
	"org.book_set":             "{who} changed what the book keeps, now {detail}",
	"org.member_added":         "{who} added {what} as {detail}",
	"org.member_added own":     "{who} joined as {detail}",
	"org.member_role_changed":  "{who} changed the role of {what} to {detail}",
	"org.member_named":         "{who} chose the name {detail}",
	"org.member_named plain":   "{who} removed the own name",
	"org.member_removed":       "{who} removed {what}",
	"org.member_removed own":   "{who} left",
	"org.invited":              "{who} invited {what} as {detail}",
	"org.invitation_revoked":   "{who} withdrew the invitation of {what}",
	"org.invitation_restored":  "{who} restored the invitation of {what}",
	"org.invitation_accepted":  "{who} accepted an invitation",
	"site.created":             "{who} created the site {what}",
	"site.renamed":             "{who} renamed the site that is now {what} to {detail}",
	"site.renamed own":         "{who} renamed a site to {detail}",
	"hub.certificate_revoked":  "{who} reset the link of {what}",
	"hub.added":                "{who} added the hub {what}",
	"hub.moved":                "{who} moved the hub {what} to {detail}",
	"hub.renamed":              "{who} renamed the hub {what} to {detail}",
	"hub.renamed plain":        "{who} removed the name of the hub {what}",
	"hub.log_begun":            "The hub {what} began a new event log",
	"hub.secret_rotated":       "{who} replaced the enrolment secret of the hub {what}",
	"hub.blocked":              "{who} blocked the hub {what}",
	"hub.unblocked":            "{who} unblocked the hub {what}",
	"hub.released":             "{who} removed the hub {what} from the organization",
	"hub.device_labeled":       "{who} named or placed {what}, now {detail}",
	"hub.device_labeled plain": "{who} named or placed {what}",
	"hub.device_forgotten":     "{who} removed {what} from the list of its hub",
	"hub.credential_set":       "{who} set a code of {what}: {detail}",
	"hub.credential_revoked":   "{who} revoked a code of {what}: {detail}",
	"hub.credential_reported":  "{what} has taken, removed or rejected a code: {detail}",
	"key.created":              "{who} created the API key {what} with {detail}",
	"key.created plain":        "{who} created the API key {what}",
	"key.changed":              "{who} changed the sites or the expiry of the API key {what}",
	"key.rotated":              "{who} replaced the secret of the API key {what}",
	"key.expiry_mailed":        "{who} mailed owners and admins that the API key {what} expires soon",
	"key.revoked":              "{who} revoked the API key {what}",
	"webhook.created":          "{who} created the webhook to {detail}",
	"webhook.changed":          "{who} changed the webhook to {detail}",
	"webhook.secret_rotated":   "{who} replaced the secret of the webhook {what}",
	"webhook.enabled":          "{who} enabled the webhook {what}",
	"webhook.disabled":         "{who} disabled the webhook {what}",
	"webhook.replayed":         "{who} moved the webhook {what} to another position",
	"webhook.deleted":          "{who} deleted the webhook {what}",
}

// actorTexts are the names of those who act and have no name of their own, and {name} of keys and
// hubs.
var actorTexts = map[string]string{
	"operator": "The operator",
	"service":  "The service",
	"key":      "API key {name}",
	"hub":      "The hub {name}",
	"former":   "A former member",
}
