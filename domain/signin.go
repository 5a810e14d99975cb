package domain

import "time"

// SignInLink is the stored part of a link that signs a person in to the portal. The link itself
// carries a secret.
type SignInLink struct {
	// Email is the address that the link was sent to.
	Email string `json:"email"`
	// Next is the page to show after the sign-in, a path that begins with /portal/; empty for the
	// start page.
	Next string `json:"next,omitempty"`
	// AtOnce is whether opening the link signs in without a button, for links that are not mailed.
	AtOnce    bool      `json:"at_once,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when the link stops working.
	ExpiresAt time.Time `json:"expires_at"`
}

// PortalSession is a person's session in the portal, in one browser. The person's memberships are
// looked up at each request.
type PortalSession struct {
	AccountID string `json:"account_id"`
	// Email is the account's.
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when the session ends.
	ExpiresAt time.Time `json:"expires_at"`
	// ConfirmBy is when the identity provider must confirm the session; zero for a session that a
	// mailed link began.
	ConfirmBy time.Time `json:"confirm_by,omitzero"`
	// FormToken is in every form of the session's pages, against cross-site requests.
	FormToken string `json:"form_token"`
}

// ErrSignInLink returns the error for a sign-in link that is used, expired or unknown.
func ErrSignInLink() *Error { return Errorf(CodeNotFound, "the link has been used or has expired") }

// ErrNotSignedIn returns the error for a missing or expired session.
func ErrNotSignedIn() *Error { return Errorf(CodeUnauthenticated, "sign in first") }

// SignInAttempt is an attempt to sign in at the identity provider. The browser keeps it.
type SignInAttempt struct {
	// State comes back with the browser, Nonce in the ID token, and Verifier proves to the provider
	// that the attempt is the one that it has answered.
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// Next is the page to show after the sign-in, as in SignInLink.
	Next string `json:"next,omitempty"`
}
