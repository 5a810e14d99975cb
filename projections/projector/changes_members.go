package projector

import (
	_ "embed"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

var (
	//go:embed sql/change_members.sql
	changeMembers string
	//go:embed sql/delete_members.sql
	deleteMembers string
	//go:embed sql/end_invitations.sql
	endInvitations string
)

// memberChanges are the changes of schema.Members, schema.People and schema.Invitations. Their
// statements insert, then change, then delete: so they work for rows of this batch and for rows
// that exist.
type memberChanges struct {
	joined  []schema.Member
	changed rows[string, memberRole]
	removed rows[string, removedMember]
	invited []schema.Invitation
	ended   rows[string, endedInvitation]
}

type memberRole struct{ orgID, id, role string }

type removedMember struct{ orgID, id string }

type endedInvitation struct {
	orgID, id string
	status    domain.InvitationStatus
}

func (c *memberChanges) add(r directory.Recorded) error {
	switch f := r.Fact.(type) {
	case domain.MemberAdded:
		c.joined = append(c.joined, schema.Member{
			OrgID: f.OrgID, ID: f.MemberID, Email: f.Email, Role: string(f.Role),
			Joined: r.Event.At, Sequence: r.Seq,
		})
	case domain.MemberRoleChanged:
		return c.changeRole(f)
	case domain.MemberRemoved:
		return c.remove(f)
	case domain.MemberInvited:
		return c.invite(r, f)
	case domain.MemberInvitationRevoked:
		return c.end(f.OrgID, f.InvitationID, domain.InvitationRevoked)
	case domain.MemberInvitationRestored:
		c.restore(f)
	case domain.MemberInvitationAccepted:
		return c.end(f.OrgID, f.InvitationID, domain.InvitationAccepted)
	}
	return nil
}

func (c *memberChanges) changeRole(f domain.MemberRoleChanged) error {
	if c.removed.has(f.MemberID) {
		return fmt.Errorf("%w: member %s changes and was removed", errBadEvent, f.MemberID)
	}
	row := memberRole{orgID: f.OrgID, id: f.MemberID, role: string(f.Role)}
	if known := c.changed.get(f.MemberID); known != nil && known.orgID == f.OrgID {
		*known = row
		return nil
	}
	c.changed.put(f.MemberID, row)
	return nil
}

func (c *memberChanges) remove(f domain.MemberRemoved) error {
	if c.removed.has(f.MemberID) {
		return fmt.Errorf("%w: member %s is removed twice", errBadEvent, f.MemberID)
	}
	c.removed.put(f.MemberID, removedMember{orgID: f.OrgID, id: f.MemberID})
	return nil
}

func (c *memberChanges) invite(r directory.Recorded, f domain.MemberInvited) error {
	c.invited = append(c.invited, schema.Invitation{
		OrgID: f.OrgID, ID: f.InvitationID, Email: f.Email, Role: string(f.Role),
		Created: r.Event.At, Expires: f.ExpiresAt, Sequence: r.Seq,
	})
	if f.Replaces == "" {
		return nil
	}
	return c.end(f.OrgID, f.Replaces, domain.InvitationRevoked)
}

// end sets the last status of an invitation.
func (c *memberChanges) end(org, id string, status domain.InvitationStatus) error {
	if known := c.ended.get(id); known != nil && known.status == domain.InvitationPending {
		known.status = status // restored before
		return nil
	} else if known != nil {
		return fmt.Errorf("%w: invitation %s ends twice", errBadEvent, id)
	}
	c.ended.put(id, endedInvitation{orgID: org, id: id, status: status})
	return nil
}

// restore makes a revoked invitation pending again.
func (c *memberChanges) restore(f domain.MemberInvitationRestored) {
	c.ended.remove(f.InvitationID)
	c.ended.put(f.InvitationID, endedInvitation{
		orgID: f.OrgID, id: f.InvitationID, status: domain.InvitationPending,
	})
}

// size counts a new member twice: it is a row of two tables.
func (c *memberChanges) size() int {
	return 2*len(c.joined) + len(c.changed.list) + len(c.removed.list) + len(c.invited) +
		len(c.ended.list)
}

func (c *memberChanges) addTo(all *statements) {
	all.add(schema.Members.Insert(c.joined))
	all.add(schema.People.Insert(c.joined))
	all.add(change(
		"change members", changeMembers, c.changed.list,
		column(func(m memberRole) string { return m.orgID }),
		column(func(m memberRole) string { return m.id }),
		column(func(m memberRole) string { return m.role }),
	))
	all.add(change(
		"delete members", deleteMembers, c.removed.list,
		column(func(m removedMember) string { return m.orgID }),
		column(func(m removedMember) string { return m.id }),
	))
	all.add(schema.Invitations.Insert(c.invited))
	all.add(change(
		"end invitations", endInvitations, c.ended.list,
		column(func(i endedInvitation) string { return i.orgID }),
		column(func(i endedInvitation) string { return i.id }),
		column(func(i endedInvitation) string { return string(i.status) }),
	))
}
