package portal

import (
	"net/http"

	"hubcloud/httpapi/portal/text"
)

// settingsView is the page of an organization's settings.
type settingsView struct {
	Layout
	// Name is what was typed as the organization's new name, and Problem why it was rejected.
	Name, Problem string
}

// settings shows the organization's settings.
func (req *request) settings() error {
	return req.showSettings(http.StatusOK, settingsView{Name: req.member.OrgName})
}

func (req *request) showSettings(status int, view settingsView) error {
	view.Layout = req.layout(text.Pages["settings"], "settings")
	req.render(status, "settings.html", view)
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
