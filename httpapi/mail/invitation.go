package mail

import (
	"context"
	"path"

	"hubcloud/domain"
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

func (inv *queuedInvitation) recipient(ctx context.Context, cfg Config) (_ string, err error) {
	inv.To, err = cfg.InvitationRecipient(ctx, path.Base(inv.Link), inv.To)
	return inv.To, err
}

func (inv *queuedInvitation) render(string) (content, error) {
	view := invitationView{
		Org: domain.PlainLine(inv.OrgName), Role: accessWords(inv.Access), To: domain.PlainLine(inv.To), Link: inv.Link,
		Expires: formatExpiry(inv.ExpiresAt), By: domain.PlainLine(inv.InvitedBy),
	}
	return render("Invitation to "+view.Org, "invitation", view)
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
