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
	// DefaultPendingInvitations is how many invitations of one organization may be pending by
	// default.
	DefaultPendingInvitations = 1000
	// DefaultInvitationsPerHour is how many invitations one organization may send within an hour
	// by default. MaxInvitationsPerHour is the highest limit that can be configured, and how many
	// times an organization's state remembers.
	DefaultInvitationsPerHour = 100
	MaxInvitationsPerHour     = 1000
	// MaxExpiredInvitations is how many expired invitations are remembered, so that their links
	// are answered with ErrInvitationExpired.
	MaxExpiredInvitations = 1000
	// DefaultInvitationTTL is how long an invitation's link works.
	DefaultInvitationTTL = 7 * 24 * time.Hour
)

// ErrInvitationExpired is the not_found error for an invitation that was not accepted in time. It
// has its own message, so that errors.Is distinguishes it from ErrInvitationNotFound.
var ErrInvitationExpired error = Errorf(
	CodeNotFound, "the invitation has expired; ask for a new one",
)

// OrgInvitation is an invitation in an organization's state.
type OrgInvitation struct {
	ID string
	// Email is the address as entered, Address its NormalizeEmail.
	Email     string
	Address   string
	Role      Role
	CreatedAt time.Time
	ExpiresAt time.Time
	// TokenHash is the SHA-256 of the secret in the link.
	TokenHash [32]byte
	// ViewOnly is whether the person becomes a member who may only look.
	ViewOnly bool
}

// Acceptance is the result of accepting an invitation.
type Acceptance struct {
	OrgID    string
	OrgName  string
	MemberID string
	// Email and Access are the member's.
	Email  string
	Access Access
	// InvitedAt is when the person was invited, ExpiresAt when the invitation's link ends.
	InvitedAt, ExpiresAt time.Time
	// Already is whether the invitation had been accepted before, so that nothing was changed.
	Already bool
}

// InvitationMail is the content of a mail with an invitation's link.
type InvitationMail struct {
	Invitation Invitation
	Access     Access
	OrgID      string
	OrgName    string
	// InvitedBy is the address of the member who invites; "" for an API key or an operator.
	InvitedBy string
	// Token is the secret in the link. It must not be logged.
	Token string
}

// Invite is the command to invite a person. The caller has validated the fields.
type Invite struct {
	InvitationID string
	Email        string
	Access       Access
	TokenHash    [32]byte
	// TTL is how long the link works.
	TTL time.Duration
	// MaxPending is how many invitations of the organization may be pending, MaxPerHour how many it
	// may send within an hour; 0 means the default.
	MaxPending, MaxPerHour int
}

func (i OrgInvitation) expired(at time.Time) bool { return !at.Before(i.ExpiresAt) }

// View returns the invitation as readers see it at a time.
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

// Invitation returns an invitation that was not accepted, revoked or replaced.
func (s OrgState) Invitation(id string) (OrgInvitation, bool) {
	i := slices.IndexFunc(s.Invitations, func(i OrgInvitation) bool { return i.ID == id })
	if i < 0 {
		return OrgInvitation{}, false
	}
	return s.Invitations[i], true
}

// DecideInvite invites a person. It replaces a pending invitation of the same address, whose link
// then stops working. Errors: not_found for an unknown organization; forbidden for the role owner
// and for an actor that may not invite; invalid_request for a member's address and an unknown role;
// rate_limited for too many invitations.
func DecideInvite(s OrgState, o Origin, c Invite) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if err := CheckInvited(c.Access); err != nil {
		return nil, err
	}
	role, viewOnly := c.Access.Role()
	if err := s.mayManage(o.Actor, role); err != nil {
		return nil, err
	}
	address := NormalizeEmail(c.Email)
	if _, ok := s.member(func(m OrgMember) bool { return m.Address == address }); ok {
		return nil, Errorf(CodeInvalidRequest, "email: is already the address of a member")
	}
	invited := MemberInvited{
		OrgID: s.ID, InvitationID: c.InvitationID, Email: c.Email, Role: role,
		TokenHash: c.TokenHash[:], ViewOnly: viewOnly,
		ExpiresAt: wholeMicroseconds(o.At.Add(c.TTL)),
	}
	pending := 0
	for _, i := range s.Invitations {
		switch {
		case i.expired(o.At):
		case i.Address == address:
			invited.Replaces = i.ID
		default:
			pending++
		}
	}
	if limit := cmp.Or(c.MaxPending, DefaultPendingInvitations); pending >= limit {
		return nil, RateLimited(
			time.Minute,
			"the organization has %d pending invitations: at most %d are allowed; "+
				"revoke some first",
			pending, limit,
		)
	}
	if limit := cmp.Or(c.MaxPerHour, DefaultInvitationsPerHour); o.Actor.Kind != ActorOperator {
		if wait := s.untilInvitation(o.At, limit); wait > 0 {
			return nil, RateLimited(
				wait,
				"the organization has sent %d invitations within an hour: no more are allowed",
				limit,
			)
		}
	}
	return []Event{Record(o, invited)}, nil
}

// untilInvitation returns how long the organization must wait before its next invitation, with a
// limit of invitations within an hour; zero or less if it need not wait.
func (s OrgState) untilInvitation(at time.Time, limit int) time.Duration {
	if len(s.InvitedAt) < limit {
		return 0
	}
	return s.InvitedAt[len(s.InvitedAt)-limit].Add(time.Hour).Sub(at)
}

// CheckInvited returns nil for an access that a person can be invited with, forbidden for
// AccessOwner, and invalid_request for an unknown one.
func CheckInvited(access Access) error {
	if access == AccessOwner {
		return Errorf(
			CodeForbidden, "role: must be %s or %s; an owner cannot be invited", RoleAdmin,
			RoleMember,
		)
	}
	role, _ := access.Role()
	_, err := ParseRole("role", string(role))
	return err
}

// DecideRevokeInvitation revokes a pending invitation. It returns not_found for an invitation that
// is not pending, and forbidden for an actor that may not revoke invitations.
func DecideRevokeInvitation(s OrgState, o Origin, invitationID string) ([]Event, error) {
	if err := s.mayManage(o.Actor, RoleMember); err != nil {
		return nil, err
	}
	if i, ok := s.Invitation(invitationID); !ok || i.expired(o.At) {
		return nil, ErrInvitationNotFound()
	}
	return []Event{Record(o, MemberInvitationRevoked{OrgID: s.ID, InvitationID: invitationID})}, nil
}

// DecideAcceptInvitation adds the holder of an invitation's link as the member memberID. It returns
// no event if that invitation was accepted before and its member still exists. It returns not_found
// for a wrong secret and for an invitation that is unknown, revoked, replaced, or whose member was
// removed, and ErrInvitationExpired for an expired one.
func DecideAcceptInvitation(
	s OrgState, o Origin, token InvitationToken, memberID string,
) ([]Event, Acceptance, error) {
	if m, ok := s.member(func(m OrgMember) bool { return m.Accepted.matches(token) }); ok {
		return nil, s.acceptance(m, m.Accepted, true), nil
	}
	i, ok := s.Invitation(token.InvitationID)
	switch {
	case !ok || !i.matches(token):
		return nil, Acceptance{}, ErrInvitationNotFound()
	case i.expired(o.At):
		return nil, Acceptance{}, ErrInvitationExpired
	}
	m := OrgMember{ID: memberID, Email: i.Email, Role: i.Role, ViewOnly: i.ViewOnly}
	return []Event{
		Record(o, MemberAdded{
			OrgID: s.ID, MemberID: m.ID, Email: m.Email, Role: m.Role, ViewOnly: m.ViewOnly,
		}),
		Record(o, MemberInvitationAccepted{OrgID: s.ID, InvitationID: i.ID, MemberID: m.ID}),
	}, s.acceptance(m, i, false), nil
}

func (s OrgState) acceptance(m OrgMember, i OrgInvitation, already bool) Acceptance {
	return Acceptance{
		OrgID: s.ID, OrgName: s.Name, MemberID: m.ID, Email: m.Email, Access: m.Access(),
		InvitedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, Already: already,
	}
}

// matches reports, in constant time, whether the token is the invitation's.
func (i OrgInvitation) matches(token InvitationToken) bool {
	hash := token.SecretHash()
	return i.ID != "" && i.ID == token.InvitationID && subtle.ConstantTimeCompare(i.TokenHash[:], hash[:]) == 1
}

// withInvitation returns the state after an invitation. It replaces others of its address, and
// drops the oldest expired ones.
func (s OrgState) withInvitation(e Event, f MemberInvited) (OrgState, error) {
	if len(f.TokenHash) != 32 {
		return s, fmt.Errorf(
			"event %s (%s): token hash has %d bytes, must be 32", e.ID, e.Type, len(f.TokenHash),
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
		return i.Address == address
	})
	s.InvitedAt = append(
		slices.Clone(s.InvitedAt[max(0, len(s.InvitedAt)+1-MaxInvitationsPerHour):]), e.At,
	)
	s.Invitations = append(kept, OrgInvitation{
		ID: f.InvitationID, Email: f.Email, Address: address, Role: f.Role,
		CreatedAt: e.At, ExpiresAt: f.ExpiresAt, TokenHash: [32]byte(f.TokenHash),
		ViewOnly: f.ViewOnly,
	})
	return s, nil
}

// withAcceptance returns the state after an acceptance, which moves the invitation to the member.
func (s OrgState) withAcceptance(f MemberInvitationAccepted) OrgState {
	accepted, _ := s.Invitation(f.InvitationID)
	s.Invitations = withoutInvitation(s.Invitations, f.InvitationID)
	return s.withMember(f.MemberID, func(m *OrgMember) { m.Accepted = accepted })
}

func withoutInvitation(all []OrgInvitation, id string) []OrgInvitation {
	return slices.DeleteFunc(slices.Clone(all), func(i OrgInvitation) bool { return i.ID == id })
}

// ErrInvitationNotFound returns the not_found error for an invitation, also for a malformed link.
func ErrInvitationNotFound() *Error { return Errorf(CodeNotFound, "no such invitation") }
