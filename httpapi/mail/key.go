package mail

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
)

// queuedKey is a mail about an API key that expires soon.
type queuedKey struct {
	OrgID     string    `json:"org_id"`
	OrgName   string    `json:"org_name"`
	MemberID  string    `json:"member_id"`
	KeyID     string    `json:"key_id"`
	Label     string    `json:"label"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SendKeyExpires queues mails to the owners and admins of the organization, which say when an API
// key expires. Calls with the same values queue one mail each. The error is the queue's. The mails
// expire with the key.
func (m *Mailer) SendKeyExpires(
	ctx context.Context, org domain.OrgState, key domain.KeyState,
) error {
	return m.putToAdmins(ctx, org, key.ExpiresAt, func(member domain.OrgMember) queued {
		return queued{
			ID: fmt.Sprintf("key-%s-%s-%d", key.ID, member.ID, key.ExpiresAt.UnixMilli()),
			Key: &queuedKey{
				OrgID: org.ID, OrgName: org.Name, MemberID: member.ID, KeyID: key.ID,
				Label: key.Label, ExpiresAt: key.ExpiresAt,
			},
		}
	})
}

func (k *queuedKey) recipient(ctx context.Context, cfg Config) (string, error) {
	return cfg.ManagerRecipient(ctx, k.OrgID, k.MemberID)
}

func (k *queuedKey) render(publicURL string) (content, error) {
	view := struct{ Org, Name, ID, Expires, Link string }{
		Org: domain.PlainLine(k.OrgName), Name: domain.PlainLine(cmp.Or(k.Label, k.KeyID)), ID: k.KeyID,
		Expires: formatAlarmTime(k.ExpiresAt),
		Link:    publicURL + "/portal/" + k.OrgID + "/keys/" + k.KeyID,
	}
	subject := "API key expires soon: " + clip(view.Name, maxSubjectPart)
	return render(subject, "key", view)
}
