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
		org, err := req.Directory.Org(req.ctx, req.org)
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
	err := req.Directory.NameMember(req.ctx, req.origin(), req.org, name)
	req.offerUndo(err, "settings", nil)
	return req.finishForm(err, "settings", "name-saved", func(status int, problem string) error {
		return req.showSettings(status, settingsView{OwnName: name, OwnProblem: problem})
	})
}

// renameOrganization renames the organization.
func (req *request) renameOrganization() error {
	name := req.formValue("name")
	err := req.Directory.RenameOrg(req.ctx, req.origin(), req.org, name)
	req.offerUndo(err, "settings", nil)
	again := func(status int, problem string) error {
		return req.showSettings(status, settingsView{Name: name, Problem: problem})
	}
	return req.finishForm(err, "settings", "organization-renamed", again)
}
