package portal

import (
	"cmp"
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// activityPageSize is how many lines of activity a page shows.
const activityPageSize = 100

// activityView is the page that tells who did what.
type activityView struct {
	Layout
	Rows []activityRow
	// Older is where the page before goes on; 0 when there is none.
	Older uint64
}

// activityRow is one thing that was done. Its parts are shown one after the other: who, did what,
// with what, and how it is now.
type activityRow struct {
	domain.Activity
	Who, Did, What string
	// Label goes before Detail.
	Label string
}

// activity tells who did what, newest first.
func (req *request) activity() error {
	var before uint64
	if text := req.http.URL.Query().Get("before"); text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 63); err != nil {
			return domain.Errorf(domain.CodeInvalidRequest, "before: must be a number")
		}
	}
	page, err := req.portal.ReadModels.Activity(
		req.http.Context(), req.member.OrgID, activityPageSize, before,
	)
	if err != nil {
		return err
	}
	view := activityView{}
	for _, a := range page.Data {
		view.Rows = append(view.Rows, activityRowOf(a))
	}
	if page.HasMore {
		view.Older = page.Data[len(page.Data)-1].Sequence
	}
	view.Layout = req.layout("Activity", "activity")
	req.render(http.StatusOK, "activity.html", view)
	return nil
}

// activityTexts says in words what each type of event is.
var activityTexts = map[string]struct{ did, label string }{
	domain.TypeOrgCreated:            {"created the organization", ""},
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
	domain.TypeHubLogBegun:           {"began the event log anew of", ""},
	domain.TypeHubSecretRotated:      {"replaced the enrolment secret of the hub", ""},
	domain.TypeHubBlocked:            {"blocked the hub", ""},
	domain.TypeHubUnblocked:          {"unblocked the hub", ""},
	domain.TypeHubReleased:           {"took away from the organization the hub", ""},
	domain.TypeDeviceLabeled:         {"named or placed", "now"},
	domain.TypeDeviceForgotten:       {"forgot", ""},
	domain.TypeKeyCreated:            {"created the API key", "with"},
	domain.TypeKeyRevoked:            {"revoked the API key", ""},
}

func activityRowOf(a domain.Activity) activityRow {
	deed, ok := activityTexts[a.Type]
	if !ok {
		deed.did = a.Type
	}
	line := activityRow{Activity: a, Did: deed.did, What: a.SubjectName}
	if a.Detail != "" {
		line.Label = deed.label
	}
	if line.What == "" {
		line.What = a.SubjectID
	}
	own := a.SubjectID == a.Actor.ID
	switch {
	case a.Type == domain.TypeMemberAdded && !own:
		line.Did = "added"
	case a.Type == domain.TypeMemberRemoved && own:
		line.Did = "left"
	case a.Type == domain.TypeInvitationRevoked:
		line.What = a.SubjectName
	case a.Hub != "":
		line.Did += " device " + a.SubjectID + " of"
		line.What = cmp.Or(a.SubjectName, string(a.Hub))
	case a.Type == domain.TypeHubRenamed:
		// what it is called now may be the name of this line, or a later one
		line.What = a.SubjectID
		if a.Detail == "" {
			line.Did = "took the name from the hub"
		}
	case a.Type == domain.TypeSiteRenamed && a.SubjectName != a.Detail:
		line.Did = "renamed the site that is now"
	case a.Type == domain.TypeSiteRenamed:
		line.What = ""
	}
	if a.Type == domain.TypeOrgCreated || own {
		line.What = ""
	}
	line.Who = actorText(a.Actor, a.ActorName)
	return line
}

// actorText says who an actor is, called by that name if it has one.
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
