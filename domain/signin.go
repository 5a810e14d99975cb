package domain

import "time"

// SignInLink is what a link that signs a person in to the portal stands for. The link itself
// carries a secret; this is what is kept.
type SignInLink struct {
	// Email is the address that the link was made for: whoever has the link has its mailbox.
	Email string `json:"email"`
	// Next is the page of the portal that the person wanted, a path that begins with /portal/;
	// empty for none in particular.
	Next string `json:"next,omitempty"`
	// AtOnce says that opening the link signs in, without a button in between: for links that no
	// mail carries.
	AtOnce    bool      `json:"at_once,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when it stops working.
	ExpiresAt time.Time `json:"expires_at"`
}

// PortalSession is a person who is signed in to the portal, in one browser. What organizations the
// person may see is looked up at each request and not kept here.
type PortalSession struct {
	AccountID string `json:"account_id"`
	// Email is the account's, as it was given first.
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when the person has to sign in again.
	ExpiresAt time.Time `json:"expires_at"`
	// FormToken stands in every form of the session's pages: only they know it.
	FormToken string `json:"form_token"`
}

// ErrSignInLink is the refusal of a link that signs nobody in (any more): used, expired, or none.
func ErrSignInLink() *Error { return Errorf(CodeNotFound, "the link has been used or has expired") }

// ErrNotSignedIn is the refusal of a session that there is not (any more).
func ErrNotSignedIn() *Error { return Errorf(CodeUnauthenticated, "sign in first") }
