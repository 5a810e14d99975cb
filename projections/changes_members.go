package projections

import (
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// memberChanges is what a batch does to members and invitations. Its statements run in the order
// new, changed, gone, so that they hold whether a row is made by this batch or was there.
type memberChanges struct {
	joined  []memberRow
	changed rows[string, memberRow]
	gone    rows[string, memberRow]
	invited []invitationRow
	settled rows[string, invitationRow]
}

type memberRow struct {
	org, id, email, role string
	joined               time.Time
	sequence             uint64
}

type invitationRow struct {
	org, id, email, role string
	created, expires     time.Time
	sequence             uint64
	status               domain.InvitationStatus
}

func (c *memberChanges) join(r directory.Recorded, f domain.MemberAdded) {
	c.joined = append(c.joined, memberRow{
		org: f.OrgID, id: f.MemberID, email: f.Email, role: string(f.Role), joined: r.Event.At,
		sequence: r.Seq,
	})
}

func (c *memberChanges) changeRole(f domain.MemberRoleChanged) error {
	if c.gone.of(f.MemberID) != nil {
		return fmt.Errorf("%w: member %s changes and was removed", errBadEvent, f.MemberID)
	}
	row := memberRow{org: f.OrgID, id: f.MemberID, role: string(f.Role)}
	if known := c.changed.of(f.MemberID); known != nil && known.org == f.OrgID {
		*known = row
		return nil
	}
	c.changed.put(f.MemberID, row)
	return nil
}

func (c *memberChanges) remove(f domain.MemberRemoved) error {
	if c.gone.of(f.MemberID) != nil {
		return fmt.Errorf("%w: member %s is removed twice", errBadEvent, f.MemberID)
	}
	c.gone.put(f.MemberID, memberRow{org: f.OrgID, id: f.MemberID})
	return nil
}

func (c *memberChanges) invite(r directory.Recorded, f domain.MemberInvited) error {
	c.invited = append(c.invited, invitationRow{
		org: f.OrgID, id: f.InvitationID, email: f.Email, role: string(f.Role),
		created: r.Event.At, expires: f.ExpiresAt, sequence: r.Seq,
	})
	if f.Replaces == "" {
		return nil
	}
	return c.settle(f.OrgID, f.Replaces, domain.InvitationRevoked)
}

// settle ends a pending invitation.
func (c *memberChanges) settle(org, id string, status domain.InvitationStatus) error {
	if c.settled.of(id) != nil {
		return fmt.Errorf("%w: invitation %s ends twice", errBadEvent, id)
	}
	c.settled.put(id, invitationRow{org: org, id: id, status: status})
	return nil
}

func (c *memberChanges) size() int {
	return 2*len(c.joined) + len(c.changed.list) + len(c.gone.list) + len(c.invited) + len(c.settled.list)
}

func (c *memberChanges) statements() []statement {
	return []statement{
		{what: "insert members", sql: insertMembers, rows: len(c.joined), args: []any{
			column(c.joined, func(m memberRow) string { return m.org }),
			column(c.joined, func(m memberRow) string { return m.id }),
			column(c.joined, func(m memberRow) string { return m.email }),
			column(c.joined, func(m memberRow) string { return m.role }),
			column(c.joined, func(m memberRow) time.Time { return m.joined }),
			column(c.joined, func(m memberRow) int64 { return int64(m.sequence) }),
		}},
		{what: "insert people", sql: insertPeople, rows: len(c.joined), args: []any{
			column(c.joined, func(m memberRow) string { return m.org }),
			column(c.joined, func(m memberRow) string { return m.id }),
			column(c.joined, func(m memberRow) string { return m.email }),
		}},
		{what: "change members", sql: changeMembers, rows: len(c.changed.list), args: []any{
			column(c.changed.list, func(m memberRow) string { return m.org }),
			column(c.changed.list, func(m memberRow) string { return m.id }),
			column(c.changed.list, func(m memberRow) string { return m.role }),
		}},
		{what: "delete members", sql: deleteMembers, rows: len(c.gone.list), args: []any{
			column(c.gone.list, func(m memberRow) string { return m.org }),
			column(c.gone.list, func(m memberRow) string { return m.id }),
		}},
		{what: "insert invitations", sql: insertInvitations, rows: len(c.invited), args: []any{
			column(c.invited, func(i invitationRow) string { return i.org }),
			column(c.invited, func(i invitationRow) string { return i.id }),
			column(c.invited, func(i invitationRow) string { return i.email }),
			column(c.invited, func(i invitationRow) string { return i.role }),
			column(c.invited, func(i invitationRow) time.Time { return i.created }),
			column(c.invited, func(i invitationRow) time.Time { return i.expires }),
			column(c.invited, func(i invitationRow) int64 { return int64(i.sequence) }),
		}},
		{what: "settle invitations", sql: settleInvitations, rows: len(c.settled.list), args: []any{
			column(c.settled.list, func(i invitationRow) string { return i.org }),
			column(c.settled.list, func(i invitationRow) string { return i.id }),
			column(c.settled.list, func(i invitationRow) string { return string(i.status) }),
		}},
	}
}
