package mail

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"hubcloud/domain"
)

// queuedWebhook is a mail about a webhook that the service has disabled.
type queuedWebhook struct {
	OrgID    string                     `json:"org_id"`
	OrgName  string                     `json:"org_name"`
	MemberID string                     `json:"member_id"`
	Webhook  string                     `json:"webhook"`
	Cause    domain.WebhookDisableCause `json:"cause"`
	Since    time.Time                  `json:"since"`
}

// SendWebhookDisabled queues mails to the owners and admins of the organization, which say that the
// service has disabled a webhook that failed since a time. Calls with the same values queue one mail
// each. The error is the queue's. The mails expire after a week.
func (m *Mailer) SendWebhookDisabled(
	ctx context.Context, org domain.OrgState, w domain.Webhook, cause domain.WebhookDisableCause,
	since time.Time,
) error {
	expires := m.cfg.Now().Add(7 * 24 * time.Hour)
	return m.putToAdmins(ctx, org, expires, func(member domain.OrgMember) queued {
		return queued{
			ID: fmt.Sprintf("webhook-%s-%s-%d", w.ID, member.ID, since.UnixMilli()),
			Webhook: &queuedWebhook{
				OrgID: org.ID, OrgName: org.Name, MemberID: member.ID, Webhook: webhookName(w),
				Cause: cause, Since: since,
			},
		}
	})
}

// putToAdmins queues a mail to each owner and admin of an organization.
func (m *Mailer) putToAdmins(
	ctx context.Context, org domain.OrgState, expires time.Time, mailTo func(domain.OrgMember) queued,
) error {
	for _, member := range org.Members {
		if member.Role == domain.RoleMember {
			continue
		}
		q := mailTo(member)
		err := m.put(ctx, q, Envelope{
			Sender: org.ID, Recipient: member.ID, Topic: q.ID, Expires: expires,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// webhookName returns what a webhook is called in mails: its address may contain a secret, so the
// host stands for it.
func webhookName(w domain.Webhook) string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return w.Name
	}
	return cmp.Or(w.Name, u.Host)
}

func (w *queuedWebhook) recipient(ctx context.Context, cfg Config) (string, error) {
	return cfg.ManagerRecipient(ctx, w.OrgID, w.MemberID)
}

func (w *queuedWebhook) render(publicURL string) (content, error) {
	view := struct{ Org, Name, Why, Link string }{
		Org: domain.PlainLine(w.OrgName), Name: domain.PlainLine(w.Webhook),
		Why:  "No request has succeeded since " + formatAlarmTime(w.Since) + ".",
		Link: publicURL + "/portal/" + w.OrgID + "/webhooks",
	}
	if w.Cause == domain.WebhookGone {
		view.Why = "Its receiver answered 410 Gone, which says that it wants no more events."
	}
	subject := "Webhook disabled: " + clip(view.Name, maxSubjectPart)
	return render(subject, "webhook", view)
}
