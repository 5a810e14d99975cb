package client

import (
	"context"
	"iter"
	"time"
)

// Role is what a member may do.
type Role string

// The roles. An API key cannot grant or withdraw RoleOwner.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Member is a person who belongs to the organization.
type Member struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Role  Role   `json:"role"`
	// Access is the role, or "viewer" for a member who may only look.
	Access   string    `json:"access"`
	JoinedAt time.Time `json:"joined_at"`
}

// Invitation is an invitation to join the organization.
type Invitation struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Role  Role   `json:"role"`
	// Access is the role, or "viewer" for a member who may only look.
	Access string `json:"access"`
	// Status is pending, accepted, revoked or expired.
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when the link in the mail stops working.
	ExpiresAt time.Time `json:"expires_at"`
}

// Members lists the organization's members, owners first. Scope members:read.
func (c *Client) Members(ctx context.Context) iter.Seq2[Member, error] {
	return all(func(after string) (Page[Member], error) {
		return c.MembersPage(ctx, PageQuery{StartingAfter: after})
	}, func(m Member) string { return m.ID })
}

// MembersPage reads one page of the list of members. Scope members:read.
func (c *Client) MembersPage(ctx context.Context, query PageQuery) (Page[Member], error) {
	return page[Member](ctx, c, route("members"), query.values())
}

// Member returns a member. Scope members:read. Returns ErrNotFound.
func (c *Client) Member(ctx context.Context, memberID string) (Member, error) {
	return get[Member](ctx, c, route("members", memberID))
}

// ChangeRole makes a member an admin or a plain member. Scope members:write. Returns ErrNotFound,
// and ErrForbidden for an owner.
func (c *Client) ChangeRole(ctx context.Context, memberID string, role Role) (Member, error) {
	return change[Member](ctx, c, route("members", memberID), map[string]Role{"role": role})
}

// RemoveMember removes a member from the organization. Scope members:write. Returns ErrNotFound,
// and ErrForbidden for an owner.
func (c *Client) RemoveMember(ctx context.Context, memberID string) error {
	return c.remove(ctx, route("members", memberID))
}

// Invitations lists the pending invitations, newest first. Scope members:read.
func (c *Client) Invitations(ctx context.Context) iter.Seq2[Invitation, error] {
	return all(func(after string) (Page[Invitation], error) {
		return c.InvitationsPage(ctx, PageQuery{StartingAfter: after})
	}, func(i Invitation) string { return i.ID })
}

// InvitationsPage reads one page of the list of pending invitations. Scope members:read.
func (c *Client) InvitationsPage(ctx context.Context, query PageQuery) (Page[Invitation], error) {
	return page[Invitation](ctx, c, route("invitations"), query.values())
}

// Invite mails a person a link, valid for seven days, that adds the person to the organization.
// role is RoleAdmin or RoleMember; "" is RoleMember. Scope members:write. A second invitation to an
// address replaces the first and is mailed again. Invite sends an idempotency key, so that a retry
// is not a second invitation.
func (c *Client) Invite(ctx context.Context, email string, role Role) (Invitation, error) {
	body := struct {
		Email string `json:"email"`
		Role  Role   `json:"role,omitempty"`
	}{email, role}
	return create[Invitation](ctx, c, route("invitations"), body)
}

// RevokeInvitation makes the link of a pending invitation invalid. Scope members:write. Returns
// ErrNotFound.
func (c *Client) RevokeInvitation(ctx context.Context, invitationID string) error {
	return c.remove(ctx, route("invitations", invitationID))
}
