package domain

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"
)

// Limits of invitations.
const (
	// DefaultPendingInvitations is how many invitations of one organization may be pending, if
	// nothing else is said.
	DefaultPendingInvitations = 1000
	// DefaultInvitationsPerHour is how many invitations one organization may make within an hour,
	// if nothing else is said, and MaxInvitationsPerHour the most that can be said: an
	// organization's state remembers as many.
	DefaultInvitationsPerHour = 100
	MaxInvitationsPerHour     = 1000
	// MaxExpiredInvitations is how many expired ones are remembered, to tell who comes late that it
	// was too late.
	MaxExpiredInvitations = 1000
	// DefaultInvitationTTL is how long an invitation's link works.
	DefaultInvitationTTL = 7 * 24 * time.Hour
)

// ErrInvitationExpired is the refusal of an invitation that was not accepted in time: a not_found
// that errors.Is tells from others.
var ErrInvitationExpired error = Errorf(
	CodeNotFound, "the invitation has expired; ask for a new one",
)

// OrgInvitation is an invitation as the organization keeps it.
type OrgInvitation struct {
	ID string
	// Email as it was given, Address its NormalizeEmail.
	Email     string
	Address   string
	Role      Role
	CreatedAt time.Time
	ExpiresAt time.Time
	// TokenHash is the SHA-256 of the secret in the link.
	TokenHash [32]byte
}

// Acceptance is what came of an invitation's link.
type Acceptance struct {
	OrgID    string
	OrgName  string
	MemberID string
	// Email and Role are the member's.
	Email string
	Role  Role
	// Already says that the invitation was accepted before, and nothing was done now.
	Already bool
}

// InvitationMail is what a mail with an invitation's link is made of.
type InvitationMail struct {
	Invitation Invitation
	OrgID      string
	OrgName    string
	// Token is the secret in the link. It must not be logged.
	Token string
}

// Invite asks for an invitation. All of it is given clean.
type Invite struct {
	InvitationID string
	Email        string
	Role         Role
	TokenHash    [32]byte
	// TTL is how long the link works.
	TTL time.Duration
	// MaxPending is how many invitations of the organization may be pending, and MaxPerHour how
	// many it may make within an hour; 0 is the default.
	MaxPending, MaxPerHour int
}

func (i OrgInvitation) expired(at time.Time) bool { return !at.Before(i.ExpiresAt) }

// View gives the invitation as readers see it at a time.
func (i OrgInvitation) View(at time.Time) Invitation {
	view := Invitation{
		ID:        i.ID,
		Email:     i.Email,
		Role:      i.Role,
		Status:    InvitationPending,
		CreatedAt: i.CreatedAt,
		ExpiresAt: i.ExpiresAt,
	}
	if i.expired(at) {
		view.Status = InvitationExpired
	}
	return view
}

// Invitation gives an invitation that has been neither accepted nor revoked nor replaced.
func (s OrgState) Invitation(id string) (OrgInvitation, bool) {
	i := slices.IndexFunc(s.Invitations, func(i OrgInvitation) bool { return i.ID == id })
	if i < 0 {
		return OrgInvitation{}, false
	}
	return s.Invitations[i], true
}

// DecideInvite invites a person. A pending invitation of the same address is replaced: its link
// stops working. The role owner, and whoever may not invite, is forbidden; a member's address and a
// role that there is not are an invalid_request; one invitation too many is rate_limited; an
// organization that does not exist is not_found.
func DecideInvite(s OrgState, o Origin, c Invite) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if err := CheckInvitedRole(c.Role); err != nil {
		return nil, err
	}
	if err := s.mayManage(o.Actor, c.Role); err != nil {
		return nil, err
	}
	address := NormalizeEmail(c.Email)
	if _, ok := s.member(func(m OrgMember) bool { return m.Address == address }); ok {
		return nil, Errorf(CodeInvalidRequest, "email: is the address of a member already")
	}
	invited := MemberInvited{
		OrgID: s.ID, InvitationID: c.InvitationID, Email: c.Email, Role: c.Role,
		TokenHash: c.TokenHash[:],
		ExpiresAt: wholeMicroseconds(o.At.Add(c.TTL)),
	}
	var events []Event
	pending := 0
	for _, i := range s.Invitations {
		switch {
		case i.expired(o.At):
		case i.Address == address:
			// Facts from before domains were compared in their IDNA form can leave several of one
			// address.
			if invited.Replaces != "" {
				events = append(
					events,
					Record(o, MemberInvitationRevoked{OrgID: s.ID, InvitationID: invited.Replaces}),
				)
			}
			invited.Replaces = i.ID
		default:
			pending++
		}
	}
	if most := cmp.Or(c.MaxPending, DefaultPendingInvitations); pending >= most {
		return nil, rateLimited(
			time.Minute,
			"the organization has %d pending invitations; at most %d are allowed. Revoke some first",
			pending, most,
		)
	}
	if most := cmp.Or(c.MaxPerHour, DefaultInvitationsPerHour); o.Actor.Kind != ActorOperator {
		if wait := s.untilInvitation(o.At, most); wait > 0 {
			return nil, rateLimited(
				wait,
				"the organization has made %d invitations within an hour; no more are allowed",
				most,
			)
		}
	}
	return append(events, Record(o, invited)), nil
}

// untilInvitation returns how long it is until the organization may invite again, if it may do so a
// number of times within an hour.
func (s OrgState) untilInvitation(at time.Time, most int) time.Duration {
	if len(s.InvitedAt) < most {
		return 0
	}
	return s.InvitedAt[len(s.InvitedAt)-most].Add(time.Hour).Sub(at)
}

// rateLimited returns a rate_limited Error that says when to try again.
func rateLimited(after time.Duration, format string, args ...any) *Error {
	err := Errorf(CodeRateLimited, format, args...)
	err.RetryAfter = after
	return err
}

// CheckInvitedRole refuses what nobody can be invited as: the role owner is forbidden, one that
// there is not an invalid_request.
func CheckInvitedRole(role Role) error {
	if role == RoleOwner {
		return Errorf(
			CodeForbidden, "role: must be %s or %s; an owner cannot be invited", RoleAdmin,
			RoleMember,
		)
	}
	_, err := ParseRole("role", string(role))
	return err
}

// DecideRevokeInvitation takes a pending invitation back. One that is not pending (any more) is
// not_found; whoever may not is forbidden.
func DecideRevokeInvitation(s OrgState, o Origin, invitationID string) ([]Event, error) {
	if err := s.mayManage(o.Actor, RoleMember); err != nil {
		return nil, err
	}
	if i, ok := s.Invitation(invitationID); !ok || i.expired(o.At) {
		return nil, ErrInvitationNotFound()
	}
	return []Event{Record(o, MemberInvitationRevoked{OrgID: s.ID, InvitationID: invitationID})}, nil
}

// DecideAcceptInvitation makes whoever has an invitation's link a member, under the id given. One
// that was accepted before is no event, for as long as that member is there. One that was revoked
// or replaced, whose member was removed, or that there never was is not_found, as a wrong secret
// is; one that was not accepted in time is ErrInvitationExpired.
func DecideAcceptInvitation(
	s OrgState, o Origin, token InvitationToken, memberID string,
) ([]Event, Acceptance, error) {
	if m, ok := s.member(func(m OrgMember) bool { return m.Accepted.matches(token) }); ok {
		return nil, s.acceptance(m, true), nil
	}
	i, ok := s.Invitation(token.InvitationID)
	switch {
	case !ok || !i.matches(token):
		return nil, Acceptance{}, ErrInvitationNotFound()
	case i.expired(o.At):
		return nil, Acceptance{}, ErrInvitationExpired
	}
	m := OrgMember{ID: memberID, Email: i.Email, Role: i.Role}
	return []Event{
		Record(o, MemberAdded{OrgID: s.ID, MemberID: m.ID, Email: m.Email, Role: m.Role}),
		Record(o, MemberInvitationAccepted{OrgID: s.ID, InvitationID: i.ID, MemberID: m.ID}),
	}, s.acceptance(m, false), nil
}

func (s OrgState) acceptance(m OrgMember, already bool) Acceptance {
	return Acceptance{
		OrgID:    s.ID,
		OrgName:  s.Name,
		MemberID: m.ID,
		Email:    m.Email,
		Role:     m.Role,
		Already:  already,
	}
}

// matches says whether the token is the invitation's.
func (i OrgInvitation) matches(token InvitationToken) bool {
	hash := token.SecretHash()
	return i.ID != "" && i.ID == token.InvitationID &&
		subtle.ConstantTimeCompare(i.TokenHash[:], hash[:]) == 1
}

// invite folds an invitation: it takes the place of any other of its address, and pushes out what
// expired longest ago.
func (s OrgState) invite(e Event, f MemberInvited) (OrgState, error) {
	if len(f.TokenHash) != 32 {
		return s, fmt.Errorf(
			"event %s (%s): a token's hash of %d bytes", e.ID, e.Type, len(f.TokenHash),
		)
	}
	address, expired := NormalizeEmail(f.Email), 0
	for _, i := range s.Invitations {
		if i.expired(e.At) {
			expired++
		}
	}
	kept := slices.DeleteFunc(slices.Clone(s.Invitations), func(i OrgInvitation) bool {
		if i.expired(e.At) && expired > MaxExpiredInvitations {
			expired--
			return true
		}
		// What an earlier version took for the same address was replaced then, and stays so.
		return i.Address == address || i.ID == f.Replaces
	})
	s.InvitedAt = append(
		slices.Clone(s.InvitedAt[max(0, len(s.InvitedAt)+1-MaxInvitationsPerHour):]), e.At,
	)
	s.Invitations = append(kept, OrgInvitation{
		ID: f.InvitationID, Email: f.Email, Address: address, Role: f.Role,
		CreatedAt: e.At, ExpiresAt: f.ExpiresAt, TokenHash: [32]byte(f.TokenHash),
	})
	return s, nil
}

// acceptInvitation folds an acceptance: the member keeps the invitation.
func (s *OrgState) acceptInvitation(f MemberInvitationAccepted) {
	accepted, _ := s.Invitation(f.InvitationID)
	s.Invitations = withoutInvitation(s.Invitations, f.InvitationID)
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		if s.Members[i].ID == f.MemberID {
			s.Members[i].Accepted = accepted
		}
	}
}

func withoutInvitation(all []OrgInvitation, id string) []OrgInvitation {
	return slices.DeleteFunc(slices.Clone(all), func(i OrgInvitation) bool { return i.ID == id })
}

// ErrInvitationNotFound is the refusal for an invitation that is not there (any more), and for a
// link that is none.
func ErrInvitationNotFound() *Error { return Errorf(CodeNotFound, "no such invitation") }
