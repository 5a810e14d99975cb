package text

// frame are the texts of all pages, of signing in and of organizations, by name.
var frame = map[string]string{
	"account":            "Account",
	"already-text":       "This invitation to the organization was already accepted.",
	"ask-to-invite":      "Ask an owner or admin to invite {address}.",
	"back-to-the-hub":    "Back to the hub",
	"check-email":        "Check your email",
	"continue":           "Continue",
	"create":             "Create",
	"create-or-ask":      "Create one, or ask an owner or admin to invite {address}.",
	"email-address":      "Email address",
	"invitation-expired": "You have not joined the organization.",
	"invitation-expired-ask": "Ask the person who invited you for a new " +
		"invitation. It arrives by mail with a new link.",
	"invitation-failed": "Your invitation is still valid. Wait a minute, then open the link again.",
	"invitation-unknown": "It may have been withdrawn or replaced by a newer " +
		"invitation, or part of the link is missing.",
	"invitation-unknown-ask": "Look for a newer mail and open its link, or " +
		"copy the whole link again. If neither helps, ask the person who invited you for a " +
		"new invitation.",
	"joined-org":      "You have joined {organization}",
	"joined-text":     "You are now a member of the organization.",
	"link-again":      "Send me a new link",
	"link-maybe-sent": "If {address} has an account here, a link to sign in is on its way.",
	"link-once":       "It works once, for 15 minutes.",
	"link-over":       "This link no longer works",
	"link-over-text": "A sign-in link works once, for 15 minutes. This link " +
		"was used, has expired or is incomplete.",
	"link-sent":        "A link to sign in is on its way to {address}.",
	"member-of-org":    "You are a member of {organization}",
	"members":          "Members",
	"new-organization": "New organization",
	"new-organization-text": "You will be its owner. Sites, hubs, members and " +
		"API keys belong to an organization.",
	"no-email-invited": "No email after a minute? Check your spam folder, and " +
		"check that this is the address that you were invited with.",
	"no-email-own": "No email after a minute? Check your spam folder, and " +
		"check that this is your address.",
	"no-organization": "You are not in an organization yet.",
	"not-encrypted": "This page is not encrypted, so you cannot stay signed " +
		"in. Open it with https://.",
	"not-you":           "Not your address? Close this page. You are not signed in.",
	"open-org":          "Open {organization}",
	"other-account":     "In this browser you are signed in with another account, {address}.",
	"role":              "Role",
	"send-sign-in-link": "Send sign-in link",
	"sign-in":           "Sign in",
	"sign-in-as":        "Sign in as {address}?",
	"sign-in-other": "In this browser you are signed in as {address}. You will " +
		"be signed out of that account.",
	"sign-in-text":        "We email you a sign-in link. There is no password.",
	"sign-in-to-open":     "Sign in to open it.",
	"sign-out":            "Sign out",
	"sign-up-text":        "New users sign up the same way.",
	"signed-in-as":        "Signed in as {address}",
	"skip-to-content":     "Skip to content",
	"stay-signed-in":      "You stay signed in on this browser for 30 days, or until you sign out.",
	"support-id":          "If the problem persists, tell support this request ID:",
	"switch":              "switch",
	"use-another-address": "Use another address",
	"you-are-signed-in":   "You are signed in as {address}.",
	"your-organizations":  "Your organizations",
	"already-submitted":   "this form was submitted before, and its action is done",
	"already-title":       "You have already joined",
	"did-not-work":        "That did not work",
	"forged-form": "this form was not sent from a page of your session; open the " +
		"page again and repeat it",
	"form-unreadable":          "the form could not be read",
	"invalid-email":            "Enter a valid email address.",
	"invitation-expired-title": "This invitation has expired",
	"invitation-unknown-title": "This invitation does not work",
	"joined-title":             "You have joined",
	"links-address": "Too many links were requested for this address. Use the newest " +
		"email, or try again in {time}.",
	"links-network": "Too many links were requested from your network. Try again in " +
		"{time}.",
	"managers-only": "only owners and admins of the organization can do this",
	"no-page":       "there is no page at this address",
	"no-permission": "You don't have permission",
	"not-here":      "This cannot be done here",
	"not-here-text": "The page that led here may be out of date. Go back, reload it " +
		"and try again.",
	"not-now":        "This cannot be done at the moment",
	"our-fault":      "Something went wrong on our side",
	"our-fault-text": "Wait a minute, then try again.",
	"page-not-found": "Page not found, or you don't have access.",
	"page-not-found-text": "Check the address. Someone may have removed what was " +
		"here. If you should have access, ask an owner or admin.",
	"revoke-key":        "Revoke API key",
	"session-over":      "Your session has ended",
	"session-over-text": "Sign in again.",
	"sign-up-closed": "only the operator of this service can create organizations; " +
		"ask the operator, or ask to be invited to one",
	"too-many-pages": "Your network has requested too many pages. Wait {time}, then " +
		"reload the page.",
	"too-many-requests": "Too many requests",
	"alarms-show":       "Show all on the dashboard",
	"alarms-more":       "and {number} more",
}
