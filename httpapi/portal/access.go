package portal

import "hubcloud/domain"

// viewOnly reports whether the member may only look. The directory decides on every request, so
// that a change applies at once.
func (req *request) viewOnly() (bool, error) {
	if req.member.Role != domain.RoleMember {
		return false, nil
	}
	org, err := req.Directory.Org(req.ctx, req.org)
	member, _ := org.Member(req.member.MemberID)
	return member.ViewOnly, err
}

// mayOnlyLook is viewOnly for what a page offers. Without an answer the page offers everything: the
// action itself is rejected then.
func (req *request) mayOnlyLook() bool {
	viewOnly, err := req.viewOnly()
	return viewOnly && err == nil
}

// operator wraps an action of members who may do more than look.
func (p *Portal) operator(handle handler) routeHandler {
	return p.member(func(req *request) error {
		switch viewOnly, err := req.viewOnly(); {
		case err != nil:
			return err
		case viewOnly:
			return errViewOnly
		}
		return handle(req)
	})
}

var errViewOnly = domain.Errorf(
	domain.CodeForbidden, "you may only look here; ask an owner or admin to change your role",
)
