package portal

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/text"
)

// activityPageSize is how many activities a page shows.
const activityPageSize = 100

// activityView is the page of the organization's activity.
type activityView struct {
	Layout
	Rows []activityRow
	// Older is the sequence that the next older page ends before; 0 for none.
	Older uint64
}

// activityRow is one activity. Sentence says who did what.
type activityRow struct {
	domain.Activity
	Sentence template.HTML
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
	page, err := req.portal.ReadModels.Activity(
		req.http.Context(), req.member.OrgID, activityPageSize, before,
	)
	if err != nil {
		return err
	}
	devices, err := req.namesOfDevices(page.Data)
	if err != nil {
		return err
	}
	view := activityView{}
	org, err := req.portal.Directory.Org(req.http.Context(), req.member.OrgID)
	if err != nil {
		return err
	}
	for _, a := range page.Data {
		if member, ok := org.Member(a.Actor.ID); ok && a.Actor.Kind == domain.ActorMember {
			a.ActorName = member.DisplayName()
		}
		device, _ := strconv.ParseInt(a.SubjectID, 10, 64) // 0 for other subjects, which have no hub
		view.Rows = append(view.Rows, activityRowOf(a, devices[a.Hub][device]))
	}
	if page.HasMore {
		view.Older = page.Data[len(page.Data)-1].Sequence
	}
	view.Layout = req.layout(text.Pages["activity"], "activity")
	req.render(http.StatusOK, "activity.html", view)
	return nil
}

// namesOfDevices returns the names of the devices that activities are about, by hub.
func (req *request) namesOfDevices(
	activities []domain.Activity,
) (map[domain.HubID]map[int64]string, error) {
	var hubs []domain.HubID
	for _, a := range activities {
		// The names of the hubs that left the organization are not asked for.
		owner, ok := req.portal.Owners.Hub(a.Hub)
		if ok && owner.OrgID == req.member.OrgID && !slices.Contains(hubs, a.Hub) {
			hubs = append(hubs, a.Hub)
		}
	}
	return req.portal.Live.NamesOf(req.http.Context(), req.member.OrgID, hubs, namesTimeout)
}

// activityRowOf returns the row of an activity. device is the name of the device that it is about,
// "" if the name is unknown or if it is about something else.
func activityRowOf(a domain.Activity, device string) activityRow {
	what := cmp.Or(a.SubjectName, a.SubjectID)
	variant := ""
	switch {
	case a.Type == domain.TypeSiteRenamed && a.SubjectName == a.Detail,
		a.Type != domain.TypeSiteRenamed && a.SubjectID == a.Actor.ID:
		variant = " own"
	case a.Detail == "":
		variant = " plain"
	}
	switch {
	case a.Type == domain.TypeInvitationRevoked:
		what = a.SubjectName
	case a.Hub != "":
		what = text.Fill(
			text.Pages["device-of-hub"],
			"device", cmp.Or(device, text.Fill(text.Pages["device-number"], "number", a.SubjectID)),
			"hub", cmp.Or(a.SubjectName, string(a.Hub)),
		)
	case a.Type == domain.TypeHubRenamed:
		// Not SubjectName: that is the hub's current name, not the one before this change.
		what = a.SubjectID
	}
	pattern := cmp.Or(
		text.Activities[a.Type+variant], text.Activities[a.Type], "{who}: "+a.Type+" {what}",
	)
	return activityRow{a, fillMarkup(
		pattern, "who", bold(actorText(a.Actor, a.ActorName)), "what", bold(what), "detail", a.Detail,
	)}
}

// actorText returns how a page calls an actor with that name, which may be empty.
func actorText(actor domain.Actor, name string) string {
	switch actor.Kind {
	case domain.ActorOperator:
		return text.Actors["operator"]
	case domain.ActorService:
		return text.Actors["service"]
	case domain.ActorKey:
		return text.Fill(text.Actors["key"], "name", cmp.Or(name, actor.ID))
	case domain.ActorHub:
		return text.Fill(text.Actors["hub"], "name", cmp.Or(name, actor.ID))
	}
	return cmp.Or(name, text.Actors["former"])
}
