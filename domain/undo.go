package domain

import (
	"slices"
	"time"
)

// UndoTime is how long after a change the member who made it may undo it. Pages offer it for ten
// seconds; who reads slowly, or has no scripts, gets more.
const UndoTime = 2 * time.Minute

// Undone is what became of a change that was to be undone.
type Undone struct {
	// Restored counts the values that are as before, also those that were already.
	Restored int
	// Newer counts the values that were changed again meanwhile, which stay.
	Newer int
}

// Add adds what became of a part of the change.
func (u *Undone) Add(part Undone) { u.Restored, u.Newer = u.Restored+part.Restored, u.Newer+part.Newer }

// restores counts a value, and reports whether it must be set back: the request changed it, and it
// was not changed since.
func (u *Undone) restores(before, after, now string) bool {
	switch {
	case before == after:
		return false
	case now == before:
		u.Restored++
		return false
	case now != after:
		u.Newer++
		return false
	}
	u.Restored++
	return true
}

// changedState are the states of an aggregate around a request.
type changedState[S any] struct {
	before, after, now S
	facts              []Fact
}

// changedBy folds an aggregate's events, and returns its states around a request of the actor within
// UndoTime.
func changedBy[S any](
	history []Event, o Origin, request string, evolve func(S, Event) (S, error),
) (c changedState[S], err error) {
	for _, e := range history {
		before := c.now
		if c.now, err = evolve(c.now, e); err != nil {
			return c, err
		}
		if request == "" || e.RequestID != request || e.Actor != o.Actor || o.At.Sub(e.At) > UndoTime {
			continue
		}
		if len(c.facts) == 0 {
			c.before = before
		}
		fact, err := e.Fact()
		if err != nil {
			return c, err
		}
		c.after, c.facts = c.now, append(c.facts, fact)
	}
	if len(c.facts) == 0 {
		return c, ErrCannotUndo()
	}
	return c, nil
}

// ErrCannotUndo returns the not_found error for a change that is too old, another actor's or none.
func ErrCannotUndo() *Error {
	return Errorf(CodeNotFound, "this cannot be undone any more")
}

// DecideUndoSite sets back what a request of the actor changed at a site, from all events of the site.
// It returns ErrCannotUndo for a request that changed nothing there within UndoTime.
func DecideUndoSite(history []Event, o Origin, request string) (events []Event, u Undone, err error) {
	site, err := changedBy(history, o, request, EvolveSite)
	if err != nil || !site.before.Exists() {
		return nil, u, orCannotUndo(err)
	}
	if u.restores(site.before.Name, site.after.Name, site.now.Name) {
		events = append(events, Record(o, SiteRenamed{
			OrgID: site.now.OrgID, SiteID: site.now.ID, Name: site.before.Name,
		}))
	}
	return events, u, nil
}

// DecideUndoHub sets back the name and site of a hub of the organization and the names and rooms of
// its devices, as DecideUndoSite does.
func DecideUndoHub(
	history []Event, o Origin, org, request string,
) (events []Event, u Undone, err error) {
	hub, err := changedBy(history, o, request, EvolveHub)
	if err != nil || !hub.before.ownedBy(org) || !hub.now.ownedBy(org) {
		return nil, u, orCannotUndo(err)
	}
	if u.restores(hub.before.SiteID, hub.after.SiteID, hub.now.SiteID) {
		events = append(events, Record(o, HubMoved{
			HubID: hub.now.ID, OrgID: org, SiteID: hub.before.SiteID,
		}))
	}
	if u.restores(textOf(hub.before.Name), textOf(hub.after.Name), textOf(hub.now.Name)) {
		events = append(events, Record(o, HubRenamed{
			HubID: hub.now.ID, OrgID: org, Name: hub.before.Name,
		}))
	}
	for _, fact := range hub.facts {
		labeled, ok := fact.(DeviceLabeled)
		if !ok {
			continue
		}
		id := labeled.DeviceID
		before, after, now := hub.before.Labels[id], hub.after.Labels[id], hub.now.Labels[id]
		label := now
		if u.restores(textOf(before.Name), textOf(after.Name), textOf(now.Name)) {
			label.Name = before.Name
		}
		if u.restores(textOf(before.Room), textOf(after.Room), textOf(now.Room)) {
			label.Room = before.Room
		}
		if label != now {
			events = append(events, Record(o, DeviceLabeled{
				HubID: hub.now.ID, OrgID: org, DeviceID: id, Name: label.Name, Room: label.Room,
			}))
		}
	}
	return events, u, nil
}

// DecideUndoOrg sets back the name of an organization, the actor's own name and revoked invitations,
// as DecideUndoSite does. It returns forbidden for an actor that may not change them any more. An
// invitation stays revoked if it has expired, or if the person is invited again or a member.
func DecideUndoOrg(history []Event, o Origin, request string) (events []Event, u Undone, err error) {
	org, err := changedBy(history, o, request, EvolveOrg)
	if err != nil || !org.before.Exists() {
		return nil, u, orCannotUndo(err)
	}
	if u.restores(org.before.Name, org.after.Name, org.now.Name) {
		if events, err = DecideRenameOrg(org.now, o, org.before.Name); err != nil {
			return nil, u, err
		}
	}
	before, _ := org.before.Member(o.Actor.ID)
	after, _ := org.after.Member(o.Actor.ID)
	now, ok := org.now.Member(o.Actor.ID)
	if ok && u.restores(before.Name, after.Name, now.Name) {
		events = append(events, Record(o, MemberNamed{
			OrgID: org.now.ID, MemberID: now.ID, Name: before.Name,
		}))
	}
	for _, fact := range org.facts {
		revoked, ok := fact.(MemberInvitationRevoked)
		if !ok {
			continue
		}
		i, _ := org.before.Invitation(revoked.InvitationID)
		if err := org.now.mayManage(o.Actor, i.Role); err != nil {
			return nil, u, err
		}
		_, restored := org.now.Invitation(i.ID)
		_, joined := org.now.member(func(m OrgMember) bool { return m.Address == i.Address })
		again := slices.ContainsFunc(org.now.Invitations, func(other OrgInvitation) bool {
			return other.Address == i.Address
		})
		switch {
		case restored:
			u.Restored++
		case joined, again, i.expired(o.At):
			u.Newer++
		default:
			u.Restored++
			events = append(events, Record(o, MemberInvitationRestored{
				OrgID: org.now.ID, InvitationID: i.ID, Email: i.Email, Role: i.Role,
				TokenHash: i.TokenHash[:], CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt,
				ViewOnly: i.ViewOnly,
			}))
		}
	}
	return events, u, nil
}

// orCannotUndo returns the error, or else ErrCannotUndo.
func orCannotUndo(err error) error {
	if err != nil {
		return err
	}
	return ErrCannotUndo()
}
