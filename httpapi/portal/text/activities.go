package text

// Activities are the sentences of the organization's activity, by the type of the event. {who} is
// the person or program, {what} what was changed, and {detail} the new value. "own" follows the
// type if members change their own membership, and "plain" if there is no new value.
var Activities = map[string]string{
	"org.created":              "{who} created the organization {detail}",
	"org.renamed":              "{who} renamed the organization to {detail}",
	"org.condition_seen":       "{who} has seen a problem of the hub {what}",
	"org.mail_preferences_set": "{who} changed their alarm mails, now {detail}",
	"org.member_added":         "{who} added {what} as {detail}",
	"org.member_added own":     "{who} joined as {detail}",
	"org.member_role_changed":  "{who} changed the role of {what} to {detail}",
	"org.member_named":         "{who} chose the name {detail}",
	"org.member_named plain":   "{who} removed the own name",
	"org.member_limited":       "{who} let {what} only look",
	"org.member_limited plain": "{who} let {what} operate devices again",
	"org.member_removed":       "{who} removed {what}",
	"org.member_removed own":   "{who} left",
	"org.invited":              "{who} invited {what} as {detail}",
	"org.invitation_revoked":   "{who} withdrew the invitation of {what}",
	"org.invitation_accepted":  "{who} accepted an invitation",
	"site.created":             "{who} created the site {what}",
	"site.renamed":             "{who} renamed the site that is now {what} to {detail}",
	"site.renamed own":         "{who} renamed a site to {detail}",
	"hub.certificate_revoked":  "{who} reset the link of {what}",
	"hub.added":                "{who} added the hub {what}",
	"hub.moved":                "{who} moved the hub {what} to {detail}",
	"hub.renamed":              "{who} renamed the hub {what} to {detail}",
	"hub.renamed plain":        "{who} removed the name of the hub {what}",
	"hub.log_begun":            "{who} restarted the event log of {what}",
	"hub.secret_rotated":       "{who} replaced the enrolment secret of the hub {what}",
	"hub.blocked":              "{who} blocked the hub {what}",
	"hub.unblocked":            "{who} unblocked the hub {what}",
	"hub.released":             "{who} removed the hub {what} from the organization",
	"hub.device_labeled":       "{who} named or placed {what}, now {detail}",
	"hub.device_labeled plain": "{who} named or placed {what}",
	"hub.device_forgotten":     "{who} removed {what} from the list of its hub",
	"key.created":              "{who} created the API key {what} with {detail}",
	"key.created plain":        "{who} created the API key {what}",
	"key.revoked":              "{who} revoked the API key {what}",
}

// Actors are the names of those who act and have no name of their own, and {name} of keys and hubs.
var Actors = map[string]string{
	"operator": "The operator",
	"service":  "The service",
	"key":      "API key {name}",
	"hub":      "The hub {name}",
	"former":   "A former member",
}
