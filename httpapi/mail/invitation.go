package mail

import (
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"unicode"

	"hubcloud/domain"
)

// invitationText and invitationHTML say the same.
var (
	invitationText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/invitation.txt"))
	invitationHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/invitation.html"))
)

// invitationView is what the templates show.
type invitationView struct {
	Org     string
	Role    string
	To      string
	Link    string
	Expires string
}

// writtenInvitation is what the mail says.
func writtenInvitation(inv Invitation) (written, error) {
	view := invitationView{
		Org: displayed(
			inv.OrgName,
		), Role: roleWords(inv.Role), To: displayed(inv.To), Link: inv.Link,
		Expires: inv.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC"),
	}
	return write(inv.To, "Invitation to "+view.Org, invitationText, invitationHTML, view)
}

// displayed gives a text that somebody chose as it is shown: on one line, and without characters
// that change the direction of what stands around them.
func displayed(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.TrimSpace(s)
}

// literal keeps a text from being read as an encoded word of RFC 2047 that it only looks like, and
// spaces from being folded away. What is not ASCII is encoded as a whole: one character in between
// that nobody sees, or that looks like a space, is enough.
func literal(s string) string {
	return strings.NewReplacer("=?", "=\u200B?", "  ", " \u00A0").Replace(s)
}

func roleWords(role domain.Role) string {
	if role == domain.RoleAdmin {
		return "an admin"
	}
	return "a member"
}
