package access

import (
	"cmp"
	"slices"

	"hubcloud/domain"
)

// members has the members of all organizations. Its methods are called under the lock of the Index.
type members struct {
	// orgNames has the name of each organization, by id.
	orgNames map[string]string
	byID     map[string]memberAccess
	// byAddress has the ids of an address's memberships, by domain.NormalizeEmail of the address.
	byAddress map[string][]string
	// byMailbox is the same by domain.MailboxOf of the address.
	byMailbox map[string][]string
}

// memberAccess is a member, and the channel behind its Ended.
type memberAccess struct {
	domain.MemberAccess
	end chan struct{}
}

func newMembers() members {
	return members{
		orgNames:  map[string]string{},
		byID:      map[string]memberAccess{},
		byAddress: map[string][]string{},
		byMailbox: map[string][]string{},
	}
}

func (m *members) apply(fact domain.Fact) {
	switch f := fact.(type) {
	case domain.OrgCreated:
		m.orgNames[f.OrgID] = f.Name
	case domain.OrgRenamed:
		m.renameOrg(f.OrgID, f.Name)
	case domain.MemberAdded:
		m.add(f.OrgID, f.MemberID, f.Email, f.Role)
	case domain.MemberRoleChanged:
		if member, ok := m.byID[f.MemberID]; ok {
			member.Role = f.Role
			m.byID[f.MemberID] = member
		}
	case domain.MemberRemoved:
		m.remove(f.MemberID)
	}
}

func (m *members) add(org, id, email string, role domain.Role) {
	end := make(chan struct{})
	m.byID[id] = memberAccess{end: end, MemberAccess: domain.MemberAccess{
		OrgID: org, OrgName: m.orgNames[org], MemberID: id, Email: email, Role: role, Ended: end,
	}}
	address := domain.NormalizeEmail(email)
	m.byAddress[address] = append(m.byAddress[address], id)
	mailbox := domain.MailboxOf(email)
	m.byMailbox[mailbox] = append(m.byMailbox[mailbox], id)
}

func (m *members) renameOrg(org, name string) {
	m.orgNames[org] = name
	for id, member := range m.byID {
		if member.OrgID == org {
			member.OrgName = name
			m.byID[id] = member
		}
	}
}

func (m *members) remove(id string) {
	member, ok := m.byID[id]
	if !ok {
		return
	}
	delete(m.byID, id)
	without(m.byAddress, domain.NormalizeEmail(member.Email), id)
	without(m.byMailbox, domain.MailboxOf(member.Email), id)
	close(member.end)
}

// without removes an id of a key, in a copy of its ids.
func without(ids map[string][]string, key, id string) {
	left := slices.DeleteFunc(
		slices.Clone(ids[key]), func(other string) bool { return other == id },
	)
	if len(left) == 0 {
		delete(ids, key)
	} else {
		ids[key] = left
	}
}

// endAll ends the access of every member.
func (m *members) endAll() {
	for _, member := range m.byID {
		close(member.end)
	}
}

// Memberships returns the memberships of an address, ordered by the organization's name.
func (a *Index) Memberships(email string) []domain.MemberAccess {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var all []domain.MemberAccess
	for _, id := range a.members.byAddress[domain.NormalizeEmail(email)] {
		all = append(all, a.members.byID[id].MemberAccess)
	}
	slices.SortFunc(all, func(a, b domain.MemberAccess) int {
		return cmp.Or(cmp.Compare(a.OrgName, b.OrgName), cmp.Compare(a.OrgID, b.OrgID))
	})
	return all
}

// OwnedBy returns how many organizations the addresses of a mailbox are owners of: `ann+1@` and
// `ann+2@` are one person.
func (a *Index) OwnedBy(email string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	n := 0
	for _, id := range a.members.byMailbox[domain.MailboxOf(email)] {
		if a.members.byID[id].Role == domain.RoleOwner {
			n++
		}
	}
	return n
}

// Membership returns the membership of an address in an organization. Its Ended is closed when the
// membership ends.
func (a *Index) Membership(org, email string) (domain.MemberAccess, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, id := range a.members.byAddress[domain.NormalizeEmail(email)] {
		if m := a.members.byID[id]; m.OrgID == org {
			return m.MemberAccess, true
		}
	}
	return domain.MemberAccess{}, false
}
