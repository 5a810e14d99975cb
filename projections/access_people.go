package projections

import (
	"cmp"
	"slices"

	"hubcloud/domain"
)

// people is who is a member of which organization. Its methods are called under Access's lock.
type people struct {
	orgs      map[string]string // the name of each organization
	members   map[string]memberAccess
	byAddress map[string][]string // the ids of an address's memberships, by its NormalizeEmail
}

// memberAccess is a member and the end of what closes its Ended.
type memberAccess struct {
	domain.MemberAccess
	end chan struct{}
}

func newPeople() people {
	return people{
		orgs:      map[string]string{},
		members:   map[string]memberAccess{},
		byAddress: map[string][]string{},
	}
}

// apply takes one fact of the directory.
func (p *people) apply(fact domain.Fact) {
	switch f := fact.(type) {
	case domain.OrgCreated:
		p.orgs[f.OrgID] = f.Name
	case domain.MemberAdded:
		p.join(f.OrgID, f.MemberID, f.Email, f.Role)
	case domain.MemberRoleChanged:
		if m, ok := p.members[f.MemberID]; ok {
			m.Role = f.Role
			p.members[f.MemberID] = m
		}
	case domain.MemberRemoved:
		p.remove(f.MemberID)
	}
}

func (p *people) join(org, id, email string, role domain.Role) {
	end := make(chan struct{})
	p.members[id] = memberAccess{end: end, MemberAccess: domain.MemberAccess{
		OrgID: org, OrgName: p.orgs[org], MemberID: id, Email: email, Role: role, Ended: end,
	}}
	address := domain.NormalizeEmail(email)
	p.byAddress[address] = append(p.byAddress[address], id)
}

func (p *people) remove(id string) {
	m, ok := p.members[id]
	if !ok {
		return
	}
	delete(p.members, id)
	address := domain.NormalizeEmail(m.Email)
	left := slices.DeleteFunc(
		slices.Clone(p.byAddress[address]), func(other string) bool { return other == id },
	)
	if len(left) == 0 {
		delete(p.byAddress, address)
	} else {
		p.byAddress[address] = left
	}
	close(m.end)
}

// end ends what was opened with any membership.
func (p *people) end() {
	for _, m := range p.members {
		close(m.end)
	}
}

// Memberships gives the organizations that an address is a member of, by their names.
func (a *Access) Memberships(email string) []domain.MemberAccess {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var all []domain.MemberAccess
	for _, id := range a.people.byAddress[domain.NormalizeEmail(email)] {
		all = append(all, a.people.members[id].MemberAccess)
	}
	slices.SortFunc(all, func(a, b domain.MemberAccess) int {
		return cmp.Or(cmp.Compare(a.OrgName, b.OrgName), cmp.Compare(a.OrgID, b.OrgID))
	})
	return all
}

// OwnedBy returns how many organizations an address is an owner of.
func (a *Access) OwnedBy(email string) int {
	n := 0
	for _, m := range a.Memberships(email) {
		if m.Role == domain.RoleOwner {
			n++
		}
	}
	return n
}

// Membership gives what an address is in an organization. Its Ended is closed when the membership
// ends.
func (a *Access) Membership(org, email string) (domain.MemberAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, id := range a.people.byAddress[domain.NormalizeEmail(email)] {
		if m := a.people.members[id]; m.OrgID == org {
			return m.MemberAccess, true
		}
	}
	return domain.MemberAccess{}, false
}
