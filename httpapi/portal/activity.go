package portal

import (
	"cmp"
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

// activityRow is one activity. The page shows its parts in order: Who Did What Label Detail, as in
// "ann@example.org changed the role of bob@example.org to admin".
type activityRow struct {
	domain.Activity
	Who, Did, What string
	// Label is the word before Detail.
	Label string
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
	for _, a := range page.Data {
		device, _ := strconv.ParseInt(a.SubjectID, 10, 64) // 0 for other subjects, which have no hub
		view.Rows = append(view.Rows, activityRowOf(a, devices[a.Hub][device]))
	}
	if page.HasMore {
		view.Older = page.Data[len(page.Data)-1].Sequence
	}
	view.Layout = req.layout("Activity", "activity")
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

// activityTexts are the texts of Did and Label for each type of event.
var activityTexts = map[string]struct{ did, label string }{
	domain.TypeOrgCreated:            {"created the organization", ""},
	domain.TypeOrgRenamed:            {"renamed the organization", "to"},
	domain.TypeConditionSeen:         {"has seen a problem of the hub", ""},
	domain.TypeMemberAdded:           {"joined", "as"},
	domain.TypeMemberRoleChanged:     {"changed the role of", "to"},
	domain.TypeMemberRemoved:         {"removed", ""},
	domain.TypeMemberInvited:         {"invited", "as"},
	domain.TypeInvitationRevoked:     {"withdrew the invitation of", ""},
	domain.TypeInvitationAccepted:    {"accepted an invitation", ""},
	domain.TypeSiteCreated:           {"created the site", ""},
	domain.TypeSiteRenamed:           {"renamed a site", "to"},
	domain.TypeHubCertificateRevoked: {"reset the link of", ""},
	domain.TypeHubAdded:              {"added the hub", ""},
	domain.TypeHubMoved:              {"moved the hub", "to"},
	domain.TypeHubRenamed:            {"renamed the hub", "to"},
	domain.TypeHubLogBegun:           {"restarted the event log of", ""},
	domain.TypeHubSecretRotated:      {"replaced the enrolment secret of the hub", ""},
	domain.TypeHubBlocked:            {"blocked the hub", ""},
	domain.TypeHubUnblocked:          {"unblocked the hub", ""},
	domain.TypeHubReleased:           {"released the hub", ""},
	domain.TypeDeviceLabeled:         {"named or placed", "now"},
	domain.TypeDeviceForgotten:       {"forgot", ""},
	domain.TypeKeyCreated:            {"created the API key", "with"},
	domain.TypeKeyRevoked:            {"revoked the API key", ""},
}

// activityRowOf returns the row of an activity. device is the name of the device that it is about,
// "" if the name is unknown or if it is about something else.
func activityRowOf(a domain.Activity, device string) activityRow {
	texts, ok := activityTexts[a.Type]
	if !ok {
		texts.did = a.Type
	}
	row := activityRow{Activity: a, Did: texts.did, What: a.SubjectName}
	if a.Detail != "" {
		row.Label = texts.label
	}
	if row.What == "" {
		row.What = a.SubjectID
	}
	own := a.SubjectID == a.Actor.ID
	switch {
	case a.Type == domain.TypeMemberAdded && !own:
		row.Did = "added"
	case a.Type == domain.TypeMemberRemoved && own:
		row.Did = "left"
	case a.Type == domain.TypeInvitationRevoked:
		row.What = a.SubjectName
	case a.Hub != "":
		row.What = text.Fill(
			text.Pages["device-of-hub"],
			"device", cmp.Or(device, text.Fill(text.Pages["device-number"], "number", a.SubjectID)),
			"hub", cmp.Or(a.SubjectName, string(a.Hub)),
		)
	case a.Type == domain.TypeHubRenamed:
		// Not SubjectName: that is the hub's current name, not the one before this change.
		row.What = a.SubjectID
		if a.Detail == "" {
			row.Did = "took the name from the hub"
		}
	case a.Type == domain.TypeSiteRenamed && a.SubjectName != a.Detail:
		row.Did = "renamed the site that is now"
	case a.Type == domain.TypeSiteRenamed:
		row.What = ""
	}
	if a.Type == domain.TypeOrgCreated || a.Type == domain.TypeOrgRenamed || own {
		row.What = ""
	}
	row.Who = actorText(a.Actor, a.ActorName)
	return row
}

// actorText returns how a page calls an actor with that name, which may be empty.
func actorText(actor domain.Actor, name string) string {
	switch actor.Kind {
	case domain.ActorOperator:
		return "The operator"
	case domain.ActorService:
		return "The service"
	case domain.ActorKey:
		return "API key " + cmp.Or(name, actor.ID)
	case domain.ActorHub:
		return "The hub " + cmp.Or(name, actor.ID)
	}
	return cmp.Or(name, "A former member")
}
