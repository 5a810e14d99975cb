package mail

import (
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"unicode"

	"hubcloud/domain"
)

var (
	invitationText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/invitation.txt"))
	invitationHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/invitation.html"))
)

// invitationView is the data of the templates.
type invitationView struct {
	Org     string
	By      string
	Role    string
	To      string
	Link    string
	Expires string
}

func renderInvitation(inv queuedInvitation) (content, error) {
	view := invitationView{
		Org: sanitize(inv.OrgName), Role: roleWords(inv.Role), To: sanitize(inv.To), Link: inv.Link,
		Expires: formatExpiry(inv.ExpiresAt), By: sanitize(inv.InvitedBy),
	}
	return render(inv.To, "Invitation to "+view.Org, invitationText, invitationHTML, view)
}

// sanitize returns a text that users chose as one line, without characters that change the
// direction of the text around it.
func sanitize(s string) string {
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

func roleWords(role domain.Role) string {
	if role == domain.RoleAdmin {
		return "an admin"
	}
	return "a member"
}
