package portal

import (
	"errors"
	"net/http"

	"hubcloud/domain"
)

// organizationsView is the page with the organizations of the person.
type organizationsView struct {
	Layout
	Memberships []domain.MemberAccess
	// OpenSignUp says that one can be created here.
	OpenSignUp bool
}

// organizations lists where the person is a member.
func (req *request) organizations() error {
	req.render(http.StatusOK, "organizations.html", organizationsView{
		req.layout(
			"Your organizations", "",
		), req.portal.People.Memberships(req.session.Email), req.portal.OpenSignUp,
	})
	return nil
}

// newOrganizationView is the form that begins an organization.
type newOrganizationView struct {
	Layout
	Name, Problem string
}

// newOrganization shows the form.
func (req *request) newOrganization() error {
	if !req.portal.OpenSignUp {
		return errSignUpClosed
	}
	req.render(
		http.StatusOK, "organization-new.html",
		newOrganizationView{Layout: req.layout("New organization", "")},
	)
	return nil
}

// createOrganization begins an organization whose owner the person is.
func (req *request) createOrganization() error {
	if !req.portal.OpenSignUp {
		return errSignUpClosed
	}
	name := req.formValue("name")
	origin := req.origin() // of a member who gets an id only now
	var org string
	err := req.submitOnce(func() (err error) {
		org, _, err = req.portal.Directory.CreateOrg(
			req.http.Context(), origin, name, req.session.Email,
		)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		req.redirect("organizations", "")
		return nil
	}
	if problem, ok := rejectionText(err); ok {
		req.render(
			rejectionStatus(err), "organization-new.html",
			newOrganizationView{req.layout("New organization", ""), name, problem},
		)
		return nil
	}
	if err != nil {
		return err
	}
	req.redirect(org+"/sites", "organization-created")
	return nil
}

var errSignUpClosed = domain.Errorf(
	domain.CodeForbidden,
	"organizations are created by whoever runs this service; ask there, or have yourself invited to one",
)
