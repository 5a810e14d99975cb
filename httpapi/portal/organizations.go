package portal

import (
	"errors"
	"net/http"

	"hubcloud/domain"
)

// organizationsView is the page with the organizations of the person.
type organizationsView struct {
	Shell
	Memberships []domain.MemberAccess
	// OpenSignUp says that one can be created here.
	OpenSignUp bool
}

// organizations lists where the person is a member.
func (v *visit) organizations() error {
	v.render(http.StatusOK, "organizations.html", organizationsView{
		v.shell("Your organizations", ""), v.p.People.Memberships(v.session.Email), v.p.OpenSignUp,
	})
	return nil
}

// newOrganizationView is the form that begins an organization.
type newOrganizationView struct {
	Shell
	Name, Problem string
}

// newOrganization shows the form.
func (v *visit) newOrganization() error {
	if !v.p.OpenSignUp {
		return errNoSignUp
	}
	v.render(
		http.StatusOK, "organization-new.html",
		newOrganizationView{Shell: v.shell("New organization", "")},
	)
	return nil
}

// createOrganization begins an organization whose owner the person is.
func (v *visit) createOrganization() error {
	if !v.p.OpenSignUp {
		return errNoSignUp
	}
	name := v.field("name")
	origin := v.origin() // of a member who gets an id only now
	var org string
	err := v.once(func() (err error) {
		org, _, err = v.p.Directory.CreateOrg(v.r.Context(), origin, name, v.session.Email)
		return err
	})
	if errors.Is(err, errSentBefore) {
		v.redirect("organizations", "")
		return nil
	}
	if problem, ok := refusalText(err); ok {
		v.render(
			refusedStatus(err), "organization-new.html",
			newOrganizationView{v.shell("New organization", ""), name, problem},
		)
		return nil
	}
	if err != nil {
		return err
	}
	v.redirect(org+"/sites", "organization-created")
	return nil
}

var errNoSignUp = domain.Errorf(
	domain.CodeForbidden,
	"organizations are created by whoever runs this service; ask there, or have yourself invited to one",
)
