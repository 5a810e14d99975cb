package mail

import (
	"context"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
	"hubcloud/domain/alarmmail"
	"hubcloud/httpapi/portal/text"
)

var (
	alarmText  = texttemplate.Must(texttemplate.ParseFS(templates, "templates/alarm.txt"))
	alarmHTML  = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/alarm.html"))
	digestText = texttemplate.Must(texttemplate.ParseFS(templates, "templates/digest.txt"))
	digestHTML = htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/digest.html"))
)

const (
	// alarmLifetime is how long an alarm's mail is tried: an older one only confuses.
	alarmLifetime = 24 * time.Hour
	// maxAlarmContent is the most bytes of a queued mail. A digest that is longer lists less.
	maxAlarmContent = 60 << 10
	// maxSubjectPart is how many characters of a name a subject has.
	maxSubjectPart = 60
)

// queuedAlarm is a mail about conditions that need attention.
type queuedAlarm struct {
	OrgID    string `json:"org_id"`
	OrgName  string `json:"org_name"`
	MemberID string `json:"member_id"`
	// Notices has one notice, or for a digest one or more. More is how many the digest leaves out.
	Notices []alarmmail.Notice `json:"notices"`
	Digest  bool               `json:"digest,omitempty"`
	More    int                `json:"more,omitempty"`

	// to is the recipient's address and token that of the link to unsubscribe, when the mail goes
	// out.
	to, token string
}

// SendAlarm queues a mail about conditions to a member of the organization and returns once it is
// stored durably. The error is the queue's. The mail expires after a day.
func (m *Mailer) SendAlarm(
	ctx context.Context, org domain.OrgState, mail alarmmail.Mail,
) error {
	q := queued{
		QueuedAt: mail.At, ID: mail.ID,
		Alarm: &queuedAlarm{
			OrgID: org.ID, OrgName: org.Name, MemberID: mail.MemberID, Notices: mail.Notices,
			Digest: mail.Digest, More: mail.More,
		},
	}
	for a := q.Alarm; a.Digest && len(a.Notices) > 1; {
		content, err := json.Marshal(q)
		if err != nil {
			return fmt.Errorf("mail: encode a mail: %w", err)
		}
		if len(content) <= maxAlarmContent {
			break
		}
		half := len(a.Notices) / 2
		a.More, a.Notices = a.More+len(a.Notices)-half, a.Notices[:half]
	}
	return m.put(ctx, q, Envelope{
		// Alarms have a part of the queue of their own: they must not keep invitations out.
		Sender: org.ID + " alarms", Recipient: mail.MemberID, Topic: mail.ID,
		Expires: mail.At.Add(alarmLifetime),
	})
}

// prepare looks up what a mail about conditions needs when it goes out. It returns ErrObsolete for
// a member who has left or gets no mails any more.
func (a *queuedAlarm) prepare(ctx context.Context, cfg Config) (err error) {
	if a.to, err = cfg.AlarmRecipient(ctx, a.OrgID, a.MemberID); err != nil {
		return err
	}
	if a.to == "" {
		return ErrObsolete
	}
	a.token, err = cfg.UnsubscribeToken(ctx, a.OrgID, a.MemberID)
	return err
}

// alarmRow is a line of a mail.
type alarmRow struct{ Label, Value string }

// alarmView is the data of the templates.
type alarmView struct {
	Org, Title, Advice string
	// Rows are what is known of the condition.
	Rows []alarmRow
	// Lines are the notices of a digest, and More how many it leaves out.
	Lines []alarmRow
	More  int
	// Link is the page to look at, Choose the page to choose mails, and Unsubscribe ends them.
	Link, Choose, Unsubscribe string
}

func (a queuedAlarm) render(publicURL string) (content, error) {
	view := alarmView{
		Org: domain.PlainLine(a.OrgName), More: a.More,
		Link:        publicURL + "/portal/" + a.OrgID,
		Choose:      publicURL + "/portal/" + a.OrgID + "/notifications",
		Unsubscribe: a.unsubscribeLink(publicURL),
	}
	if a.Digest {
		for _, n := range a.Notices {
			at := n.Since
			if !n.Ended.IsZero() {
				at = n.Ended
			}
			view.Lines = append(view.Lines, alarmRow{formatAlarmTime(at), place(n, 0)})
		}
		subject := fmt.Sprintf("%d more alarm notices: %s", len(a.Notices)+a.More, view.Org)
		return render(a.to, subject, digestText, digestHTML, view)
	}
	n := a.Notices[0]
	view.Title, view.Link = title(n), view.Link+"/hubs/"+string(n.Hub)
	if n.Ended.IsZero() {
		view.Advice = text.Conditions[string(n.Kind)].Advice
	}
	for _, row := range []alarmRow{
		{"Device", domain.PlainLine(n.Device)},
		{"Room", domain.PlainLine(n.Room)}, {"Hub", domain.PlainLine(n.HubName)},
		{"Site", domain.PlainLine(n.Site)}, {"Organization", view.Org},
		{"Since", formatAlarmTime(n.Since)}, {"Ended", formatAlarmTime(n.Ended)},
	} {
		if row.Value != "" {
			view.Rows = append(view.Rows, row)
		}
	}
	return render(a.to, place(n, maxSubjectPart), alarmText, alarmHTML, view)
}

// title returns what has begun or ended.
func title(n alarmmail.Notice) string {
	if n.Ended.IsZero() {
		return domain.PlainLine(n.Title)
	}
	return "Ended: " + domain.PlainLine(n.Title)
}

// place returns what has begun or ended, and where. Names have at most limit characters each; 0
// means any number.
func place(n alarmmail.Notice, limit int) string {
	var names []string
	for _, name := range []string{n.Device, n.HubName, n.Site} {
		if name = domain.PlainLine(name); name == "" {
			continue
		}
		if runes := []rune(name); limit > 0 && len(runes) > limit {
			name = string(runes[:limit-1]) + "…"
		}
		names = append(names, name)
	}
	return title(n) + ": " + strings.Join(names, ", ")
}

// formatAlarmTime returns a time for people, with its zone: "" for none.
func formatAlarmTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04:05 UTC")
}

func (a queuedAlarm) unsubscribeLink(publicURL string) string {
	return publicURL + "/portal/unsubscribe/" + a.token
}

// setHeaders sets the headers by which mail programs offer to unsubscribe with one click (RFC 8058)
// and show the mails of a condition together.
func (a queuedAlarm) setHeaders(msg *gomail.Msg, publicURL, domain string) {
	msg.SetGenHeader("List-Unsubscribe", "<"+a.unsubscribeLink(publicURL)+">")
	msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	if !a.Digest {
		msg.SetGenHeader("References", "<"+a.Notices[0].Cause+"@"+domain+">")
	}
}
