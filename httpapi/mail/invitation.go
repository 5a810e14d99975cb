package mail

import (
	htmltemplate "html/template"
	texttemplate "text/template"

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
		Org: domain.PlainLine(inv.OrgName), Role: accessWords(inv.Access), To: domain.PlainLine(inv.To), Link: inv.Link,
		Expires: formatExpiry(inv.ExpiresAt), By: domain.PlainLine(inv.InvitedBy),
	}
	return render(inv.To, "Invitation to "+view.Org, invitationText, invitationHTML, view)
}

func accessWords(access domain.Access) string {
	switch access {
	case domain.AccessAdmin:
		return "an admin"
	case domain.AccessViewer:
		return "a viewer, who sees everything and changes nothing"
	}
	return "a member"
}
