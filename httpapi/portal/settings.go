package portal

import (
	"net/http"
)

// settingsView is the page of an organization's settings.
type settingsView struct {
	Layout
	// OwnName is the member's own name, or what was typed, and OwnProblem why it was rejected.
	OwnName, OwnProblem string
	// Name is what was typed as the organization's new name, and Problem why it was rejected.
	Name, Problem string
}

// settings shows the organization's settings.
func (req *request) settings() error {
	return req.showSettings(http.StatusOK, settingsView{})
}

func (req *request) showSettings(status int, view settingsView) error {
	if view.Problem == "" {
		view.Name = req.member.OrgName
	}
	if view.OwnProblem == "" {
		org, err := req.portal.Directory.Org(req.http.Context(), req.member.OrgID)
		if err != nil {
			return err
		}
		member, _ := org.Member(req.member.MemberID)
		view.OwnName = member.Name
	}
	view.Layout = req.layout("Settings", "settings")
	req.render(status, "settings.html", view)
	return nil
}

// nameMember sets the name that pages show for the member.
func (req *request) nameMember() error {
	name := req.formValue("name")
	err := req.portal.Directory.NameMember(
		req.http.Context(), req.origin(), req.member.OrgID, name,
	)
	if problem, ok := rejectionText(err); ok {
		return req.showSettings(rejectionStatus(err), settingsView{OwnName: name, OwnProblem: problem})
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("settings", "name-saved")
	return nil
}

// renameOrganization renames the organization.
func (req *request) renameOrganization() error {
	name := req.formValue("name")
	err := req.portal.Directory.RenameOrg(
		req.http.Context(), req.origin(), req.member.OrgID, name,
	)
	if problem, ok := rejectionText(err); ok {
		return req.showSettings(rejectionStatus(err), settingsView{Name: name, Problem: problem})
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("settings", "organization-renamed")
	return nil
}
