package mail

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/domain"
	"hubcloud/domain/attention"
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
	// Notices, Digest and Standing are as in attention.Mail. More is how many notices the mail
	// leaves out.
	Notices  []attention.Notice `json:"notices"`
	Digest   bool               `json:"digest,omitempty"`
	More     int                `json:"more,omitempty"`
	Standing int                `json:"standing,omitempty"`

	// token is the token of the link to unsubscribe, when the mail goes out.
	token string
}

// SendAlarm queues a mail about conditions to a member of the organization and returns once it is
// stored durably. The error is the queue's. The mail expires after a day.
func (m *Mailer) SendAlarm(
	ctx context.Context, org domain.OrgState, mail attention.Mail,
) error {
	q := queued{
		QueuedAt: mail.At, ID: mail.ID,
		Alarm: &queuedAlarm{
			OrgID: org.ID, OrgName: org.Name, MemberID: mail.MemberID, Notices: mail.Notices,
			Digest: mail.Digest, More: mail.More, Standing: mail.Standing,
		},
	}
	for a := q.Alarm; len(a.Notices) > 1; {
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
		// Mails about conditions have a part of the queue of their own: they must not keep
		// invitations out. Urgent ones have a class of their own, and wait for no other mail.
		Sender: org.ID + " alarms", Recipient: mail.MemberID, Topic: mail.ID, Alarm: mail.Urgent,
		Expires: mail.At.Add(alarmLifetime),
	})
}

// SendTest queues a mail of the same form to a member of the organization, about nothing. The error is
// the queue's.
func (m *Mailer) SendTest(ctx context.Context, org domain.OrgState, memberID string) error {
	id, now := "test-"+rand.Text(), m.cfg.Now()
	return m.SendAlarm(ctx, org, attention.Mail{
		ID: id, MemberID: memberID, At: now,
		Notices: []attention.Notice{{Cause: id, Title: "Test mail", Since: now}},
	})
}

// recipient is "" for a member who has left or gets no mails any more.
func (a *queuedAlarm) recipient(ctx context.Context, cfg Config) (to string, err error) {
	if to, err = cfg.AlarmRecipient(ctx, a.OrgID, a.MemberID); err != nil || to == "" {
		return to, err
	}
	a.token, err = cfg.UnsubscribeToken(ctx, a.OrgID, a.MemberID)
	return to, err
}

// alarmRow is a line of a mail.
type alarmRow struct{ Label, Value string }

// alarmView is the data of the templates.
type alarmView struct {
	Org, Title, Advice string
	// Rows are what is known of the condition.
	Rows []alarmRow
	// Lines are the notices of a mail with several, which begins with Intro, and More how many it
	// leaves out.
	Intro string
	Lines []alarmRow
	More  int
	// Link is the page to look at, Open the text of its button, Choose the page to choose mails, and
	// Unsubscribe ends them.
	Link, Open, Choose, Unsubscribe string
}

func (a *queuedAlarm) render(publicURL string) (content, error) {
	view := alarmView{
		Org: domain.PlainLine(a.OrgName), More: a.More,
		Link:        publicURL + "/portal/" + a.OrgID,
		Choose:      publicURL + "/portal/" + a.OrgID + "/notifications",
		Unsubscribe: a.unsubscribeLink(publicURL),
	}
	if a.Digest || len(a.Notices)+a.More > 1 {
		return a.renderList(view)
	}
	n := a.Notices[0]
	view.Title, view.Open = title(n), "Open the portal"
	view.Advice = "Nothing. Mails about alarms reach you."
	if n.Hub != "" {
		view.Link, view.Open, view.Advice = view.Link+"/hubs/"+string(n.Hub), "Open the hub", ""
		if n.Ended.IsZero() {
			view.Advice = attention.Texts[n.Kind].Advice
		}
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
	subject := place(n, maxSubjectPart)
	if a.Standing > 1 {
		subject += fmt.Sprintf(" (%d at this site now)", a.Standing)
		view.Rows = append(view.Rows, alarmRow{"At this site now", fmt.Sprint(a.Standing)})
	}
	return render(subject, "alarm", view)
}

// renderList renders a mail with several notices. Its subject names the worst of them.
func (a *queuedAlarm) renderList(view alarmView) (content, error) {
	notices := slices.Clone(a.Notices)
	slices.SortStableFunc(notices, worse)
	worst, alike, what := notices[0], a.More, title(notices[0])
	for _, n := range notices {
		if n.Ended.IsZero() == worst.Ended.IsZero() {
			alike++
			if title(n) != title(worst) {
				what = title(worst) + " and others"
			}
		}
		at := n.Since
		if !n.Ended.IsZero() {
			at = n.Ended
		}
		view.Lines = append(view.Lines, alarmRow{formatAlarmTime(at), place(n, 0)})
	}
	if worst.Ended.IsZero() {
		view.Advice = attention.Texts[worst.Kind].Advice
	}
	if a.Digest {
		view.Intro = fmt.Sprintf(
			"You got many mails about %s in the last hour. This mail lists what else happened.", view.Org,
		)
		subject := fmt.Sprintf("%s, and %d more", place(worst, maxSubjectPart), len(notices)+a.More-1)
		return render(subject, "digest", view)
	}
	counted := count(alike, "device")
	if worst.Kind.OfHub() {
		counted = count(alike, "hub")
	}
	if worst.Ended.IsZero() && a.Standing > alike {
		counted += fmt.Sprintf(" more, %d in all", a.Standing)
	}
	subject := fmt.Sprintf("%s: %s, %s", what, counted, clip(domain.PlainLine(worst.Site), maxSubjectPart))
	view.Intro = subject
	return render(subject, "digest", view)
}

// worse orders notices: what stands first, then the worst first.
func worse(a, b attention.Notice) int {
	ended := func(n attention.Notice) int { return min(n.Ended.Compare(time.Time{}), 1) }
	return cmp.Or(
		ended(a)-ended(b), slices.Index(domain.Severities, a.Severity)-
			slices.Index(domain.Severities, b.Severity), a.Kind.Worse(b.Kind),
	)
}

// title returns what has begun or ended.
func title(n attention.Notice) string {
	if n.Ended.IsZero() {
		return domain.PlainLine(n.Title)
	}
	return "Ended: " + domain.PlainLine(n.Title)
}

// place returns what has begun or ended, and where. Names have at most limit characters each; 0
// means any number.
func place(n attention.Notice, limit int) string {
	var names []string
	for _, name := range []string{n.Device, n.HubName, n.Site} {
		if name = domain.PlainLine(name); name == "" {
			continue
		}
		names = append(names, clip(name, limit))
	}
	if len(names) == 0 {
		return title(n)
	}
	return title(n) + ": " + strings.Join(names, ", ")
}

// clip shortens a name to a number of characters; 0 means any number.
func clip(name string, limit int) string {
	if runes := []rune(name); limit > 0 && len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return name
}

// formatAlarmTime returns a time for people, with its zone: "" for none.
func formatAlarmTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04:05 UTC")
}

func (a *queuedAlarm) unsubscribeLink(publicURL string) string {
	return publicURL + "/portal/unsubscribe/" + a.token
}

// setHeaders sets the headers by which mail programs offer to unsubscribe with one click (RFC 8058)
// and show the mails of a condition together.
func (a *queuedAlarm) setHeaders(msg *gomail.Msg, publicURL, domain string) {
	msg.SetGenHeader("List-Unsubscribe", "<"+a.unsubscribeLink(publicURL)+">")
	msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	if len(a.Notices)+a.More == 1 {
		msg.SetGenHeader("References", "<"+a.Notices[0].Cause+"@"+domain+">")
	}
}

// count returns a number of things, such as "3 hubs".
func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
