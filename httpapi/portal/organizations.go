package portal

import (
	"errors"
	"net/http"

	"hubcloud/domain"
)

// organizationsView is the list of the person's organizations.
type organizationsView struct {
	Layout
	Rows []membershipRow
	// OpenSignUp reports whether the person may create an organization.
	OpenSignUp bool
}

// membershipRow is a membership with what the person may do.
type membershipRow struct {
	domain.MemberAccess
	Access domain.Access
}

// organizations lists the organizations that the person is a member of.
func (req *request) organizations() error {
	view := organizationsView{
		Layout: req.layout("Your organizations", ""), OpenSignUp: req.OpenSignUp,
	}
	for _, m := range view.Memberships {
		org, err := req.Directory.Org(req.ctx, m.OrgID)
		if err != nil {
			return err
		}
		known, _ := org.Member(m.MemberID)
		view.Rows = append(view.Rows, membershipRow{m, domain.AccessOf(m.Role, known.ViewOnly)})
	}
	req.render(http.StatusOK, "organizations.html", view)
	return nil
}

// newOrganizationView is the form that creates an organization.
type newOrganizationView struct {
	Layout
	Name, Problem string
}

func (req *request) newOrganization() error {
	if !req.OpenSignUp {
		return errSignUpClosed
	}
	req.render(
		http.StatusOK, "organization-new.html",
		newOrganizationView{Layout: req.layout("New organization", "")},
	)
	return nil
}

// createOrganization creates an organization whose owner is the person who is signed in.
func (req *request) createOrganization() error {
	if !req.OpenSignUp {
		return errSignUpClosed
	}
	name := req.formValue("name")
	origin := req.origin() // without a member id: CreateOrg sets it
	var org string
	err := req.submitOnce(func() (err error) {
		org, _, err = req.Directory.CreateOrg(req.ctx, origin, name, req.session.Email)
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
	domain.CodeForbidden, "only the operator of this service can create organizations; ask the "+
		"operator, or ask to be invited to one",
)
